"""TL207 explicit-synchronize-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.api.families import CLOCKS
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Cause, Hot
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import keywords, last_name
from torchlint.semantics.synchronisation import explicit_wait, names_host, to_host
from torchlint.semantics.values import Kind

from .remedies import as_spelt, inline, step_of
from .waits import waiting_place

_MEMORY_READINGS = frozenset(
    {"host_memory_stats", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "memory_stats"}
    | {"reset_peak_host_memory_stats", "reset_peak_memory_stats"}
)


@rule(
    "TL207",
    "explicit-synchronize-in-hot-loop",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("torch", "synchronize"),
    remedy="Remove `torch.cuda.synchronize()`",
    synchronizes=True,
)
def explicit_synchronize_in_hot_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds `torch.cuda.synchronize()`, its counterparts for other accelerators, and `synchronize()` of a
    stream or event, in every iteration of a hot loop.

    The rule ignores benchmarks, which have to synchronize before they read the time or memory statistics,
    functions that read what they copied to the host with `non_blocking=True`, events that another function
    records in a file with such copies, and calls behind a parameter that is off by default.

    ## Why is this bad?

    The host waits until the device has finished all work launched so far, and launches nothing in the
    meantime. The device then idles until the host launches the next kernels. Results do not depend on the
    call: operations on a stream run in order, and PyTorch synchronizes where a value is read.

    ## Example

    ```python
    for x, y in loader:
        loss = step(x, y)
        torch.cuda.synchronize()
    ```

    ## Use instead

    ```python
    for x, y in loader:
        loss = step(x, y)
    torch.cuda.synchronize()
    ```

    To time a step, record `torch.cuda.Event(enable_timing=True)` before and after it and read the events
    later, or time only every hundredth step. Between streams, `stream.wait_stream(other)` lets the device
    wait instead of the host.

    ## Fix safety

    There is no fix: whether a measurement depends on the call is for the author to decide.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    """
    if not explicit_wait(module, call) or not accelerated(module):
        return
    hot = waiting_place(module, call)
    if hot is None or hot.reason.cause is Cause.CALLERS:  # whoever calls such a function asks for it
        return
    if _measures(module, call, hot) or _awaits_copy(module, module.function(call)):
        return
    if _is_asked_for(module, call) or _awaits_event_of_copy(module, call):
        return
    message = f"`{module.tree.source(call.func)}()` blocks the host {when(module, hot)}"
    code = inline(module, call)
    remedy = f"Remove `{code if code != '…' else step_of(module, call)}`"
    if _reads_events(module, call):
        remedy = "Synchronize once after the loop, and then read `elapsed_time()` of the events"
    elif _is_timed(module, call):
        remedy = "Time with `torch.cuda.Event(enable_timing=True)`, and read `elapsed_time()` after the loop"
    elif (stream := _own_stream(module, call)) is not None:
        waiting = f"torch.cuda.current_stream().wait_stream({inline(module, stream)})"
        remedy = f"Let the device wait instead of the host: `{waiting}`"
    yield Finding(call, message, related=trail(hot), remedy=as_spelt(module, call, remedy))


def _own_stream(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the stream that is awaited, if it is not the one on which the results are read behind it."""
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    if owner is None or isinstance(owner, cst.Call):
        return None
    return owner if (module.value(owner).cls or "").endswith(".Stream") else None


def _awaits_event_of_copy(module: Module, call: cst.Call) -> bool:
    """Return whether an event is awaited that a function beside this one records behind copies to the host.

    One method starts the copy and records the event, and another one reads what was copied.
    """
    if not isinstance(call.func, cst.Attribute) or module.qualified(call.func) is not None:
        return False
    if not (module.value(call.func.value).cls or "").endswith(".Event"):
        return False
    # What this function records itself, it awaits for copies of its own.
    recording = module.tree.calls_by_name.get("record", ())
    event, own = module.source(call.func.value), module.tree.within(_scope(module, call), recording)
    if any(isinstance(each.func, cst.Attribute) and module.source(each.func.value) == event for each in own):
        return False
    return bool(_copies(module))


def _scope(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    return module.function(node) or module.tree.root


def _is_asked_for(module: Module, call: cst.Call) -> bool:
    """Return whether callers have to ask for the wait: ``def sample(logits, sync=False)``, ``if sync: …``."""
    for branch in module.flow.branches(call):
        if not branch.holds or not isinstance(branch.test, cst.Name):
            continue
        parameters = [binding.node for binding in module.bindings(branch.test)]
        if parameters and all(
            isinstance(each, cst.Param)
            and each.default is not None
            and module.value(each.default).constant is False
            for each in parameters
        ):
            return True
    return False


def _reads_events(module: Module, call: cst.Call) -> bool:
    """Return whether the loop around a wait reads the times of events already."""
    around = module.flow.loops(call)
    readings = module.tree.calls_by_name.get("elapsed_time", ())
    return bool(around) and module.tree.holds(around[0], list(readings))


def _is_timed(module: Module, call: cst.Call) -> bool:
    """Return whether the loop around a wait reads a clock."""
    around = module.flow.loops(call)
    return bool(around) and module.tree.holds(around[0], _readings(module))


def _measures(module: Module, call: cst.Call, hot: Hot) -> bool:
    """Return whether the wait serves a measurement of something that is no training."""
    around = [module.function(place) for place in (call, *hot.path)]
    names = [function.name.value for function in around if isinstance(function, cst.FunctionDef)]
    if any(has(name, Role.MEASUREMENT) for name in names):
        return True
    if any(_measures_next(module.home(place), place) for place in (call, *hot.path)):
        return True
    if isinstance(hot.loop, cst.For) and has(module.source(hot.loop.iter), Role.MEASUREMENT):
        return True
    places = [place for place in (*hot.path, hot.loop, call) if phase(module, place) is Phase.TRAINING]
    return not places and any(_is_timed_from(module.home(place), place, hot) for place in (call, *hot.path))


def _is_timed_from(module: Module, place: cst.CSTNode, hot: Hot) -> bool:
    """Return whether a clock is read in the loop, or once it is over:
    a reading far above times something else.

    ``place`` waits, or calls what does.
    """
    order = module.tree.order
    read = module.tree.within(_scope(module, place), _readings(module))
    # The last one says whether any is behind the wait.
    return bool(read) and (order[read[-1]] > order[place] or module.tree.holds(hot.loop, read))


def _measures_next(module: Module, call: cst.BaseExpression) -> bool:
    """Return whether the memory is read right behind the wait, or the host sleeps to play a slow program."""
    loop = next(iter(module.flow.statement_loops(call)), None)
    # ``if device.type == "cuda": torch.cuda.synchronize()``
    branches = (branch.construct for branch in module.flow.branches(call, within=loop))
    for statement in (module.tree.statement(call), *branches):
        behind = _next_beside(module, statement)
        if behind is not None:
            return any(
                isinstance(node, cst.Call)
                and (last_name(node.func) in _MEMORY_READINGS or module.qualified(node.func) == "time.sleep")
                for node in module.tree.descendants(behind)
            )
    return False


def _next_beside(module: Module, statement: cst.CSTNode) -> cst.CSTNode | None:
    """Return the statement behind another one in its block."""
    block, order = module.tree.parent(statement), module.tree.order
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    return next((other for other in block.body if order[other] > order[statement]), None)


@remembered
def _awaits_copy(module: Module, function: cst.FunctionDef | cst.Lambda | None) -> bool:
    """Return whether a function starts copies to the host that have to be complete before they are read."""
    if function is None:
        return False
    tree = module.tree
    places: dict[cst.CSTNode, None] = {function: None}
    for call in tree.nodes_within(function, cst.Call):
        # The copies may be made by a helper.
        callee = module.callee(call)
        if isinstance(callee, cst.FunctionDef):
            places[callee] = None
    homes = ((module.home(place), place) for place in places)
    if any(home.tree.holds(place, _copies(home)) for home, place in homes):
        return True
    owner = module.classes.owner(function)
    if owner is None or module.classes.info(owner).kind is not Kind.OPTIMIZER:
        return False
    # An optimizer that steps on the host.
    return any(
        isinstance(call.func, cst.Attribute) and to_host(home, call)
        for home, place in ((module.home(place), place) for place in places)
        for call in home.tree.within(place, home.tree.calls_by_name.get("to", ()))
    )


@remembered
def _copies(module: Module) -> list[cst.Call]:
    """Return the copies for which the host does not wait, in source order."""
    return [
        call
        for call in module.tree.nodes(cst.Call)
        if isinstance(call.func, cst.Attribute) and _copies_unawaited(module, call, call.func.attr.value)
    ]


def _copies_unawaited(module: Module, call: cst.Call, name: str) -> bool:
    if name not in ("copy_", "to"):
        return False
    given = keywords(call)
    if "non_blocking" not in given or module.value(given["non_blocking"]).constant is False:
        return False
    return name == "copy_" or any(names_host(module, arg.value) for arg in call.args)


@remembered
def _readings(module: Module) -> list[cst.Call]:
    """Return the calls that read a clock or how much memory is taken, in source order."""
    return [call for call in module.tree.nodes(cst.Call) if _reads_clock(module, call)]


def _reads_clock(module: Module, call: cst.Call) -> bool:
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "elapsed_time":
        return True
    return module.qualified(call.func) in CLOCKS or last_name(call.func) in _MEMORY_READINGS

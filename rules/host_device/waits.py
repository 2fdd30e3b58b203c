"""Where a wait is worth a finding: which places wait round after round, and beside which other waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.compilation import captured
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.lexicon import Role, begins, ends
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Cause
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.repetition import sums_up_metric
from torchlint.semantics.serving import works_on_step
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import (
    asking_function,
    asks_device,
    conversion,
    explicit_wait,
    host_copy,
    mask_of,
    only_on_failure,
    shape_wait,
)
from torchlint.semantics.values import Kind

from .hostloops import runs_on_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlint.semantics.flow.control import Facts
    from torchlint.semantics.flow.graph import Function, Root
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

    _Spared = Callable[[Module, cst.BaseExpression], bool]

# --- places that wait ---------------------------------------------------------------------------------------


def waiting_place(module: Module, node: cst.CSTNode) -> Hot | None:
    """Return the hot loop or function each of whose rounds evaluates ``node``; None if few or none do.

    The text of an error and the message of an assertion are made at most once, weights are merged, saved
    and converted once, and an optimizer that goes by what its closure returns (LBFGS) needs its loss on the
    host whatever the closure does. Where each round generates a whole sequence, one wait more or less is
    nothing. While a CUDA graph is captured, nothing waits: that fails.
    """
    hot = (places.hot(module, node) if accelerated(module) else None) or places.offered(module, node)
    if hot is None or only_on_failure(module, node) or _in_optimizer_closure(module, node):
        return None
    if captured(module, node) or _on_host(module, hot) or sums_up_metric(module, node):
        return None
    if any(
        _searches_lines(module, place) or _builds_module(module, place) for place in (node, *hot.path)
    ) or _generates(module, node, hot):
        return None
    if hot.reason.cause is Cause.CALLERS:
        return None if _processes_dataset(module, node) else hot  # it is given tensors, and no model
    return None if _administers(module, (node, *hot.path)) else hot


def _on_host(module: Module, hot: Hot) -> bool:
    loop = hot.loop
    return isinstance(loop, (cst.For, cst.While)) and runs_on_host(module.home(loop), loop)


def _builds_module(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` runs while a module is made: once,
    whatever loops there are in its constructor.
    """
    function = module.function(node)
    owner = module.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    if owner is None or module.classes.info(owner).kind is not Kind.MODULE:
        return False
    return phase(module, node) is Phase.SETUP


def _generates(module: Module, node: cst.CSTNode, hot: Hot) -> bool:
    """Return whether something else that runs with ``node`` lets a model ``generate``, token by token."""
    if not module.tree.mentions(".generate("):
        return False
    inner = [module.function(place) for place in (node, *hot.path[1:])] if hot.path else []
    regions: list[cst.CSTNode] = [hot.loop, *(function for function in inner if function is not None)]
    for call in module.tree.nodes(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "generate":
            continue
        if call.args and all(_is_measure(module, argument) for argument in call.args):
            continue  # ``generator.generate(batch_size, device)`` draws samples in one pass
        model = call.func.value
        if module.value(model).kind is not Kind.MODULE and not ends(last_name(model), *_GENERATOR):
            continue
        loops = module.flow.loops(call)
        holder = loops[0] if loops else module.function(call)
        if holder in regions and not places.throttled(module, call):
            return True
    return False


_GENERATOR = (Role.MODEL, Role.LANGUAGE_MODEL)


def _is_measure(module: Module, argument: cst.Arg) -> bool:
    """Return whether an argument says how many there are to be, or where, and is no prompt or option."""
    known = module.value(argument.value).kind in (Kind.NUMBER, Kind.DEVICE)
    return known and argument.keyword is None and not argument.star


def _searches_lines(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` belongs to an optimizer that evaluates its closure repeatedly,
    as a line search does.

    It does so in a loop, or in a function that it defines to be called by the search. Such an algorithm goes
    by the numbers that it gets.
    """
    function = module.function(node)
    owner = module.classes.owner(function) if function is not None else None
    if owner is None or module.classes.info(owner).kind is not Kind.OPTIMIZER:
        return False
    return any(
        isinstance(call, cst.Call)
        and last_name(call.func) == "closure"
        and (module.flow.loops(call) or _is_defined_inside(module, call))
        for call in module.tree.descendants(owner)
    )


def _is_defined_inside(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the function around ``node`` is defined in another function."""
    function = module.function(node)
    return function is not None and module.function(function) is not None


def _administers(module: Module, way: tuple[cst.CSTNode, ...]) -> bool:
    """Return whether a function on the way changes or stores a model, which is done once."""
    around = [f for f in map(module.function, way) if isinstance(f, cst.FunctionDef)]
    if any(begins(f.name.value, Role.CONVERSION) and not works_on_step(module, f) for f in around):
        return True
    return any(_processes_dataset(module, place) for place in way)


_DEFINITIONS: frozenset[type] = frozenset({cst.ClassDef, cst.FunctionDef})


def _processes_dataset(module: Module, place: cst.CSTNode) -> bool:
    """Return whether a dataset is made here, once for all:
    ``process`` of a dataset class of torch_geometric.
    """
    for _, around in module.tree.edges(place, _DEFINITIONS):
        if isinstance(around, cst.ClassDef):
            return False
        if isinstance(around, cst.FunctionDef) and around.name.value in ("process", "download"):
            owner = module.classes.owner(around)
            return owner is not None and any(
                (last_name(base.value) or "").endswith("Dataset") for base in owner.bases
            )
    return False


def _in_optimizer_closure(module: Module, node: cst.CSTNode) -> bool:
    function = module.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    for owner, given in _given_to_steps(module).get(function.name.value, ()):
        optimizer = module.value(owner).cls or ""
        if optimizer.startswith("torch.optim.") and not optimizer.endswith("LBFGS"):
            continue
        if module.value(given).definition in (function, None):
            return True
    return False


@remembered
def _given_to_steps(module: Module) -> dict[str, list[tuple[cst.BaseExpression, cst.Name]]]:
    """Return what is given to methods named ``step``, by its name, with the owner of each method."""
    found: dict[str, list[tuple[cst.BaseExpression, cst.Name]]] = {}
    for call in module.tree.calls_by_name.get("step", ()):
        if isinstance(call.func, cst.Attribute):
            for arg in call.args:
                if isinstance(arg.value, cst.Name):
                    found.setdefault(arg.value.value, []).append((call.func.value, arg.value))
    return found


# --- waits beside other waits -------------------------------------------------------------------------------

_BRANCHES: frozenset[type] = frozenset({cst.If, cst.IfExp})


def after_a_decision(module: Module, node: cst.CSTNode) -> bool:
    """Return whether ``node`` stands in a branch that is taken by the value of a device tensor.

    The host has waited for that value just before, and reads another one at little cost; but one in each
    round of a loop behind the decision adds up.
    """
    loop = next(iter(module.flow.loops(node)), None)
    return any(
        _decided_on_device(module, branch.test)
        for branch in module.flow.branches(node, loops=True, kinds=_BRANCHES)
        if loop is None or module.tree.contains(loop, branch.construct)
    )


@remembered
def _decided_on_device(module: Module, test: cst.BaseExpression) -> bool:
    return any(asks_device(module, test)) or _reads_device(module, test)


def _reads_device(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether it is ``if loss.item() < 0``:
    the decision waits as well where the number is read first, or has been.
    """
    parts = [*module.tree.descendants(test)]
    return any(
        conversion(module, part) is not None
        if isinstance(part, cst.Call)
        else isinstance(part, cst.Name) and _just_read(module, part)
        for part in parts
    )


def _just_read(module: Module, name: cst.Name) -> bool:
    """Return whether a variable is a number that has been read from the device in the same round."""
    loop = next(iter(module.flow.loops(name)), None)
    bindings = module.bindings(name)
    return bool(bindings) and all(
        isinstance(binding.value, cst.Call)
        and not binding.path
        and (loop is None or module.tree.contains(loop, binding.node))
        and conversion(module, binding.value) is not None
        for binding in bindings
    )


def after_a_guard(module: Module, node: cst.CSTNode) -> bool:
    """Return whether it is ``if not mask.any(): continue`` some lines above,
    with no model and no gradients in between.
    """
    return module.flow.at_point(node, _guarded(module, module.flow.root(node)))


@remembered
def _guarded(module: Module, root: Root) -> Facts:
    """Return for each point of a function whether the host has waited for a decision shortly before."""

    def decides(point: cst.CSTNode) -> bool | None:
        if isinstance(module.flow.condition(point), cst.If) and _is_asked(module, point):
            return True
        return False if places.computes(module, point) else None

    return module.flow.available(root, decides)


def _is_asked(module: Module, point: cst.CSTNode) -> bool:
    """Return whether a point of the flow is an expression the truth of which the host waits for."""
    return isinstance(point, cst.BaseExpression) and any(asks_device(module, point))


def after_a_wait(module: Module, node: cst.BaseExpression, spared: _Spared | None = None) -> bool:
    """Return whether the host has waited shortly before ``node``, with no model and no gradients in between.

    Of a group of waits only the first costs: the queue is empty then. Batches are cut to the longest of their
    samples tensor by tensor; the first cut waits for the device, as does the ``max(lengths)`` in front of it,
    or the ``if`` that asks whether there is anything to cut. Reads that ``spared`` holds of do not count.
    """
    return after_a_decision(module, node) or _waited_before(module, node, spared)


def within_a_wait(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the host waits in front of ``node``, or for what is made of it, in the same statement.

    One of them is told of, and both are in sight there.
    """
    point = module.flow.point(node)
    return _waits_in(module, point, node, None) or _is_read_back(module, node)


def _is_read_back(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the host reads back what is made of ``node``, in the same statement."""
    statement = module.tree.statement(node)
    for outer in module.tree.ancestors(node):
        if outer is statement:
            return False
        if isinstance(outer, cst.Call) and _reads_back(module, outer):
            return True
    return False


def before_a_wait(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the host reads something back right behind ``node``,
    in the same statement or in the next one.

    It waits there for all that was queued, so that it gains nothing by not waiting for ``node``: a selection
    is copied to the host, a place is turned into a number.
    """
    tree = module.tree
    statement = tree.statement(node)
    if _is_read_back(module, node):
        return True
    block = tree.parent(statement)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)) or places.computes(module, statement):
        return False
    following = block.body[tree.position(statement) + 1 :][:1]
    return any(_begins_with_reading(module, other) for other in following)


def _begins_with_reading(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether a statement reads something back before it gives the device anything to do."""
    first: cst.CSTNode = statement
    match statement:
        case cst.If(test=test) | cst.While(test=test):
            if any(asks_device(module, test)):
                return True
            first = test
        case cst.For(iter=iterable):
            first = iterable
        case cst.BaseCompoundStatement():
            return False
    if places.computes(module, first):
        return False
    calls = module.tree.nodes_within(first, cst.Call)
    return any(_reads_back(module, call) for call in calls)


def _reads_back(module: Module, call: cst.Call) -> bool:
    return conversion(module, call) is not None or host_copy(module, call) is not None


def _waited_before(module: Module, node: cst.CSTNode, spared: _Spared | None) -> bool:
    """Return whether the host has waited when it comes to a node, and has given the device no model since."""
    point = module.flow.point(node)
    if _waits_in(module, point, node, spared):
        return True
    waited = module.flow.at_point(node, _waited(module, module.flow.root(node), spared))
    return waited and not places.computes(module, point)


@remembered
def _waited(module: Module, root: Root, spared: _Spared | None) -> Facts:
    """Return for each point of a function, and its end, whether the host has waited shortly before."""

    def waits(point: cst.CSTNode) -> bool | None:
        if _waits_in(module, point, None, spared):
            return True
        return False if places.computes(module, point) else None

    return module.flow.available(root, waits)


def waits_within(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether a statement surely waits for the device, whatever it runs beside that."""
    if isinstance(statement, cst.BaseCompoundStatement):
        # What stands in a branch or loop may not have run; what decides on the branch has.
        decided = isinstance(statement, cst.If) and any(asks_device(module, statement.test))
        return decided and not places.computes(module, statement)
    return any(_surely_waits(module, part) for part in module.tree.descendants(statement))


def _waits_in(module: Module, point: cst.CSTNode, end: cst.CSTNode | None, spared: _Spared | None) -> bool:
    """Return whether a point of the flow waits, in front of ``end`` if there is one,
    and runs no model behind it.
    """
    if not isinstance(point, (cst.BaseExpression, cst.BaseSmallStatement, cst.WithItem)):
        return False
    if end is None and module.flow.condition(point) is not None:
        return _is_asked(module, point) and not places.computes(module, point)
    waits = _waits_of(module, point, spared)
    if end is None:
        return bool(waits) and _runs_nothing_after(module, point, waits[0])
    order, around = module.tree.order, set(module.tree.ancestors(end)) if waits else ()
    # What is around the end is evaluated behind it.
    return any(order[part] < order[end] and part not in around for part in waits)


_SPARED = (cst.Call, cst.Subscript)


@remembered
def _waits_of(module: Module, point: cst.CSTNode, spared: _Spared | None) -> list[cst.CSTNode]:
    """Return the expressions of a point of the flow that surely wait, in order, but for the ``spared`` ones.

    Where some are spared, calls of functions of the project that wait for others count as well.
    """
    parts = list(module.tree.descendants(point))
    if spared is None:
        return [part for part in parts if _surely_waits(module, part)]
    return [
        part
        for part in parts
        if (_surely_waits(module, part) and not (isinstance(part, _SPARED) and spared(module, part)))
        or (isinstance(part, cst.Call) and _returns_from_waiting(module, part, spared))
    ]


def _returns_from_waiting(module: Module, call: cst.Call, spared: _Spared) -> bool:
    """Return whether a call runs a function of the project that has waited, whichever it is,
    when it returns.
    """
    callees = module.callees(call)
    return bool(callees) and all(_ends_waited(module, each, spared) for each in callees)


@solved(nothing=False)
def _ends_waited(module: Module, function: Function, spared: _Spared) -> bool:
    """Return whether a function has waited shortly before it returns."""
    return not isinstance(function, cst.Lambda) and _waited(module, function, spared).far


def _runs_nothing_after(module: Module, statement: cst.CSTNode, wait: cst.CSTNode) -> bool:
    """Return whether a statement that waits gives the device no model to run behind the wait."""
    return not places.computes(module, statement) or places.computes(module, wait)


def _surely_waits(module: Module, part: cst.CSTNode) -> bool:
    """Return whether an expression waits whenever it is evaluated: for a number, a size,
    or a copy to the host.
    """
    if isinstance(part, cst.Subscript):
        return shape_wait(module, part) and not _fills_by_mask(module, part)
    if isinstance(part, cst.Assert):
        return any(asks_device(module, part.test))
    if not isinstance(part, cst.Call):
        return False
    return (
        conversion(module, part) is not None
        or asking_function(module, part) not in (None, "builtins.sum")
        or host_copy(module, part) is not None
        or shape_wait(module, part)
        or explicit_wait(module, part)
    )


def _fills_by_mask(module: Module, node: cst.Subscript) -> bool:
    """Return whether it is ``x[mask] = 0``, which needs no size."""
    target = module.tree.parent(node)
    statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
    if not isinstance(statement, cst.Assign) or mask_of(module, node) is None:
        return False
    return module.value(statement.value).kind in (Kind.NUMBER, Kind.BOOL)

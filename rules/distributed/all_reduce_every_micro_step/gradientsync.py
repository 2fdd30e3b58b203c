"""Gradients that are exchanged in every backward pass, where one exchange for a step would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.fixes import Edits, spell, wrap
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.identifiers import identifiers, options
from torchlint.semantics.iterations import Act
from torchlint.semantics.lexicon import Role, ends, has
from torchlint.semantics.microbatches import Accumulation, accumulations
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

from ..parallelism import Parallelism, Wrapper, Wrapping

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


# Whoever names one of these knows of the exchange. Join hooks and communication hooks count on each one.
_KNOWN = frozenset({"register_comm_hook", "Join", "set_requires_all_reduce"})
# What older wrappers of apex call the same.
_KNOWN_OF_APEX = frozenset({"delay_allreduce", "disable_allreduce", "enable_allreduce"})
# One of these is in the text of each file that does.
_SPOKEN = ("sync", "comm_hook", "Join", "allreduce", "all_reduce")
# A graph that is recorded once has the exchange in it, or not.
_RECORDING = frozenset(
    {"compile", "script", "trace", "static_graph", "set_static_graph", "_set_static_graph"}
)


@dataclass(frozen=True, slots=True)
class NeedlessExchange:
    """A backward pass that exchanges all gradients, though it is one of several of a step.

    ``forwards`` are the calls of the wrapped model that belong to it.
    """

    backward: cst.Call
    accumulation: Accumulation
    wrapper: Wrapper
    forwards: tuple[cst.Call, ...]

    @property
    def is_first(self) -> bool:
        """Whether it is the first one that stands in the loop, of several that are chosen from."""
        return next(e.node for e in self.accumulation.iteration.of(Act.BACKWARD)) is self.backward

    @property
    def is_sharded(self) -> bool:
        """Whether the model is sharded, so that gradients that wait for their exchange take memory."""
        return self.wrapper.wrapping is not Wrapping.DDP


def needless_exchange(module: Module, call: cst.Call) -> NeedlessExchange | None:
    """Return the exchange that a backward pass makes for nothing; None if it may be wanted,
    or there is none.
    """
    wrappers = [
        wrapper
        for wrapper in Parallelism.of(module).wrapped_by(Wrapping.DDP, Wrapping.FSDP, Wrapping.FULLY_SHARD)
        if wrapper.name.startswith("torch.") and not wrapper.name.endswith("replicate")
    ]
    if not wrappers or _knows(module) or Parallelism.of(module).wrapped_by(Wrapping.PREPARED):
        return None
    found = next(accumulations(module, call), None)
    if found is None:
        return None
    for wrapper in wrappers:
        forwards = tuple(
            forward
            for forward in Parallelism.of(module).forwards(wrapper)
            if _runs_in(module, found, forward) and grad(module, forward) is not Grad.OFF
        )
        if forwards:
            return NeedlessExchange(call, found, wrapper, forwards)
    return None


def _knows(module: Module) -> bool:
    """Return whether the program says when gradients are exchanged:
    ``no_sync``, ``require_backward_grad_sync``.
    """
    return any(map(_speaks_of_exchange, (module, *module.companions(*_SPOKEN))))


@remembered
def _speaks_of_exchange(module: Module) -> bool:
    names = identifiers(module) | options(module)
    return not names.isdisjoint(_KNOWN | _KNOWN_OF_APEX) or any(
        ends(name, Role.SYNCHRONIZATION) and has(name, Role.GRADIENT, Role.VERB) for name in names
    )


def _runs_in(module: Module, found: Accumulation, node: cst.CSTNode) -> bool:
    """Return whether a node runs in each pass, as far as calls in the file show."""
    if module.tree.contains(found.passes, node):
        return True
    function = module.function(node)
    if function is None:
        return False
    return any(
        module.tree.contains(found.passes, caller) or module.function(caller) in found.iteration.functions
        for caller in module.callers(function)
    )


# --- the fix ------------------------------------------------------------------------------------------


def exchange_once(module: Module, found: NeedlessExchange) -> Edits | None:
    """Return the edits that put forward and backward of all passes but the last of a step under
    ``no_sync()``.

    None where it is not certain which pass is the last one, or where anything else goes by the gradients.
    """
    recording = (module, *module.companions(*sorted(_RECORDING)))
    if found.is_sharded or any(not _RECORDING.isdisjoint(identifiers(each)) for each in recording):
        return None
    region = _region(module, found)
    model = _model(module, found)
    last = _last_pass(module, found, region) if region is not None else None
    if region is None or model is None or last is None:
        return None
    if _steps_elsewhere(module, found) or _gradients_in_use(module, found):
        return None
    null = spell(module, "contextlib.nullcontext", found.backward)
    if null is None:
        return None
    header = f"with {null.text}() if {last} else {model}.no_sync():"
    edits = wrap(module, region, header)
    return None if edits is None else (*edits, *null.edits)


def _region(module: Module, found: NeedlessExchange) -> Sequence[cst.CSTNode] | None:
    """Return the statements from the forward pass to the backward pass, if they stand in the loop itself."""
    loop = found.accumulation.passes
    if not isinstance(loop, (cst.For, cst.While)) or not isinstance(loop.body, cst.IndentedBlock):
        return None
    body = list(loop.body.body)
    places = []
    for node in (*found.forwards, found.backward):
        index = next((i for i, statement in enumerate(body) if module.tree.contains(statement, node)), None)
        if index is None:
            return None
        places.append(index)
    backwards = found.accumulation.iteration.of(Act.BACKWARD)
    if len(backwards) != 1 or max(places) != places[-1]:
        return None
    region = body[min(places) : max(places) + 1]
    if any(
        isinstance(node, (cst.Yield, cst.Break, cst.Continue, cst.Return))
        for statement in region
        for node in module.tree.descendants(statement)
    ):
        return None
    if isinstance(region[-1], cst.BaseCompoundStatement) and not isinstance(region[-1], cst.With):
        # A backward pass that depends on a condition.
        return None
    return region


def _model(module: Module, found: NeedlessExchange) -> str | None:
    """Return how the wrapped model is spelt, if it is the same and wrapped whichever way the program took."""
    texts = set()
    for forward in found.forwards:
        wraps = Parallelism.of(module).wraps(forward.func)
        if not wraps.always or wraps.wrappers != (found.wrapper,):
            return None
        if not isinstance(forward.func, (cst.Name, cst.Attribute)):
            return None
        texts.add(module.source(forward.func))
    others = [
        forward
        for forward in Parallelism.of(module).forwards()
        if forward not in found.forwards and module.tree.contains(found.accumulation.passes, forward)
    ]
    return texts.pop() if len(texts) == 1 and not others else None


def _last_pass(module: Module, found: NeedlessExchange, region: Sequence[cst.CSTNode]) -> str | None:
    """Return the condition that holds in the last pass of a step, and gives the same in front of it."""
    loop = found.accumulation.passes
    if found.accumulation.within:
        return _last_round(module, found) if isinstance(loop, cst.For) else None
    if not isinstance(loop, (cst.For, cst.While)):
        return None
    branches = set()
    for event in (*found.accumulation.steps, *found.accumulation.iteration.of(Act.CLEAR)):
        around = [
            statement
            for statement in loop.body.body
            if isinstance(statement, cst.If) and module.tree.contains(statement.body, event.outermost)
        ]
        if len(around) != 1:
            return None
        branches.add(around[0])
        taken = module.tree.statement(event.outermost)
        if event in found.accumulation.steps and taken not in around[0].body.body:
            return None
    branch = branches.pop()
    if branches or module.tree.order[branch] < module.tree.order[found.backward]:
        return None
    return module.source(branch.test) if _stays(module, branch.test, region, loop) else None


def _last_round(module: Module, found: NeedlessExchange) -> str | None:
    """Return ``micro == n - 1`` for a loop over ``range(n)`` that always reaches its end; None for others."""
    loop, count = found.accumulation.passes, found.accumulation.count
    assert isinstance(loop, cst.For)
    target = loop.target
    if not isinstance(target, cst.Name) or target.value == "_" or loop.orelse is not None:
        return None
    if not isinstance(loop.iter, cst.Call) or module.qualified(loop.iter.func) != "builtins.range":
        return None
    for node in module.tree.descendants(loop.body):
        if isinstance(node, (cst.Break, cst.Continue, cst.Return, cst.Try, cst.TryStar)):
            return None
    fixed = isinstance(count, (cst.Name, cst.Integer)) or (
        isinstance(count, cst.Attribute) and _is_option(module, count)
    )
    bound = {
        node.value
        for node in module.tree.descendants(loop.body)
        if isinstance(node, cst.Name) and module.binding_of(node) is not None
    }
    names = {target.value, *(n.value for n in module.tree.descendants(count) if isinstance(n, cst.Name))}
    return f"{target.value} == {module.source(count)} - 1" if fixed and not bound & names else None


def _stays(
    module: Module,
    test: cst.BaseExpression,
    region: Sequence[cst.CSTNode],
    loop: cst.For | cst.While,
) -> bool:
    """Return whether a condition gives the same in front of the passes as behind them."""
    start = module.tree.order[region[0]]
    if "\n" in module.source(test):
        return False
    for node in module.tree.descendants(test):
        match node:
            case cst.Call():
                if module.qualified(node.func) != "builtins.len" or len(node.args) != 1:
                    return False
            case cst.Attribute():
                if not _is_option(module, node):
                    return False
            case cst.Subscript() | cst.NamedExpr() | cst.Await() | cst.Lambda() | cst.IfExp():
                return False
            case cst.Name():
                if module.names.is_read(node) and _rebound_behind(module, node, start, loop):
                    return False
            case _:
                pass
    return True


def _is_option(module: Module, node: cst.Attribute) -> bool:
    """Return whether it is ``args.accumulate``,
    and attributes that nothing in the file assigns but a constructor.
    """
    for other in module.tree.nodes(cst.Attribute):
        if other.attr.value != node.attr.value:
            continue
        if isinstance(module.tree.parent(other), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del)):
            function = module.function(other)
            if not isinstance(function, cst.FunctionDef) or function.name.value != "__init__":
                return False
    owner = last_name(node.value) or ""
    return owner == "self" or ends(owner, Role.OPTIONS)


def _rebound_behind(module: Module, name: cst.Name, start: int, loop: cst.For | cst.While) -> bool:
    """Return whether a variable may get another value from the start of the passes on,
    up to the condition.
    """
    scope = module.names.lookup(name.value, name)
    if scope is None:
        return False
    if scope.parent is None and module.function(name) is not None:
        # A global variable, which any function may change.
        return (
            any(module.function(binding.node) is not None for binding in scope.bindings.get(name.value, ()))
            or len(scope.bindings.get(name.value, ())) > 1
        )
    for binding in scope.bindings.get(name.value, ()):
        inside = module.tree.contains(loop.body, binding.node)
        if inside and start <= module.tree.order[binding.node] < module.tree.order[name]:
            return True
    return False


def _steps_elsewhere(module: Module, found: NeedlessExchange) -> bool:
    """Return whether a step is taken outside of the branch too, with gradients that were not exchanged."""
    known = {step.node for step in found.accumulation.steps}
    made = [step.subject.value.origin for step in found.accumulation.steps if step.subject is not None]
    own = set(made) if None not in made else set()
    for call in module.tree.nodes(cst.Call):
        if last_name(call.func) != "step" or call in known or not isinstance(call.func, cst.Attribute):
            continue
        owner = call.func.value
        kind = module.value(owner).kind
        if kind in (Kind.SCHEDULER, Kind.MODULE) or "sched" in (last_name(owner) or "").lower():
            continue
        stepped = call.args[0].value if kind is Kind.SCALER and call.args else owner
        origin = module.value(stepped).origin
        if origin is None or not own or origin in own:
            return True
    return False


def _gradients_in_use(module: Module, found: NeedlessExchange) -> bool:
    """Return whether the loop looks at gradients in passes without a step."""
    loop = found.accumulation.passes
    branches = {
        branch.construct
        for step in found.accumulation.steps
        for branch in module.flow.branches(step.outermost, outward=True)
    }
    for node in module.tree.descendants(loop):
        name = last_name(node.func) if isinstance(node, cst.Call) else None
        looks = (name is not None and ("clip_grad" in name or name in ("unscale_", "get_total_norm"))) or (
            isinstance(node, cst.Attribute) and node.attr.value == "grad"
        )
        if looks and not any(module.tree.contains(branch, node) for branch in branches):
            return True
    return False

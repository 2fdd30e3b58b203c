from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from torchlint.diagnostics import Severity
from torchlint.fixes import graded, replace
from torchlint.rule import ERROR, WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.api.results import FUNCTIONAL_LOSSES, NN_LOSSES
from torchlint.semantics.backpropagation import Backpropagation, may_be_no_tensor
from torchlint.semantics.flow.graph import Function, Loop
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.microbatches import batches_of_step
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind
from torchlint.semantics.phases import Phase, is_training_step, phase
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Source, Through, every, onward, returns, some, steps, traced
from torchlint.semantics.spellings import start_of
from torchlint.semantics.texts import texts_of_graphs
from torchlint.semantics.values import Graph, Kind
from torchlint.syntax import alike

from ..nogradregions import NoGradRegions
from ..retention import (
    Kept,
    handed_in,
    kept,
    may_keep,
    outlives,
    overwritten,
    passed_on,
    stands_in,
)
from .freeing import freed, retained

# Methods that copy or convert a tensor: what needs no graph can lose it before them.
_CONVERSIONS = frozenset({"cpu", "cuda", "to", "float", "double", "half", "bfloat16", "clone", "contiguous"})
_LOOPS = (BindingKind.LOOP, BindingKind.COMPREHENSION)


@rule(
    "TL303",
    "graph-kept-across-steps",
    severity=WARNING,
    fix="safe",
    on=(cst.AugAssign, cst.Assign, cst.Call),
    mentions=("torch|accelerate|lightning",),
)
def graph_kept_across_steps(node: cst.AugAssign | cst.Assign | cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds tensors that are added to a running total, appended to a list, stored under a new key or passed to a
    meter class defined in the file, together with their autograd graph, step after step, where no backward
    pass uses the stored values.

    This is a warning where a backward pass in the same step frees the saved activations, and an error where
    none does: then the activations of every step stay in device memory.

    ## Why is this bad?
    A tensor holds a reference to its graph, and a sum holds the graphs of all its terms. The graph, and the
    memory it occupies, grows with every step: only the graph nodes if a backward pass has run, all saved
    activations if not. This is a common reason for a loop to run out of memory after some hundred steps.

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total += loss
    ```

    ## Use instead
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total += loss.detach()
    ```

    ## Fix safety
    Safe: the value is the same, and no backward pass in the file uses the stored tensors.

    The fix is unsafe where the file calls `retain_grad()` (a detached tensor has no gradient), where it
    reads `requires_grad` or `grad_fn` of a tensor, catches the error that one with a graph raises, or prints
    or saves one with its graph, and for a list or dict that the caller passed in. It is also unsafe where no
    backward pass frees the graph and a tensor that has one may leave the file, in an attribute or as the
    result of a function that other files may call (directly, in a list or dict, or in an object of another
    file): other code might run a backward pass through it.

    There is no fix where the value may be a number or None, which have no `detach`. The fix uses `.detach()`
    rather than `.item()`, which would synchronize with the device in every step.

    ## References
    - [FAQ: don't accumulate history across your training loop](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """
    if not may_keep(module, node) or not _may_pile_up(module, node):
        return
    for item in kept(module, node):
        if not _has_graph(module, item.stored):
            continue
        severity = _severity(module, node, item)
        if severity is None:
            continue
        name = module.home(item.place).source(item.place)
        rest = "all saved activations with it" if severity is ERROR else "memory use grows with each step"
        part = _without_graph(module, item.stored)
        # What is kept may be asked for its own gradient later, or be backpropagated by who handed it in.
        risk = None
        if module.tree.mentions("retain_grad(") or Backpropagation.of(module).asked_for:
            risk = "the program asks for the gradient or the graph of tensors"
        elif _is_shown(module, item.place):
            risk = "printed tensors no longer show their `grad_fn`"
        elif _is_summand(module, part):
            risk = "fails if this term of the sum is a number, which has no `detach`"
        # A graph that no backward has freed can still be backpropagated by who gets it.
        function = module.function(node)
        given_away = (
            severity is ERROR
            and isinstance(function, cst.FunctionDef)
            and NoGradRegions.of(module).gives_away(function)
        )
        if risk is None and (given_away or handed_in(module, item.place)):
            risk = "code elsewhere gets the stored tensors, and may backpropagate through them"
        yield Finding(
            item.stored,
            f"`{name}` keeps the autograd graph of every step alive, and {rest}",
            fix=None
            if may_be_no_tensor(module, part) or Backpropagation.of(module).holds_losses(part)
            else graded(module, "Add `.detach()`", replace(module, part, _detached(module, part)), risk=risk),
            severity=severity,
            remedy=_remedy(module, part),
        )


def _is_shown(module: Module, place: cst.BaseExpression) -> bool:
    """Return whether what is kept at a place is shown or saved with its graph."""
    gradients = Backpropagation.of(module)
    return not gradients.keys(place).isdisjoint(gradients.flow(texts_of_graphs(module)).places)


def _remedy(module: Module, part: cst.BaseExpression) -> str:
    if Backpropagation.of(module).holds_losses(part):
        return f"Call `.detach()` on each tensor in `{module.source(part)}`, and store the results"
    return f"Store `{_detached(module, part)}`, and make sure that the value is a tensor on every path"


def _may_pile_up(module: Module, node: cst.CSTNode) -> bool:
    """Return whether what is kept at ``node`` matters at all, going by the place,
    before anything is evaluated.
    """
    current = phase(module, node)
    if current in (Phase.FORWARD, Phase.DATASET):
        return False
    return current in (Phase.EVALUATION, Phase.TRAINING) or Backpropagation.of(module).happens


def _severity(module: Module, node: cst.CSTNode, item: Kept) -> Severity | None:
    """Return how bad keeping the graph is; None where it is meant, or does no harm."""
    if grad(module, node) is Grad.OFF:
        return None
    gradients = Backpropagation.of(module)
    if gradients.feeds(item.place):
        return None
    given = tuple(passed_on(module, item.stored))
    function = module.function(node)
    handed = _given_to_hook(module, function, given) if given else _parts_given(module, function, item.stored)
    if given and not handed:
        # A function that keeps what it is given: its calls are the place to say so.
        return None
    if not gradients.keys(item.place).isdisjoint(gradients.flow([item.stored]).places):
        # It is computed from what was kept before.
        return None
    # A comprehension that is assigned keeps by itself; one that is handed on does so with the loop around it.
    loops = module.flow.loops(item.stored if isinstance(node, cst.Assign) else node)
    is_freed = freed(module, item.stored) or any(freed(home, one) for home, one in handed)
    if is_freed or retained(module, item.stored):
        loop: cst.CSTNode | None = _steps(module, loops)
        if loop is None and isinstance(place := start_of(item.place, cst.Subscript), cst.Attribute):
            accumulates = any(batches_of_step(module, each) is not None for each in loops)
            if accumulates or places.hot(module, node) is not None or _collects(module, function, place):
                # A method that runs once a step.
                loop = function
        if loop is not None and overwritten(module, node, item.place, loop):
            return None
        if isinstance(loop, cst.FunctionDef) and _is_emptied_each_step(module, item.place):
            return None
        if loop is None or not outlives(module, item.place, loop):
            return None
        if is_freed:
            return WARNING
        # A graph that was kept for others may be backpropagated by them.
        leaves = isinstance(function, cst.FunctionDef) and NoGradRegions.of(module).gives_away(function)
        return None if leaves else ERROR
    if phase(module, node) is not Phase.EVALUATION or grad(module, node) is not Grad.ON:
        return None
    if isinstance(function, cst.FunctionDef) and not NoGradRegions.of(module).is_evident(
        item.stored, function
    ):
        return None
    passes = _passes_of(module, loops)
    if passes is None or not outlives(module, item.place, passes):
        return None
    if some(_without_graph_of_model(module, item.stored)):
        return None
    if gradients.computes_gradients(function or module.tree.root):
        return None
    return ERROR


def _given_to_hook(
    module: Module, function: Function | None, names: Sequence[str]
) -> list[tuple[Module, cst.BaseExpression]]:
    """Return what the calls pass for some parameters of a method, if it runs as a hook in all of them."""
    if not isinstance(function, cst.FunctionDef):
        return []
    callers = [(module.home(call), call) for call in module.callers(function)]
    if not all(stands_in(home, call, function) for home, call in callers):
        return []
    return [found for name in names for found in _passed(module, function, name)]


def _passed(module: Module, function: Function, name: str) -> list[tuple[Module, cst.BaseExpression]]:
    """Return what the calls of a function pass for a parameter, each with the file that it stands in."""
    arguments = (
        (module.home(call), module.inference.callgraph.bound_to(call, function).get(name).node)
        for call in module.callers(function)
    )
    return [(home, node) for home, node in arguments if node is not None]


def _parts_given(
    module: Module, function: Function | None, stored: cst.BaseExpression
) -> list[tuple[Module, cst.BaseExpression]]:
    """Return what the calls of a function pass for ``stored``, a part of its parameter:
    ``results["loss"]``.
    """
    if function is None or not isinstance(stored, cst.Subscript):
        return []
    names = passed_on(module, start_of(stored, cst.Subscript))
    return [(home, _part(given, stored)) for name in names for home, given in _passed(module, function, name)]


def _part(given: cst.BaseExpression, read: cst.BaseExpression) -> cst.BaseExpression:
    """Return what ``read`` takes out of a dict that is written out, ``{"loss": loss}``; else all of it."""
    match given, read:
        case (
            cst.Dict(elements=elements),
            cst.Subscript(value=cst.Name(), slice=[cst.SubscriptElement(slice=cst.Index(value=key))]),
        ):
            pairs = [each for each in elements if isinstance(each, cst.DictElement)]
            return next((pair.value for pair in pairs if alike(pair.key, key)), given)
        case _:
            return given


def _steps(module: Module, loops: Sequence[Loop]) -> Loop | None:
    """Return the loop whose iterations are the steps.

    One within a step is not: beside another backward pass, for one batch, or over the batches that a step
    accumulates.
    """
    found: Loop | None = None
    for loop in loops:
        if found is None:
            steps = Backpropagation.of(module).steps(loop) and batches_of_step(module, loop) is None
            found = loop if steps else None
        elif not places.over_loader(module, found) and (
            places.over_loader(module, loop)
            or _passes_beside(module, loop, found)
            or _optimizes_beside(module, loop, found)
        ):
            found = loop
    return found


def _passes_of(module: Module, loops: Sequence[Loop]) -> Loop | None:
    """Return the innermost loop that makes a forward pass each time; one that adds up losses does not,
    nor one over the pieces of one batch.
    """
    for loop in loops:
        if places.over_loader(module, loop) or _runs_model(module, loop):
            if not _goes_through_tensor(module, loop):
                return loop
    return None


def _goes_through_tensor(module: Module, loop: Loop) -> bool:
    """Return whether a loop goes through the parts of a tensor: ``for i in range(x.shape[0])``."""
    if not isinstance(loop, cst.For):
        return False
    waiting = [loop.iter]
    for node in waiting:
        if module.value(node).kind is Kind.TENSOR or every(_is_size(module, node)):
            return True
        if isinstance(node, cst.Call) and module.qualified(node.func) in _COUNTING:
            waiting += [arg.value for arg in node.args]
    return False


_COUNTING = frozenset({"builtins.range", "builtins.zip", "builtins.enumerate"})


@traced(Through.NOTHING)
def _is_size(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a number is a size of a tensor."""
    match node:
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return True
        case cst.Attribute(attr=cst.Name("shape")) if path:
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name("size"))):
            return True
    return None


def _runs_model(module: Module, loop: Loop) -> bool:
    """Return whether a loop runs more than losses of torch."""
    calls = (call for call in module.tree.nodes_within(loop, cst.Call) if places.computes(module, call))
    return any(module.value(call.func).cls not in NN_LOSSES for call in calls)


def _optimizes_beside(module: Module, loop: Loop, inner: Loop) -> bool:
    """Return whether a loop steps the optimizer for the gradients that one within it has added up."""
    around, within = (
        any(module.tree.contains(each, call) for call in _optimizer_steps(module)) for each in (loop, inner)
    )
    return around and not within


@remembered
def _optimizer_steps(module: Module) -> list[cst.Call]:
    """Return the calls that step optimizers."""
    calls = module.tree.calls_by_name.get("step", ())
    return [call for call in calls if is_training_step(module, call)]


def _passes_beside(module: Module, loop: Loop, inner: Loop) -> bool:
    """Return whether a loop runs a backward pass outside of another loop in it."""
    calls = (backward.call for backward in Backpropagation.of(module).passes)
    return any(module.tree.contains(loop, call) and not module.tree.contains(inner, call) for call in calls)


@traced(Through.OPERANDS)
def _without_graph_of_model(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a value is computed from what a frozen model gives,
    or one that runs without autograd.
    """
    if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Call):
        return onward(node.value)  # ``model(x).logits``
    if isinstance(node, cst.Subscript):
        return onward(node.value)  # ``logits[:, :-1]``, ``outputs["logits"]``
    if not isinstance(node, cst.Call):
        return None
    if _measures(module, node):
        return onward(node.args[0].value)
    if module.value(node.func).kind is Kind.MODULE:
        return NoGradRegions.of(module).is_frozen(node.func) or grad(module, node) is Grad.OFF
    return onward(node.func.value) if isinstance(node.func, cst.Attribute) else None


def _measures(module: Module, call: cst.Call) -> bool:
    """Return whether a call is one of a loss of torch, which has no parameters."""
    if not call.args or call.args[0].star:
        return False
    return module.qualified(call.func) in FUNCTIONAL_LOSSES or module.value(call.func).cls in NN_LOSSES


def _collects(module: Module, function: cst.CSTNode | None, place: cst.Attribute) -> bool:
    """Return whether a method stores for a backward pass in another attribute, which is emptied;
    this one is not.
    """
    if not isinstance(function, cst.FunctionDef) or any(_emptied(module, place)):
        return False
    return any(
        isinstance(other.place, cst.Attribute)
        and other.place.attr.value != place.attr.value
        and Backpropagation.of(module).feeds(other.place)
        and any(_emptied(module, other.place))
        for call in module.tree.descendants(function.body)
        if isinstance(call, cst.Call)
        for other in kept(module, call)
    )


def _emptied(module: Module, place: cst.Attribute) -> Iterator[cst.CSTNode]:
    """Yield where methods other than the constructor make a new container for an attribute, or clear it."""
    name = place.attr.value
    for assigned in module.names.attributes.get(name, ()):
        function = module.function(assigned.target)
        if assigned.kind is not BindingKind.ASSIGN or isinstance(assigned.value, cst.BinaryOperation):
            continue  # ``self.total += loss``, ``self.total = self.total + loss``
        if not (isinstance(function, cst.FunctionDef) and function.name.value == "__init__"):
            yield assigned.target
    for attribute in module.tree.attributes_by_name[name]:
        parent = module.tree.parent(attribute)
        if isinstance(parent, cst.Attribute) and parent.attr.value in ("clear", "popleft", "pop"):
            yield parent
        if isinstance(parent, cst.Subscript) and isinstance(module.tree.parent(parent), cst.Del):
            yield parent


def _is_emptied_each_step(module: Module, place: cst.BaseExpression) -> bool:
    """Return whether another function that runs in every step empties an attribute: that of the next step."""
    place = start_of(place, cst.Subscript)
    return isinstance(place, cst.Attribute) and any(
        places.hot(module, node) is not None and not places.throttled(module, node)
        for node in _emptied(module, place)
    )


def _has_graph(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a tensor with its graph,
    by what is known of it or by its ``backward``.
    """
    if isinstance(node, cst.Name) and _may_be_detached(module, node):
        return False
    if Backpropagation.of(module).holds_losses(node):
        return True
    if some(_is_part(module, node)) and not Backpropagation.of(module).is_loss(node):
        return False
    value = module.value(node)
    if value.kind is Kind.TENSOR and not value.leaf and value.graph is Graph.ATTACHED:
        return True
    if isinstance(node, cst.BinaryOperation):
        return any(
            Backpropagation.of(module).is_loss(one)
            and module.value(other).kind in (Kind.NUMBER, Kind.UNKNOWN)
            for one, other in ((node.left, node.right), (node.right, node.left))
        )
    return Backpropagation.of(module).is_loss(node)


@traced(Through.NOTHING)
def _is_part(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source]:
    """Return whether a value is one of several that a call gives,
    and neither its name nor the file tells which.
    """
    match node:
        case cst.Subscript():
            return module.value(node.value).kind is Kind.BATCH or onward(node.value)
        case cst.Name() if not has(node.value, Role.LOSS):
            bindings = module.bindings(node)
            if any(binding.kind in _LOOPS for binding in bindings) and module.value(node).part:
                return True
            unpacked = (binding for binding in bindings if binding.path)
            return [source for binding in unpacked for source in steps(module, Source(binding)) or ()]
        case cst.Call() if path:
            callee = module.callee(node)
            if callee is None:
                # A loss that is unpacked comes with other things.
                return module.value(node).kind in (Kind.BATCH, Kind.TENSOR)
            values = [returned for returned in returns(module, callee) if isinstance(returned, cst.Tuple)]
            given = [steps(module, Source(value, path)) for value in values]
            if not given or not all(given) or len(given) < len(returns(module, callee)):
                return True
            return [source for sources in given for source in sources or ()]
        case _:
            return False


def _is_summand(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a value is one of the items of a container, which are added up for ``backward``."""
    if isinstance(node, cst.Subscript):
        return Backpropagation.of(module).holds_losses(node.value)
    bindings = module.bindings(node)
    return any(Backpropagation.of(module).is_summand(binding) for binding in bindings)


def _may_be_detached(module: Module, name: cst.Name) -> bool:
    """Return whether one of the definitions that reach a name has no graph:
    ``if done: loss = loss.detach()``.
    """
    found = [module.inference.binding(binding) for binding in module.bindings(name)]
    return any(value.tensorlike and value.graph is Graph.DETACHED for value in found)


def _without_graph(module: Module, stored: cst.BaseExpression) -> cst.BaseExpression:
    """Return the part of an expression that brings in the graph, if there is but one."""
    match stored:
        case cst.BinaryOperation():
            sides = [side for side in (stored.left, stored.right) if _has_graph(module, side)]
            return _without_graph(module, sides[0]) if len(sides) == 1 else stored
        case cst.Call(func=cst.Attribute(attr=cst.Name(method), value=owner)):
            if method in _CONVERSIONS and _has_graph(module, owner):
                return _without_graph(module, owner)
            return stored
        case _:
            return stored


def _detached(module: Module, node: cst.BaseExpression) -> str:
    code = module.source(node)
    tight = module.tree.takes_dot(node)
    return f"{code}.detach()" if tight else f"({code}).detach()"

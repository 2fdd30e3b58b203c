"""Whether a second backward pass may go through a graph that the first one was told to keep.

A loss is followed back to what it is computed from. All of it that can carry a graph must be computed in the
same iteration as the loss, by code that the file shows; only then is it known who else can backpropagate
through it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.attributes import part_of
from torchlint.semantics.backpropagation import Backpropagation, Backward
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.identifiers import identifiers, options
from torchlint.semantics.lexicon import Role, begins, ends, has
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.sources import Path, Source, Through, onward, returns, traced
from torchlint.semantics.spellings import last_name, positional
from torchlint.semantics.values import Graph, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_GRAPHLESS = frozenset(
    {
        *(Kind.MODULE, Kind.OPTIMIZER, Kind.SCHEDULER, Kind.LOADER, Kind.DATASET, Kind.SAMPLER, Kind.SCALER),
        *(Kind.ACCELERATOR, Kind.PARAMETERS, Kind.NDARRAY, Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE),
        *(Kind.SHAPE, Kind.CLASS, Kind.FUNCTION, Kind.NAMESPACE, Kind.DEVICE, Kind.DTYPE, Kind.GENERATOR),
    }
)
# Methods and attributes behind which there is no graph.
_CUTS = frozenset(
    {
        *("detach", "detach_", "item", "tolist", "numpy", "data", "grad", "shape", "size", "dim", "ndim"),
        *("dtype", "device", "argmax", "argmin", "long", "int", "bool", "eq", "ne", "numel"),
    }
)
# Libraries whose models keep nothing from one forward pass to the next.
_STATELESS = (
    *(
        "torch.",
        "torchvision.",
        "torchaudio.",
        "timm.",
        "transformers.",
        "diffusers.",
        "monai.",
        "torch_geometric.",
    ),
    *("segmentation_models_pytorch.", "kornia.", "efficientnet_pytorch.", "sentence_transformers.", "peft."),
)
_MOVES = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "bfloat16", "requires_grad_"}
)
_MAY_BACKPROPAGATE = (
    Role.BACKPROPAGATION,
    Role.STEP,
    Role.TRAINING,
    Role.LEARNING,
    Role.OPTIMIZER,
    Role.GRADIENT,
    Role.PENALTY,
    Role.INPUT_GRADIENT,
)


_Places: TypeAlias = "list[tuple[cst.CSTNode, Function | None]]"
"""Expressions, each with the function that a call led into for it."""


@dataclass(slots=True)
class _Graph:
    """What carries the graph of a loss: definitions and calls, all in one iteration."""

    bindings: set[Binding] = field(default_factory=set)
    calls: set[cst.Call] = field(default_factory=set)


def retained_for_nothing(module: Module, call: cst.Call) -> bool:
    """Return whether no other backward pass can go through the graph that a backward pass in a loop keeps."""
    backward = next((b for b in Backpropagation.of(module).passes if b.call is call), None)
    if backward is None:
        return False
    region = _region(module, call)
    if region is None:
        return False
    if isinstance(region, cst.FunctionDef) and (made := _handed_loss(module, call, region)) is not None:
        around = module.flow.statement_loops(made)
        return bool(around) and _Search(module, around[0]).is_alone(backward, made)
    return _Search(module, region).is_alone(backward)


def _handed_loss(module: Module, call: cst.Call, function: cst.FunctionDef) -> cst.BaseExpression | None:
    """Return the loss that the only call of a function hands it, if that is all that it backpropagates.

    The function does nothing else with the loss once its graph is gone.
    """
    loss = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(loss, cst.Name):
        return None
    bindings, callers = module.bindings(loss), module.callers(function)
    if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER or len(callers) != 1:
        return None
    after = (use for use in module.uses(bindings[0]) if module.tree.order[use] > module.tree.order[loss])
    read = (module.tree.parent(use) for use in after)
    if not all(isinstance(each, cst.Attribute) and each.attr.value in _CUTS for each in read):
        return None
    given = module.inference.callgraph.bound_to(callers[0], function).get(loss.value).node
    return given if given is not None and module.home(callers[0]) is module else None


def _region(module: Module, call: cst.Call) -> cst.CSTNode | None:
    """Return the loop, or the function that a loop calls, each round of which makes the graph anew."""
    loops = module.flow.statement_loops(call)
    if loops:
        return loops[0]
    function = module.function(call)
    return function if function is not None and places.hot(module, call) is not None else None


class _Search:
    """One iteration, looked through for what takes part in a backward pass."""

    def __init__(self, module: Module, region: cst.CSTNode) -> None:
        self.module = module
        self.tree = module.tree
        self.region = region
        self.function = region if isinstance(region, cst.FunctionDef) else module.function(region)
        self.graph = _Graph()
        self._seen: set[cst.CSTNode | Binding | Function] = set()

    def is_alone(self, backward: Backward, handed: cst.BaseExpression | None = None) -> bool:
        """Return whether the graph of a backward pass is known, and no later pass goes through it.

        ``handed`` is the loss where it is handed to the function that runs the pass.
        """
        roots = self._roots(backward.call) if handed is None else [handed]
        place: cst.CSTNode = backward.call if handed is None else handed
        if not self._follow(roots):
            return False
        if not self.graph.bindings and not self.graph.calls:
            # A loss that has a graph is computed somewhere.
            return False
        others = [
            other for other in Backpropagation.of(self.module).passes if other.call is not backward.call
        ]
        behind = [other for other in others if self._comes_behind(other.call, place)]
        # Gradients that have a graph lead back into that of what was differentiated.
        differentiated = (other for other in others if other not in behind and self._has_graph(other.call))
        return (
            not any(map(self._shares, behind))
            and not (behind and any(map(self._shares, differentiated)))
            and not self._is_returned()
            and not self._is_handed_on(place)
        )

    def _roots(self, call: cst.Call) -> list[cst.BaseExpression]:
        """Return the losses of a backward pass, and what else it is given by position."""
        given = positional(call)
        if not isinstance(call.func, cst.Attribute) or self.module.qualified(call.func) is not None:
            return given
        owner = call.func.value
        if call.func.attr.value != "backward" or self.module.value(owner).kind is Kind.ACCELERATOR:
            return given
        return [owner, *given]

    # ------------------------------------------------------------------ what the loss is computed from

    def _follow(self, roots: Iterable[cst.BaseExpression]) -> bool:
        """Take in what expressions are computed from; False if something of it may be of another round."""
        waiting: _Places = [(root, None) for root in roots]
        while waiting:
            following = self._computed_from(*waiting.pop())
            if following is None:
                return False
            waiting += following
        return True

    def _computed_from(self, node: cst.CSTNode, entered: Function | None) -> _Places | None:
        """Return what an expression is computed from directly; None if that may be of another round.

        ``entered`` is the function of the file that the expression stands in, if a call led there: what it
        computes is made anew by each call.
        """
        match node:
            case cst.Name():
                return self._defined_by(node, entered)
            case cst.Attribute():
                if node.attr.value in _CUTS or self.module.qualified(node) is not None:
                    return []
                if self._is_graphless(self.module.value(node)) or self._is_option(node):
                    return []
                # A field of something computed in this round; of an object it may be of another.
                return None if self._is_object(node.value) else [(node.value, entered)]
            case cst.Call():
                return self._called_with(node, entered)
            case cst.Lambda() | cst.Await() | cst.Yield() | cst.NamedExpr():
                return None
            case cst.ListComp() | cst.GeneratorExp():
                return [(node.elt, entered), (node.for_in.iter, entered)]
            case _:
                return [(part, entered) for part in self.tree.parts(node)]

    def _is_graphless(self, value: Value) -> bool:
        if value.kind in _GRAPHLESS or value.leaf:
            return True
        if value.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR) and value.item is not None:
            return self._is_graphless(value.item)
        return value.tensorlike and value.graph is Graph.DETACHED

    def _is_option(self, node: cst.Name | cst.Attribute) -> bool:
        """Return whether something of which nothing else is known is an option of the program,
        going by its name.
        """
        if self.module.value(node).kind is not Kind.UNKNOWN:
            return False
        owner = last_name(node.value) if isinstance(node, cst.Attribute) else None
        word = last_name(node) or ""
        if ends(owner, Role.OPTIONS) or ends(word, Role.OPTIONS):
            return True
        # Numbers that losses are weighed by, and counts.
        counts = begins(word, Role.NUMBER) or ends(word, Role.ITERATION)
        return (counts or has(word, Role.FACTOR)) and not self._is_computed(node)

    def _is_computed(self, node: cst.Name | cst.Attribute) -> bool:
        """Return whether something is more than what the function, or the object, was given."""
        if isinstance(node, cst.Name):
            return any(binding.kind is not BindingKind.PARAMETER for binding in self.module.bindings(node))
        assigned = self.module.names.attributes.get(node.attr.value, ())
        return any(not isinstance(a.value, (cst.Name, cst.Attribute)) for a in assigned)

    def _is_object(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression is an instance that lives on, such as ``self``."""
        return self.module.value(node).kind in (Kind.OBJECT, Kind.MODULE)

    def _defined_by(self, name: cst.Name, entered: Function | None) -> _Places | None:
        if self.module.qualified(name) is not None or not self.module.names.is_read(name):
            return []
        if self._is_graphless(self.module.value(name)) or self._is_option(name):
            return []
        found: _Places = []
        for binding in self.module.bindings(name):
            following = self._given(binding, name, entered)
            if following is None:
                return None
            found += following
        return found if self.module.bindings(name) else None

    def _given(self, binding: Binding, use: cst.Name, entered: Function | None) -> _Places | None:
        if self._is_graphless(self.module.inference.binding(binding)):
            return []
        holder = binding.scope.node
        local = holder is entered or (entered is not None and self.module.function(holder) is entered)
        if entered is not None and local and binding.kind is BindingKind.PARAMETER:
            # The call that led here was asked for all of its arguments.
            return []
        if not local and not self._is_of_this_round(binding, use):
            return None
        if binding in self._seen:
            return []
        self._seen.add(binding)
        if not local:
            self.graph.bindings.add(binding)
        if binding.kind is BindingKind.AUGMENT:
            siblings = binding.scope.bindings.get(binding.name, ())
            if not all(local or self.tree.contains(self.region, other.node) for other in siblings):
                return None
            return [(other.value, entered) for other in siblings if other.value is not None]
        return [(binding.value, entered)] if binding.value is not None else None

    def _is_of_this_round(self, binding: Binding, use: cst.Name) -> bool:
        """Return whether a definition belongs to the same iteration as a use of it."""
        if binding.kind is BindingKind.PARAMETER or not self.tree.contains(self.region, binding.node):
            return False
        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION, BindingKind.WITH):
            # What the loop itself hands out may have been computed before it.
            target = getattr(self.region, "target", None)
            return target is None or not self.tree.contains(target, binding.node)
        statement = self.tree.statement(binding.node)
        before = self.tree.order[statement] < self.tree.order[use]
        return before and (binding.kind is BindingKind.AUGMENT or not self.tree.contains(statement, use))

    def _called_with(self, call: cst.Call, entered: Function | None) -> _Places | None:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _CUTS:
            return []
        if self._is_graphless(self.module.value(call)) and self.module.value(call).kind is not Kind.MODULE:
            return []
        if entered is None:
            self.graph.calls.add(call)
        given: _Places = [(argument.value, entered) for argument in call.args]
        through = self._run_by(call, entered)
        return None if through is None else [*given, *through]

    def _run_by(self, call: cst.Call, entered: Function | None) -> _Places | None:
        """Return what the result of a call is computed from beside its arguments."""
        func = call.func
        dotted = self.module.qualified(func)
        if dotted is not None:
            # Functions of a library, or of another file, keep no graph; objects may.
            return None if (last_name(func) or "A")[0].isupper() and not dotted.startswith(_STATELESS) else []
        callee = self.module.callee(call)
        kind = self.module.value(func).kind
        if callee is not None:
            if kind is Kind.CLASS:
                return None
            found = self._returned(callee)
            if isinstance(func, cst.Attribute) and not self._is_object(func.value):
                found.append((func.value, entered))
            return found
        if kind is Kind.MODULE:
            return self._passed_through(func)
        if not isinstance(func, cst.Attribute):
            return None
        if self.module.value(func.value).kind is Kind.MODULE or self._is_self(func.value):
            # ``self.activation``, which may be a function of torch.
            return self._passed_through(func) if func.attr.value in self.module.names.attributes else None
        return [(func.value, entered)]

    def _passed_through(self, model: cst.BaseExpression) -> _Places | None:
        """Return what a pass through a model is computed from;
        None if that may keep something from pass to pass.
        """
        made = _made_by(self.module, model)
        found: _Places = []
        for maker in made:
            if isinstance(maker, cst.ClassDef):
                forward = self.module.classes.info(maker).method("forward")
                if forward is None:
                    return None
                found += self._returned(forward)
            elif not maker:
                return None
        return found if made else None

    def _returned(self, function: Function) -> _Places:
        """Return what a function of the file returns, unless that was taken in already."""
        if function in self._seen:
            return []
        self._seen.add(function)
        return [(value, function) for value in returns(self.module, function)]

    def _is_self(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value in ("self", "cls")

    # ------------------------------------------------------------------ who else goes through it

    def _comes_behind(self, other: cst.Call, backward: cst.CSTNode) -> bool:
        """Return whether a pass may run after this one, in the same iteration."""
        if self.module.function(other) is not self.module.function(backward):
            return True
        return self.tree.order[other] > self.tree.order[backward]

    def _has_graph(self, call: cst.Call) -> bool:
        """Return whether the gradients that a pass computes may be differentiated: ``create_graph=True``."""
        asked = self.module.argument(call, "create_graph")
        return not asked.absent and asked.constant is not False

    def _shares(self, other: Backward) -> bool:
        flow = Backpropagation.of(self.module).flow(other.roots)
        return not (self.graph.bindings.isdisjoint(flow.places) and self.graph.calls.isdisjoint(flow.calls))

    def _carried(self, node: cst.CSTNode) -> bool:
        """Return whether an expression is, or holds, a part of the graph as it is."""
        match node:
            case cst.Name():
                return self.module.names.is_read(node) and any(
                    binding in self.graph.bindings for binding in self.module.bindings(node)
                )
            case cst.Attribute():
                return node.attr.value not in _CUTS and self._carried(node.value)
            case cst.Call():
                if isinstance(node.func, cst.Attribute):
                    if node.func.attr.value in _CUTS or node.func.attr.value == "backward":
                        return False
                    if self._carried(node.func.value):
                        return True
                if self._is_graphless(self.module.value(node)):
                    return False
                return any(self._carried(argument.value) for argument in node.args)
            case _:
                return any(self._carried(part) for part in self.tree.parts(node))

    def _is_returned(self) -> bool:
        """Return whether a part of the graph leaves the function for callers that the file does not show."""
        if not isinstance(self.function, cst.FunctionDef) or self.module.callers(self.function):
            return False
        return any(
            statement.value is not None
            and self.module.function(statement) is self.function
            and self._carried(statement.value)
            for statement in self.tree.nodes(cst.Return)
        )

    def _is_handed_on(self, backward: cst.CSTNode) -> bool:
        """Return whether a function of another file gets a part of the graph later, and may go through it."""
        order = self.tree.order
        for call in self.tree.nodes(cst.Call):
            if order[call] <= order[backward] or self.tree.contains(call, backward):
                continue
            if self.module.function(call) is not self.module.function(backward):
                continue
            if self.module.callee(call) is None:
                may_go = has(last_name(call.func), *_MAY_BACKPROPAGATE)
            else:
                may_go = Backpropagation.of(self.module).computes_gradients(call)
            if may_go and any(self._carried(argument.value) for argument in call.args):
                return True
        return any(
            isinstance(assign.targets[0].target, cst.Attribute)
            and self.tree.contains(self.region, assign)
            and self._carried(assign.value)
            for assign in self.tree.nodes(cst.Assign)
        )


# --- models that keep nothing -----------------------------------------------------------------------


@traced(Through.ITEMS)
def _made_by(module: Module, model: cst.CSTNode, path: Path) -> bool | cst.ClassDef | list[Source] | None:
    """Return whether a model is made by a library whose models keep nothing from pass to pass,
    or by which class.
    """
    dotted = module.qualified(model)
    if dotted is not None:
        return dotted.startswith(_STATELESS)
    match model:
        case cst.Param():
            return not _speaks_of_states(module)
        case cst.Attribute(attr=cst.Name("module")) | cst.Subscript():
            return onward(model.value)
        case cst.Attribute():
            assigned = module.names.attributes.get(model.attr.value, ())
            values = [part_of(b.value, b.path) if b.value is not None else None for b in assigned]
            known = [value for value in values if value is not None]
            return len(known) == len(values) and (onward(*known) or False)
        case cst.Call():
            return _made_by_call(module, model)
        case _:
            return None


def _made_by_call(module: Module, call: cst.Call) -> bool | cst.ClassDef | list[Source] | None:
    dotted = module.qualified(call.func)
    if dotted is not None:
        if dotted.startswith("builtins."):
            return None
        if not dotted.startswith(_STATELESS):
            return not _speaks_of_states(module)
        models = [a.value for a in call.args if module.value(a.value).kind is Kind.MODULE]
        return onward(*models) or True
    definition = module.value(call).definition
    if isinstance(definition, cst.ClassDef):
        return definition
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _MOVES:
        return onward(call.func.value)
    if module.callee(call) is None:
        return not _speaks_of_states(module)
    # ``initialised(nn.Linear(64, 64))``
    return onward(*_handed_back(module, call)) or False


def _handed_back(module: Module, call: cst.Call) -> list[cst.BaseExpression]:
    """Return the arguments that a function of the file returns as they are; empty if it returns more."""
    callee = module.callee(call)
    found: list[cst.BaseExpression] = []
    for name in returns(module, callee) if callee is not None else ():
        if not isinstance(name, cst.Name) or not all(
            binding.kind is BindingKind.PARAMETER for binding in module.bindings(name)
        ):
            return []
        found += module.call(call).get(name.value).nodes
    return found


def _speaks_of_states(module: Module) -> bool:
    """Return whether the file knows of what models keep from one pass to the next.

    Where that has a graph, each backward pass goes through those before it as well. A model of another
    file is taken to keep nothing if the code that trains it does not speak of it.
    """
    return any(has(name, Role.CARRIED) for name in (identifiers(module) | options(module)) - _OF_STORAGE)


# What torch calls the memory of a machine or of a device, and how a tensor lies in it.
_OF_STORAGE = frozenset(
    {"max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_format", "memory_reserved"}
    | {"memory_stats", "memory_summary", "mem_get_info", "pin_memory", "pin_memory_device", "pinned_memory"}
    | {"register_buffer", "reset_peak_memory_stats", "share_memory", "share_memory_"}
    | {"--pin-memory", "--pin-mem", "pin_mem"}
)

"""Whether a second backward pass may go through a graph that the first one was told to keep.

A loss is followed back to what it is computed from. All of it that can carry a graph must be computed in the
same iteration as the loss, by code that the file shows; only then is it known who else can backpropagate
through it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.backpropagation import Backpropagation, Backward
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.lexicon import Role, ends, has
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Graph, Kind, Value

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_HOPS = 60

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
# Numbers that losses are weighed by, and counts.
_FACTOR = re.compile(r"^(lambda|lam)_\w+$|(^|_)(weight|coeff?|lambda|steps|num_\w+|n_\w+)$", re.IGNORECASE)
_STATES = re.compile(
    r"hidden|recurren|repackage|lstm|gru\b|rnn|memor(y|ies)\b|\bmems?\b|carry|stateful|bptt|init_state|reset_state"
    r"|spike|membrane|buffer",
    re.IGNORECASE,
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


@dataclass(slots=True)
class _Graph:
    """What carries the graph of a loss: definitions and calls, all in one iteration."""

    bindings: set[Binding] = field(default_factory=set)
    calls: set[cst.Call] = field(default_factory=set)


def retained_for_nothing(call: cst.Call, module: Module) -> bool:
    """Whether no other backward pass can go through the graph that a backward pass in a loop keeps."""
    backward = next((b for b in Backpropagation.of(module).passes if b.call is call), None)
    if backward is None:
        return False
    region = _region(call, module)
    if region is None:
        return False
    return _Search(module, region).is_alone(backward)


def _region(call: cst.Call, module: Module) -> cst.CSTNode | None:
    """The loop, or the function that a loop calls, each round of which makes the graph anew."""
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

    def is_alone(self, backward: Backward) -> bool:
        """Whether the graph of a backward pass is known, and no later pass goes through it."""
        if not all(self._follow(root, None, _HOPS) for root in self._roots(backward.call)):
            return False
        if not self.graph.bindings and not self.graph.calls:
            # A loss that has a graph is computed somewhere.
            return False
        others = (
            other for other in Backpropagation.of(self.module).passes if other.call is not backward.call
        )
        return (
            not any(self._comes_behind(other.call, backward.call) and self._shares(other) for other in others)
            and not self._is_returned()
            and not self._is_handed_on(backward.call)
        )

    def _roots(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The losses of a backward pass, and what else it is given by position."""
        given = [argument.value for argument in call.args if argument.keyword is None]
        if not isinstance(call.func, cst.Attribute) or self.module.qualified(call.func) is not None:
            return given
        owner = call.func.value
        if call.func.attr.value != "backward" or self.module.value(owner).kind is Kind.ACCELERATOR:
            return given
        return [owner, *given]

    # ------------------------------------------------------------------ what the loss is computed from

    def _follow(self, node: cst.CSTNode, entered: Function | None, hops: int) -> bool:
        """Take in what an expression is computed from; False if something of it may be of another round.

        ``entered`` is the function of the file that the expression stands in, if a call led there: what it
        computes is made anew by each call.
        """
        if hops == 0:
            return False
        match node:
            case cst.Name():
                return self._follow_name(node, entered, hops)
            case cst.Attribute():
                if node.attr.value in _CUTS or self.module.qualified(node) is not None:
                    return True
                if self._is_graphless(self.module.value(node)) or self._is_option(node):
                    return True
                # A field of something computed in this round; of an object it may be of another.
                return not self._is_object(node.value) and self._follow(node.value, entered, hops)
            case cst.Call():
                return self._follow_call(node, entered, hops)
            case cst.Lambda() | cst.Await() | cst.Yield() | cst.NamedExpr():
                return False
            case cst.ListComp() | cst.GeneratorExp():
                return self._follow(node.elt, entered, hops) and self._follow(node.for_in.iter, entered, hops)
            case cst.BaseExpression():
                return all(self._follow(child, entered, hops) for child in self._operands(node))
            case _:
                return True

    def _operands(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The expressions directly below an expression."""
        found: list[cst.BaseExpression] = []
        waiting = [inner for inner in self.tree.descendants(node) if self.tree.parent(inner) is node]
        while waiting:
            inner = waiting.pop()
            if isinstance(inner, cst.BaseExpression):
                found.append(inner)
            else:
                waiting += [i for i in self.tree.descendants(inner) if self.tree.parent(i) is inner]
        return found

    def _is_graphless(self, value: Value) -> bool:
        if value.kind in _GRAPHLESS or value.leaf:
            return True
        if value.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR) and value.item is not None:
            return self._is_graphless(value.item)
        return value.tensorlike and value.graph is Graph.DETACHED

    def _is_option(self, node: cst.Name | cst.Attribute) -> bool:
        """Whether something of which nothing else is known is an option of the program, going by its name."""
        if self.module.value(node).kind is not Kind.UNKNOWN:
            return False
        owner = last_name(node.value) if isinstance(node, cst.Attribute) else None
        word = last_name(node) or ""
        if ends(owner, Role.OPTIONS) or ends(word, Role.OPTIONS):
            return True
        return _FACTOR.search(word) is not None and not self._is_computed(node)

    def _is_computed(self, node: cst.Name | cst.Attribute) -> bool:
        """Whether something is more than what the function, or the object, was given."""
        if isinstance(node, cst.Name):
            return any(binding.kind is not BindingKind.PARAMETER for binding in self.module.bindings(node))
        assigned = self.module.names.attributes.get(node.attr.value, ())
        return any(not isinstance(a.value, (cst.Name, cst.Attribute)) for a in assigned)

    def _is_object(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is an instance that lives on, such as ``self``."""
        return self.module.value(node).kind in (Kind.OBJECT, Kind.MODULE)

    def _follow_name(self, name: cst.Name, entered: Function | None, hops: int) -> bool:
        if self.module.qualified(name) is not None or not self.module.names.is_read(name):
            return True
        if self._is_graphless(self.module.value(name)) or self._is_option(name):
            return True
        bindings = self.module.bindings(name)
        return bool(bindings) and all(
            self._follow_binding(binding, name, entered, hops) for binding in bindings
        )

    def _follow_binding(self, binding: Binding, use: cst.Name, entered: Function | None, hops: int) -> bool:
        if self._is_graphless(self.module.inference.binding(binding)):
            return True
        holder = binding.scope.node
        local = holder is entered or (entered is not None and self.module.function(holder) is entered)
        if entered is not None and local and binding.kind is BindingKind.PARAMETER:
            # The call that led here was asked for all of its arguments.
            return True
        if not local and not self._is_of_this_round(binding, use):
            return False
        if binding in self._seen:
            return True
        self._seen.add(binding)
        if not local:
            self.graph.bindings.add(binding)
        if binding.kind is BindingKind.AUGMENT:
            siblings = binding.scope.bindings.get(binding.name, ())
            if not all(local or self.tree.contains(self.region, other.node) for other in siblings):
                return False
            return all(
                other.value is None or self._follow(other.value, entered, hops - 1) for other in siblings
            )
        return binding.value is not None and self._follow(binding.value, entered, hops - 1)

    def _is_of_this_round(self, binding: Binding, use: cst.Name) -> bool:
        """Whether a definition belongs to the same iteration as a use of it."""
        if binding.kind is BindingKind.PARAMETER or not self.tree.contains(self.region, binding.node):
            return False
        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION, BindingKind.WITH):
            # What the loop itself hands out may have been computed before it.
            return binding.node is not getattr(self.region, "target", None) and not self._is_target(binding)
        statement = self.tree.statement(binding.node)
        before = self.tree.order[statement] < self.tree.order[use]
        return before and (binding.kind is BindingKind.AUGMENT or not self.tree.contains(statement, use))

    def _is_target(self, binding: Binding) -> bool:
        target = getattr(self.region, "target", None)
        return target is not None and self.tree.contains(target, binding.node)

    def _follow_call(self, call: cst.Call, entered: Function | None, hops: int) -> bool:
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in _CUTS:
            return True
        if self._is_graphless(self.module.value(call)) and self.module.value(call).kind is not Kind.MODULE:
            return True
        if entered is None:
            self.graph.calls.add(call)
        if not all(self._follow(argument.value, entered, hops) for argument in call.args):
            return False
        dotted = self.module.qualified(func)
        if dotted is not None:
            # Functions of a library, or of another file, keep no graph; objects may.
            return not (last_name(func) or "A")[0].isupper() or dotted.startswith(_STATELESS)
        callee = self.module.callee(call)
        value = self.module.value(func)
        if callee is not None:
            if value.kind is Kind.CLASS:
                return False
            return self._follow_function(callee, hops) and self._follow_receiver(func, entered, hops)
        if value.kind is Kind.MODULE:
            return self._is_stateless(func)
        if isinstance(func, cst.Attribute):
            owner = func.value
            if self.module.value(owner).kind is Kind.MODULE or self._is_self(owner):
                # ``self.activation``, which may be a function of torch.
                return func.attr.value in self.module.names.attributes and self._is_stateless(func)
            return self._follow(owner, entered, hops)
        return False

    def _follow_receiver(self, func: cst.BaseExpression, entered: Function | None, hops: int) -> bool:
        if not isinstance(func, cst.Attribute) or self._is_object(func.value):
            return True
        return self._follow(func.value, entered, hops)

    def _is_self(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Name) and node.value in ("self", "cls")

    def _follow_function(self, function: Function, hops: int) -> bool:
        """Take in what a function of the file returns."""
        if function in self._seen:
            return True
        self._seen.add(function)
        if isinstance(function, cst.Lambda):
            return self._follow(function.body, function, hops - 1)
        returned = [r.value for r in self.tree.nodes(cst.Return) if self.module.function(r) is function]
        return all(value is None or self._follow(value, function, hops - 1) for value in returned)

    @remembered
    def _is_stateless(self, model: cst.BaseExpression, hops: int = 4) -> bool:
        """Whether a model is made by a library whose models keep nothing from pass to pass."""
        if hops == 0:
            return False
        dotted = self.module.qualified(model)
        if dotted is not None:
            return dotted.startswith(_STATELESS)
        match model:
            case cst.IfExp():
                return self._is_stateless(model.body, hops) and self._is_stateless(model.orelse, hops)
            case cst.Name():
                bindings = self.module.bindings(model)
                if bindings and all(binding.kind is BindingKind.PARAMETER for binding in bindings):
                    return not self._speaks_of_states
                made = [_unpacked(binding.value, binding.path) for binding in bindings]
            case cst.Attribute(attr=cst.Name("module")):
                return self._is_stateless(model.value, hops)
            case cst.Attribute():
                attributes = self.module.names.attributes.get(model.attr.value, ())
                made = [_unpacked(binding.value, binding.path) for binding in attributes]
            case cst.Subscript():
                return self._is_stateless(model.value, hops)
            case cst.Call():
                return self._makes_stateless(model, hops)
            case _:
                return False
        return bool(made) and all(value is not None and self._is_stateless(value, hops - 1) for value in made)

    def _makes_stateless(self, call: cst.Call, hops: int) -> bool:
        dotted = self.module.qualified(call.func)
        if dotted is None:
            value = self.module.value(call)
            if isinstance(value.definition, cst.ClassDef):
                return self._follow_module(value.definition)
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in _MOVES:
                return self._is_stateless(func.value, hops)
            # ``initialised(nn.Linear(64, 64))``
            given = self._handed_back(call)
            if not given and self.module.callee(call) is None:
                return not self._speaks_of_states
            return bool(given) and all(self._is_stateless(argument, hops - 1) for argument in given)
        if not dotted.startswith(_STATELESS):
            return not self._speaks_of_states
        return all(
            self._is_stateless(argument.value, hops - 1)
            for argument in call.args
            if self.module.value(argument.value).kind is Kind.MODULE
        )

    @cached_property
    def _speaks_of_states(self) -> bool:
        """Whether the file knows of what models keep from one pass to the next.

        Where that has a graph, each backward pass goes through those before it as well. A model of another
        file is taken to keep nothing if the code that trains it does not speak of it.
        """
        return self.tree.matches(_STATES)

    def _handed_back(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The arguments that a function of the file returns as they are; empty if it returns more."""
        callee = self.module.callee(call)
        found: list[cst.BaseExpression] = []
        for statement in self.tree.nodes(cst.Return):
            if self.module.function(statement) is not callee:
                continue
            name = statement.value
            if not isinstance(name, cst.Name) or not all(
                binding.kind is BindingKind.PARAMETER for binding in self.module.bindings(name)
            ):
                return []
            found += self.module.call(call).get(name.value).nodes
        return found

    def _follow_module(self, definition: cst.ClassDef) -> bool:
        forward = self.module.classes.info(definition).method("forward")
        return forward is not None and self._follow_function(forward, _HOPS)

    # ------------------------------------------------------------------ who else goes through it

    def _comes_behind(self, other: cst.Call, backward: cst.Call) -> bool:
        """Whether a pass may run after this one, in the same iteration."""
        if self.module.function(other) is not self.module.function(backward):
            return True
        return self.tree.order[other] > self.tree.order[backward]

    def _shares(self, other: Backward) -> bool:
        flow = Backpropagation.of(self.module).flow(other.roots)
        return not (self.graph.bindings.isdisjoint(flow.places) and self.graph.calls.isdisjoint(flow.calls))

    def _carried(self, node: cst.CSTNode) -> bool:
        """Whether an expression is, or holds, a part of the graph as it is."""
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
            case cst.BaseExpression():
                return any(self._carried(operand) for operand in self._operands(node))
            case _:
                return False

    def _is_returned(self) -> bool:
        """Whether a part of the graph leaves the function for callers that the file does not show."""
        if not isinstance(self.function, cst.FunctionDef) or self.module.callers(self.function):
            return False
        return any(
            statement.value is not None
            and self.module.function(statement) is self.function
            and self._carried(statement.value)
            for statement in self.tree.nodes(cst.Return)
        )

    def _is_handed_on(self, backward: cst.Call) -> bool:
        """Whether a function of another file gets a part of the graph later, and may go through it."""
        order = self.tree.order
        for call in self.tree.nodes(cst.Call):
            if order[call] <= order[backward] or self.module.function(call) is not self.module.function(
                backward
            ):
                continue
            if self.module.callee(call) is None and has(last_name(call.func), *_MAY_BACKPROPAGATE):
                if any(self._carried(argument.value) for argument in call.args):
                    return True
        return any(
            isinstance(assign.targets[0].target, cst.Attribute)
            and self.tree.contains(self.region, assign)
            and self._carried(assign.value)
            for assign in self.tree.nodes(cst.Assign)
        )


def _unpacked(value: cst.BaseExpression | None, path: tuple[int | None, ...]) -> cst.BaseExpression | None:
    """The part of a value that a name gets, if the parts are written out."""
    match value, path:
        case _, ():
            return value
        case ((cst.Tuple(elements=elements) | cst.List(elements=elements)), (int(index),)):
            return elements[index].value if -len(elements) <= index < len(elements) else None
        case _:
            return None

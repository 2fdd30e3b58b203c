"""Evaluates expressions without running them: which values can stand at a node.

Evaluation is lazy and remembered. It follows assignments by reaching definitions, unpacking, attributes
of ``self`` across the methods of a class, loop and comprehension targets, parameters (annotation, then
the calls in the file, then how the parameter is used, conventional names last) and the results of
functions of the file. Where the trail ends the answer is ``UNKNOWN``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import libcst as cst

from torchlint.effort import ExhaustedError
from torchlint.semantics.annotations import Annotations
from torchlint.semantics.api import results
from torchlint.semantics.callgraph import CallGraph
from torchlint.semantics.callresults import CallResults
from torchlint.semantics.classes import Classes
from torchlint.semantics.clues import Clues
from torchlint.semantics.containers import Containers
from torchlint.semantics.conventions import names_accelerator, says_host
from torchlint.semantics.declared import Declared, is_declared
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evaluator import FEW
from torchlint.semantics.fixpoint import MANY, Answers
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.flow.guards import guards, unchanged
from torchlint.semantics.library import Library
from torchlint.semantics.linked import Target, handing_on
from torchlint.semantics.members import Members
from torchlint.semantics.names import (
    IMPORTERS,
    Binding,
    BindingKind,
    Names,
    Store,
    canonical,
    words_of_stores,
)
from torchlint.semantics.parameters import Parameters
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import is_none, last_name
from torchlint.semantics.values import (
    BOOL,
    BOTTOM,
    COLLECTIONS,
    MISSING,
    MOST_ALTERNATIVES,
    NDARRAY,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Memory,
    Value,
    bounded,
    defined,
    dict_item,
    join,
    join_devices,
    placed_as,
    solid,
    unknown_of,
    without_constants,
)
from torchlint.syntax import SyntaxTree

Part = TypeVar("Part")
_VALUES = Answers(nothing=BOTTOM, unknown=UNKNOWN)
_NUMBERS: dict[type, Callable[[str], complex]] = {
    cst.Integer: partial(int, base=0),
    cst.Float: float,
    cst.Imaginary: complex,
}


class Inference:
    """The values of one file.

    ``declared`` are the names of the configuration; the façade supplies them.
    ``grad_off`` tells whether autograd is off where a node runs; the façade supplies it, since places
    know about grad mode and places ask for values.
    """

    answers_for_all = frozenset({"value", "element", "iterated", "unpacked", "call_of"})

    def __init__(self, tree: SyntaxTree, names: Names, flow: ControlFlow, classes: Classes) -> None:
        self.tree = tree
        self.link = names.link
        self.flow = flow
        self.effort = tree.effort
        self.names = names
        self.classes = classes
        self.grad_off: Callable[[cst.CSTNode], bool] = lambda node: False
        self.declared: Declared | None = None
        self.fixpoint = names.fixpoint
        self.library = Library(self)
        self.annotations = self._part(Annotations)(self, self.library)
        self.callgraph = self._part(CallGraph)(self)
        self.clues = self._part(Clues)(self)
        self.parameters = self._part(Parameters)(self, self.annotations, self.callgraph)
        self.containers = self._part(Containers)(self, flow, self.library, self.callgraph, self.clues)
        self.members = self._part(Members)(
            self,
            flow,
            self.library,
            self.annotations,
            self.callgraph,
            self.clues,
            self.parameters,
            self.containers,
        )
        self.calls = self._part(CallResults)(
            self, flow, self.library, self.annotations, self.callgraph, self.containers, self.members
        )

    def _part(self, kind: type[Part]) -> type[Part]:
        return kind if self.link is None else handing_on(kind)

    @staticmethod
    def counterpart(module: Any) -> Inference:
        """Return the evaluator of a module."""
        inference: Inference = module.inference
        return inference

    # ------------------------------------------------------------------ what its parts answer

    def attribute(self, base: Value, attr: str, node: cst.CSTNode | None = None) -> Value:
        """Return the value of ``base.attr``."""
        return self.members.attribute(base, attr, node)

    def element(self, value: Value, index: int | None = None) -> Value:
        """Return the value of ``value[index]``."""
        return self.containers.element(value, index)

    def iterated(self, value: Value) -> Value:
        """Return what ``for x in value`` gives ``x``."""
        return self.containers.iterated(value)

    def unpacked(self, value: Value, path: Sequence[int | None]) -> Value:
        """Return what assigning a value gives the target at ``path``, as in `Binding.path`."""
        return self.containers.unpacked(value, path)

    def held_under(self, base: Value, key: cst.BaseExpression) -> Value | None:
        """Return what a dict has under a key; None if that is not known."""
        return self.containers.held_under(base, key)

    def call_of(self, callee: Value, node: cst.Call) -> Value:
        """Return what calling ``callee`` at ``node`` gives."""
        return self.calls.call_of(callee, node)

    def called(self, node: cst.Call) -> Value:
        """Return what a call runs, as ``field(default_factory=…)`` does to what it is given."""
        return self.calls.called(node)

    def returned(self, function: Function) -> Value:
        """Return what a function returns, whoever calls it; a generator is an iterator."""
        return self.calls.returned(function)

    def instance(self, definition: cst.ClassDef) -> Value:
        """Return an instance of a class."""
        return self.calls.instance(definition)

    # ------------------------------------------------------------------ the evaluator

    def value(self, node: cst.CSTNode) -> Value:
        """Return what ``node`` can evaluate to, for the definition of a function what its calls return.

        A definition that depends on itself (``x = f(x)`` in a loop) contributes nothing of its own: its
        value is the least that agrees with everything else that it depends on.
        """
        effort = self.effort
        effort.spent += 1
        if effort.spent > effort.limit:
            raise ExhaustedError
        found: Value = self.fixpoint.ask(node, self._evaluate, _VALUES)
        return found

    def _evaluate(self, node: cst.CSTNode) -> Value:
        if self.link is not None and self.tree.is_elsewhere(node):
            return self.counterpart(self.link.home(node))._evaluate(node)
        self.effort.spent += 3
        work_out = _BY_TYPE.get(node.__class__)
        found = bounded(work_out(self, node)) if work_out is not None else UNKNOWN
        moved = found.kind is Kind.UNKNOWN and found.device is Device.ACCELERATOR
        if moved and self._is_asked_as_array(node):
            found = TENSOR.on(found.device)
        if self.declared is not None and isinstance(node, (cst.Name, cst.Attribute)):
            return self._as_declared(node, found, self.declared)
        return found

    def _is_asked_as_array(self, node: cst.CSTNode) -> bool:
        """Return whether ``x.sum()`` or ``float(x)`` asks for what only tensors have on a device."""
        match self.tree.parent(node):
            case cst.Attribute(value=owner, attr=cst.Name(attr)) as asked if owner is node:
                return attr in results.ARRAY_METHODS and self.tree.is_called(asked)
            case cst.Arg(value=asked) as argument if asked is node:
                match self.tree.parent(argument):
                    case cst.Call(func=cst.Name("float" | "int" | "bool")):
                        return True
        return False

    def _as_declared(self, node: cst.Name | cst.Attribute, found: Value, declared: Declared) -> Value:
        """Return a tensor, or what may be one, where the configuration says that it is."""
        # What is called `ids_gpu` is taken for a device, if nothing else is known of it.
        open_ = found.kind is Kind.UNKNOWN or (found.kind is Kind.DEVICE and found.constant is MISSING)
        if found is BOTTOM or not (found.tensorlike or open_):
            return found
        there = ((Device.CPU, declared.host_names), (Device.ACCELERATOR, declared.device_names))
        for device, names in there:
            if names and is_declared(self.names, node, names) and not self.tree.is_called(node):
                return (TENSOR if open_ else found).on(device)
        return found

    def _number(self, node: cst.Integer | cst.Float | cst.Imaginary) -> Value:
        read = _NUMBERS[node.__class__]
        try:
            return NUMBER._replace(constant=read(node.value))
        except ValueError:  # an integer of more digits than the interpreter reads
            return NUMBER

    def _formatted(self, node: cst.FormattedString) -> Value:
        head = node.parts[0] if node.parts else None
        text = head.value if isinstance(head, cst.FormattedStringText) else ""
        return STRING.on(Device.ACCELERATOR) if names_accelerator(text) else STRING

    def _operation(self, node: cst.BinaryOperation) -> Value:
        return self.library.operate(self.value(node.left), self.value(node.right), node)

    def _either(self, node: cst.BooleanOperation) -> Value:
        return join((self.value(node.left), self.value(node.right)))

    def _choice(self, node: cst.IfExp) -> Value:
        return join((self.value(node.body), self.value(node.orelse)))

    def _dict(self, node: cst.Dict) -> Value:
        entries = [element.value for element in node.elements]
        if self._is_registry(entries):
            # It may give any of them: no file is looked at but that of the one which a key picks.
            return Value(Kind.DICT, item=UNKNOWN, origin=node)
        many = len(entries) > MANY
        items = [
            UNKNOWN
            if many and isinstance(e.value, (cst.Name, cst.Attribute, cst.Call))
            else self.value(e.value)
            if isinstance(e, cst.DictElement)
            else dict_item(self.value(e.value))
            for e in node.elements
        ]
        fields: dict[str, Value] = {}
        for element, item in zip(node.elements, items, strict=True):
            key = element.key if isinstance(element, cst.DictElement) else None
            if not isinstance(key, cst.SimpleString) or not isinstance(key.evaluated_value, str):
                return Value(Kind.DICT, item=join(items), origin=node)
            fields[key.evaluated_value] = solid(item)
        shared = join(items) if items else None
        return Value(Kind.DICT, item=shared, origin=node, fields=tuple(sorted(fields.items())))

    def _comprehension(self, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Value:
        kind = Kind.ITERATOR if isinstance(node, cst.GeneratorExp) else Kind.LIST
        return Value(kind, item=_item(self.value(node.elt)), origin=node)

    def _dict_comprehension(self, node: cst.DictComp) -> Value:
        return Value(Kind.DICT, item=_item(self.value(node.value)), origin=node)

    def _lambda(self, node: cst.Lambda) -> Value:
        return Value(Kind.FUNCTION, definition=node)

    def _held(self, node: cst.NamedExpr | cst.Arg | cst.Element | cst.Index | cst.Expr) -> Value:
        return self.value(node.value)

    def _awaited(self, node: cst.Await) -> Value:
        return self.value(node.expression)

    def _string(self, node: cst.SimpleString | cst.ConcatenatedString) -> Value:
        text = node.evaluated_value
        if not isinstance(text, str):
            return STRING
        device = Device.UNKNOWN
        if names_accelerator(text):
            device = Device.ACCELERATOR
        elif text == "cpu" or text.startswith("cpu:"):
            device = Device.CPU
        return Value(Kind.STRING, device=device, constant=text)

    def _display(self, node: cst.Tuple | cst.List | cst.Set) -> Value:
        kind = Kind.TUPLE if isinstance(node, cst.Tuple) else Kind.LIST
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            items = [
                solid(self.containers.iterated(self.value(e.value)))
                if isinstance(e, cst.StarredElement)
                else solid(self.value(e.value))
                for e in node.elements
            ]
            return Value(kind, item=join(items), origin=node)
        if self._is_registry([element.value for element in node.elements]):
            return Value(kind, item=UNKNOWN, origin=node)
        if len(node.elements) > MANY:
            return Value(kind, item=solid(self.value(node.elements[0].value)), origin=node)
        return Value(kind, elements=tuple(solid(self.value(e.value)) for e in node.elements), origin=node)

    def _is_registry(self, entries: Sequence[cst.BaseExpression]) -> bool:
        """Return whether so many entries are of other files that their join would tell nothing."""
        if self.names.link is None or len(entries) <= MOST_ALTERNATIVES:
            return False
        return sum(map(self._is_of_another_file, entries)) > MOST_ALTERNATIVES

    def _is_of_another_file(self, entry: cst.BaseExpression) -> bool:
        """Return whether an entry, or a part of a pair, is what an import brings from the project."""
        if isinstance(entry, cst.Tuple):
            return any(self._is_of_another_file(element.value) for element in entry.elements)
        link = self.names.link
        return link is not None and any(
            binding.kind is BindingKind.IMPORT and link.defines(self.names, binding)
            for binding in self.names.bindings(entry)
        )

    def _unary(self, node: cst.UnaryOperation) -> Value:
        operand = self.value(node.expression)
        if isinstance(node.operator, cst.Not):
            known = operand.kind in (Kind.BOOL, Kind.NUMBER) and operand.constant is not MISSING
            return BOOL._replace(constant=not operand.constant) if known else BOOL
        if operand.kind is Kind.NUMBER and isinstance(node.operator, cst.Minus):
            number = operand.constant
            negated = -number if isinstance(number, (int, float)) else MISSING
            return NUMBER._replace(constant=negated, literal=operand.literal)
        if isinstance(node.operator, cst.BitInvert) and operand.dtype == "torch.bool":
            return operand
        return self.library.tensor(operand)._replace(dtype=operand.dtype) if operand.tensorlike else operand

    def _comparison(self, node: cst.Comparison) -> Value:
        operators = [c.operator for c in node.comparisons]
        if any(isinstance(o, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for o in operators):
            return BOOL
        nodes = [node.left, *(c.comparator for c in node.comparisons)]
        operands = [self.value(n) for n in nodes]
        if any(map(is_none, nodes)):
            return BOOL  # a tensor leaves the answer to Python, which compares identities
        if any(v.kind is Kind.TENSOR for v in operands):
            return self.library.tensor(*operands)._replace(graph=Graph.DETACHED, dtype="torch.bool")
        if any(v.kind is Kind.NDARRAY for v in operands):
            return NDARRAY._replace(dtype="bool", part=any(v.part for v in operands))
        shown = [
            v.kind is Kind.BATCH and self._shown_tensor(n, v) for n, v in zip(nodes, operands, strict=True)
        ]
        if any(shown) and _ordered(operators, operands):
            batches = [v for v in operands if v.tensorlike]
            device = join_devices(v.device for v in batches)
            return Value(Kind.TENSOR, device=device, graph=Graph.DETACHED, dtype="torch.bool")
        if any(v.kind in (Kind.UNKNOWN, Kind.BATCH) for v in operands):
            # The side that the file does not show may be a tensor, unless the other is a plain word.
            plain = any(v.kind in (Kind.STRING, Kind.SHAPE, Kind.DEVICE) for v in operands)
            return BOOL if plain else unknown_of(operands)
        return BOOL

    def _shown_tensor(self, node: cst.BaseExpression, value: Value) -> bool:
        """Return whether a batch is used as a tensor nearby; an input of a forward may be a number."""
        if isinstance(node, cst.BinaryOperation):
            sides = [(side, self.value(side)) for side in (node.left, node.right)]
            return any(v.kind is Kind.BATCH and self._shown_tensor(side, v) for side, v in sides)
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name):
            # What is unpacked from an input may be a part of any structure, ``node[1]`` of a tree.
            bindings = self.names.bindings(node.value)
            if bindings and all(b.kind is BindingKind.ASSIGN and b.path for b in bindings):
                return self._shown_tensor(node.value, value)
        if not isinstance(node, cst.Name) or value.origin is not None:
            return True
        used = self.clues.used_attributes(node)
        return any(attr in results.TENSOR_METHODS or attr in results.TENSOR_ATTRIBUTES for attr in used)

    # ------------------------------------------------------------------ names

    def _name(self, node: cst.Name) -> Value:
        constant = _CONSTANT_NAMES.get(node.value)
        if constant is not None:
            return constant
        bindings = self._of_project(self.names.bindings(node))
        if not bindings:
            dotted = self.names.qualified(node)
            return self.library.named(dotted) if dotted is not None else self.clues.by_name(node.value, node)
        result = self._of_several(bindings)
        if result is BOTTOM:
            return result
        if result.kind is Kind.UNKNOWN and self._is_proven_tensor(node):
            result = self._tensor_among(bindings)
        if result.tensorlike or result.kind in (Kind.UNKNOWN, Kind.LOADER):
            narrowed = self.proven(node, result)
            if narrowed is not None:
                if result.tensorlike and narrowed.kind in COLLECTIONS and narrowed.item is None:
                    # ``if isinstance(out, tuple): out = out[0]``: a batch, or an output, of several parts.
                    return narrowed._replace(item=result._replace(kind=Kind.BATCH, constant=MISSING))
                return narrowed
        if result.kind is Kind.UNKNOWN:
            return self._unknown_name(node, bindings, result)
        if result.tensorlike:
            return self._tensor_by_use(node, bindings, result)
        return self.containers.filled(node, bindings, result)

    def _unknown_name(self, node: cst.Name, bindings: tuple[Binding, ...], unknown: Value) -> Value:
        """Return what the use of a variable, or its name, says of it where its definitions do not."""
        if isinstance(self.names.imported(node), Path):
            return unknown  # ``from mine import functional as F``: a file, whatever it is asked for
        shown = self.clues.by_use(node)
        if shown.tensorlike and any(map(self._left_torch, bindings)):
            return unknown
        if shown.graph is Graph.ATTACHED and self._backpropagated.isdisjoint(bindings):
            return unknown  # ``loss = to_number(loss)`` behind ``loss.backward()``
        if shown.tensorlike and self.clues.is_read_as_array(node, bindings):
            return shown.on(Device.CPU).kept_in(Memory.EITHER)
        if shown.known:
            return shown.on(unknown.device) if unknown.device is not Device.UNKNOWN else shown
        if unknown.device is Device.UNKNOWN and says_host(node.value):
            return unknown.on(Device.CPU)
        if all(self._is_tensor_parameter(each) or self._stays_declared(each) for each in bindings):
            return TENSOR.on(unknown.device)
        if all(map(self.parameters.is_open, bindings)):
            return placed_as(self.clues.by_name(node.value, node, unknown), unknown)
        return unknown

    def _is_tensor_parameter(self, binding: Binding) -> bool:
        """Return whether the use of a parameter shows that it is a tensor, or None.

        What has several dimensions may be an array as well, but hardly in the methods of a module.
        """
        if binding.kind is not BindingKind.PARAMETER:
            return False
        if self.clues.given_to_torch(binding):
            return True
        owner = self.classes.owner(binding.scope.node)
        is_method = owner is not None and self.classes.info(owner).kind is Kind.MODULE
        return is_method and self.clues.has_dimensions(binding)

    def _stays_declared(self, binding: Binding) -> bool:
        """Return whether a function makes something anew of a parameter that is declared to be a tensor:
        ``target = checked(target)``.

        What is declared of a variable holds for all that it is bound to.
        """
        if binding.kind is not BindingKind.ASSIGN or not isinstance(binding.value, cst.Call):
            return False
        given = (arg.value for arg in binding.value.args)
        if not any(isinstance(each, cst.Name) and each.value == binding.name for each in given):
            return False
        others = binding.scope.bindings[binding.name]
        declared = [self.annotations.of_binding(b) for b in others if b.kind is BindingKind.PARAMETER]
        return any(value is not None and value.kind is Kind.TENSOR for value in declared)

    def _tensor_by_use(self, node: cst.Name, bindings: tuple[Binding, ...], found: Value) -> Value:
        """Return a tensor or batch with what its use and its name say of its kind and its place."""
        if any(map(self.clues.packed_by, bindings)):
            return found.on(Device.CPU).attached(Graph.DETACHED)
        if found.kind is Kind.BATCH and (
            self.clues.by_use(node).kind is Kind.TENSOR or any(map(self.clues.taken_as_tensor, bindings))
        ):
            return found._replace(kind=Kind.TENSOR)
        if found.kind is Kind.TENSOR and self.clues.has_items(node):
            # A criterion of another file gives a dict of terms; what comes beside a loss may be a report.
            return UNKNOWN if any(b.path for b in bindings) else found._replace(kind=Kind.BATCH)
        if found.device is not Device.UNKNOWN:
            return found
        if says_host(node.value) or self.clues.is_read_as_array(node, bindings):
            return found.on(Device.CPU).kept_in(Memory.EITHER)
        if self.clues.may_be_picture(node) and not any(map(self._is_moved, bindings)):
            return found.on(Device.CPU)
        return found

    @cached_property
    def _backpropagated(self) -> frozenset[Binding]:
        """The definitions of the variables that ``backward`` is called on."""
        return frozenset(
            binding
            for call in self.tree.calls_by_name.get("backward", ())
            if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name)
            for binding in self.names.bindings(call.func.value)
        )

    def _of_project(self, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        """Return those of several alternative imports that lead to files of the project, if any do."""
        if self.link is None or len(bindings) < 2 or any(b.kind is not BindingKind.IMPORT for b in bindings):
            return bindings
        return tuple(b for b in bindings if self.names.imported_by(b) is not None) or bindings

    def _of_several(self, bindings: tuple[Binding, ...]) -> Value:
        """Return the join of the definitions of one name; many reads ask for that of all of them."""
        first = bindings[0]
        if len(bindings) > FEW and bindings is self.names.definitions(first.scope, first.name):
            return self.joined("definitions", first.node, bindings, self.binding)
        return join(map(self.binding, bindings))

    def joined(
        self, question: str, node: cst.CSTNode, parts: Collection[Part], value: Callable[[Part], Value]
    ) -> Value:
        """Return the join of the values of some parts; that of many is computed once for all who ask."""
        if len(parts) <= FEW:
            return join(map(value, parts))
        return self.once(question, node, lambda: join(map(value, parts)))

    def once(self, question: str, node: cst.CSTNode, work_out: Callable[[], Value]) -> Value:
        """Return an answer that many places ask for, worked out once for each question and node."""
        found: Value = self.fixpoint.ask((question, node), lambda _: work_out(), _VALUES)
        return found

    def _left_torch(self, binding: Binding) -> bool:
        """Return whether it is ``out = out.cpu().tolist()``: how it was used before says nothing now."""
        if binding.kind is not BindingKind.ASSIGN or binding.path or not isinstance(binding.value, cst.Call):
            return False
        return self.value(binding.value).kind in (Kind.LIST, Kind.NDARRAY)

    def _is_moved(self, binding: Binding) -> bool:
        """Return whether a definition sends the value somewhere: ``mels = torch.tensor(mels).to(place)``."""
        match binding.value:
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="to" | "cuda"))):
                return binding.kind is BindingKind.ASSIGN and not binding.path
            case _:
                return False

    @cached_property
    def _type_tests(self) -> frozenset[str]:
        """The names of what ``isinstance(x, int)`` or ``torch.is_tensor(out.x)`` asks of which type it is."""
        asked = (
            *self.tree.calls_by_name.get("isinstance", ()),
            *self.tree.calls_by_name.get("is_tensor", ()),
        )
        tests = (call.args[0].value for call in asked if call.args)
        return frozenset(
            last_name(tested) or "" for tested in tests if isinstance(tested, (cst.Name, cst.Attribute))
        )

    def proven(self, node: cst.Name | cst.Attribute, value: Value = UNKNOWN) -> Value | None:
        """Return what ``isinstance`` proves something to be where it is read, by what else is known of it.

        That is something of the host, or no tensor, or of a structure of tensors, that it is one tensor.
        """
        for holds, shown in self._proven(node):
            if holds and shown.kind in _HOST_KINDS:
                return shown
            if shown.kind is Kind.TENSOR and holds is (value.kind is Kind.BATCH):
                return value._replace(kind=Kind.TENSOR) if holds else UNKNOWN
            others = (
                self._other_types(node, shown)
                if isinstance(node, cst.Name) and not holds and value.kind in (Kind.UNKNOWN, shown.kind)
                else None
            )
            if others is not None:
                return others
        return None

    def _other_types(self, node: cst.Name, excluded: Value) -> Value | None:
        """Return what its annotation promises of a parameter that is known to be none of one of its types."""
        bindings = self.names.bindings(node)
        return self.annotations.others(bindings[0], excluded) if len(bindings) == 1 else None

    def _is_proven_tensor(self, node: cst.Name) -> bool:
        return any(holds and shown.kind is Kind.TENSOR for holds, shown in self._proven(node))

    def _proven(self, node: cst.Name | cst.Attribute) -> Iterator[tuple[bool, Value]]:
        """Yield what each ``isinstance`` that is decided at a read says that it is, or is not."""
        if last_name(node) not in self._type_tests:
            return
        for guard in guards(self, node):
            asked = self.type_test(guard.test)
            if asked is not None and unchanged(self, asked[0], node):
                yield guard.holds, asked[1]

    def type_test(self, test: cst.BaseExpression) -> tuple[cst.Name | cst.Attribute, Value] | None:
        """Return what a test asks for its type, with what it is then; None for other tests."""
        match test:
            case cst.Call(
                func=cst.Name("isinstance"),
                args=[cst.Arg(value=cst.Name() | cst.Attribute() as tested), cst.Arg(value=types)],
            ):
                parts = [e.value for e in types.elements] if isinstance(types, cst.Tuple) else [types]
                shown = join(map(self.annotations.promised, parts))
                return (tested, shown) if shown is not BOTTOM else None
            case cst.Call(args=[cst.Arg(value=cst.Name() | cst.Attribute() as tested)]) if (
                self.names.qualified(test.func) == "torch.is_tensor"
            ):
                return tested, TENSOR
            case _:
                return None

    def _tensor_among(self, bindings: Iterable[Binding]) -> Value:
        """Return what is known of the tensors, if any, among all that callers pass for some parameters."""
        tensors = [
            value
            for binding in bindings
            for value in self.parameters.alternatives(binding)
            if value.tensorlike
        ]
        return join(tensors) if tensors else UNKNOWN

    def binding(self, binding: Binding) -> Value:
        """Return what one definition binds its name to."""
        match binding.kind:
            case BindingKind.ASSIGN | BindingKind.WALRUS:
                value = self._assigned(binding)
                kind = without_constants(value, replaced=True)
                return kind if kind != value and self.is_set_elsewhere(binding) else value
            case BindingKind.AUGMENT if binding.value is not None:
                return self.library.operate(self.value(binding.node), self.value(binding.value), binding.node)
            case BindingKind.LOOP | BindingKind.COMPREHENSION if binding.value is not None:
                if binding.path == (0,) and self.containers.enumerates(binding.value):
                    return NUMBER  # whatever is counted need not be computed
                return self.containers.unpacked(
                    self.containers.iterated(self.value(binding.value)), binding.path
                )
            case BindingKind.WITH if binding.value is not None:
                return self.containers.unpacked(self._entered(binding.value), binding.path)
            case BindingKind.IMPORT if (
                self.link is not None and (target := self.names.imported_by(binding)) is not None
            ):
                return self.imported(binding.node, target)
            case BindingKind.IMPORT:
                dotted = self.names.bound_name(binding)
                return self.library.named(dotted) if dotted is not None else UNKNOWN
            case BindingKind.PARAMETER:
                return self.parameters.of(binding)
            case BindingKind.FUNCTION | BindingKind.CLASS:
                assert isinstance(binding.node, (cst.FunctionDef, cst.ClassDef))
                return defined(binding.node)
            case BindingKind.MANY:
                return self._of_several(self.names.definitions(binding.scope, binding.name))
            case BindingKind.DECLARE:
                return self.annotations.of_binding(binding) or UNKNOWN
            case _:
                return UNKNOWN

    def _assigned(self, binding: Binding) -> Value:
        if binding.value is None:
            return UNKNOWN
        value = self.containers.unpacked(self.value(binding.value), binding.path)
        if value.kind is Kind.UNKNOWN and not binding.path:
            declared = self.annotations.of_binding(binding)
            return declared if declared is not None else value
        if value.kind is Kind.DICT and not binding.path and self.containers.makes_table(binding.value):
            return self.containers.stored_in(binding, value)
        return value

    @remembered
    def is_set_elsewhere(self, binding: Binding) -> bool:
        """Return whether code elsewhere in the project gives a name of the module level something else,
        ``settings.AVERAGE = True``, or puts something into the container that it is, or this file may, by
        ``exec`` or ``globals()``.
        """
        if binding.scope is not self.names.module_scope:
            return False
        stores = self.names.stores
        if self.link is None or self._sets_globals:
            return self._sets_globals or any(self._may_set(store, None) for store in stores(binding.name))
        table = isinstance(binding.value, (cst.Dict, cst.Call)) and self.containers.makes_table(binding.value)
        if (table or _is_switch(binding.value)) and not self.parameters.shows_users(self, binding.name):
            return True  # others may turn a switch, and fill in settings
        file, words = self.link.file(self), words_of_stores(binding.name)
        homes = (self, *map(self.counterpart, self.link.users(self, words, instances=words)))
        if any(home._may_set(store, file) for home in homes for store in home.names.stores(binding.name)):
            return True
        holds = table or isinstance(binding.value, cst.List)
        return holds and any(map(self.names.may_put, self.names.uses_elsewhere(binding)))

    def _may_set(self, store: Store, file: Path | None) -> bool:
        """Return whether what this file sets an attribute of may be a file, which is this one if None."""
        owner = store.owner
        match owner:
            case cst.Subscript(value=modules):
                return self.names.qualified(modules) == "sys.modules"
            case cst.Call() if self.names.qualified(owner.func) in IMPORTERS:
                return True
        target = self.names.imported(owner)
        if target is not None or file is None or self.names.qualified(owner) is not None:
            return isinstance(target, Path) and target == file
        if self.classes.instance_class(owner) is not None:
            return False
        value = self.value(owner)
        if value.kind is Kind.NAMESPACE:
            return value.cls is None
        if store.name is None:
            return value.among is not None and Kind.NAMESPACE in value.among
        return value.kind is Kind.UNKNOWN and value.may_be(Kind.NAMESPACE)

    @cached_property
    def _sets_globals(self) -> bool:
        """Whether the file may set names of its module level by other words: ``globals()[key] = value``."""
        calls = self.tree.calls_by_name
        if any(self.names.qualified(call.func) == "builtins.exec" for call in calls.get("exec", ())):
            return True
        own = [*calls.get("globals", ())]
        for call in (*calls.get("vars", ()), *calls.get("locals", ())):
            if not call.args and self.names.scope(call) is self.names.module_scope:
                own.append(call)
        return any(
            (self.names.qualified(call.func) or "").startswith("builtins.") and self.names.may_put(call)
            for call in own
        )

    def imported(self, node: cst.CSTNode, target: Target) -> Value:
        """Return what an import, or an attribute of a file, brings from another file of the project."""
        if isinstance(target, Path):
            return Value(Kind.NAMESPACE)
        if isinstance(target, str):
            return self.library.named(canonical(target))
        return self.once("imported", node, lambda: join(map(self.binding, target)))

    def _entered(self, context: cst.BaseExpression) -> Value:
        """Return what ``with context as name`` binds."""
        value = self.value(context)
        return value if value.kind in (Kind.LOADER, Kind.ITERATOR, Kind.LIST) else UNKNOWN

    # ------------------------------------------------------------------ parameters

    # ------------------------------------------------------------------ attributes

    # ------------------------------------------------------------------ subscripts

    # ------------------------------------------------------------------ calls

    # ------------------------------------------------------------------ registries

    # ------------------------------------------------------------------ calls of functions

    # ------------------------------------------------------------------ modules

    # ------------------------------------------------------------------ functions of the file


def _item(value: Value) -> Value | None:
    """Return what each item of a comprehension is; None while that is still being computed."""
    return None if value is BOTTOM else value


def _is_switch(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value in ("True", "False")


def place_of(order: Mapping[cst.CSTNode, int], question: Any) -> tuple[int, str]:
    """Return where a question stands: a node for its value, or what else is asked of it.

    That is a tuple of what is asked, the node, or a definition, and what more the question names.
    """
    if isinstance(question, cst.CSTNode):
        return order[question], ""
    label, about, *more = question
    place = order[about.node if isinstance(about, Binding) else about]
    return place, f"{label}{[_place_in(order, part) for part in more]}" if more else label


def _place_in(order: Mapping[cst.CSTNode, int], part: Any) -> Any:
    """Return what stands for a part of a question in its order: for a node where it stands.

    A node would be written out with all that is below it, and that of an outline does not have everything.
    """
    match part:
        case cst.CSTNode():
            return order[part]
        case Binding():
            return part.name, order[part.node]
        case tuple() | list():
            return [_place_in(order, each) for each in part]
        case frozenset():
            return sorted(map(str, part))
    return part


_HOST_KINDS = frozenset({Kind.NUMBER, Kind.BOOL, Kind.STRING, Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.NDARRAY})
_CONSTANT_NAMES = {
    "True": BOOL._replace(constant=True),
    "False": BOOL._replace(constant=False),
    "None": NONE,
    "__name__": STRING,
    "__file__": STRING,
}


def _ordered(operators: Sequence[cst.BaseCompOp], operands: Sequence[Value]) -> bool:
    """Return whether only tensors answer this comparison of a batch: ``<``, or ``==`` on a device."""
    if any(v.kind not in (Kind.BATCH, Kind.NUMBER, Kind.UNKNOWN) for v in operands):
        return False
    ordering = (cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual)
    if all(isinstance(o, ordering) for o in operators):
        return True
    placed = all(v.device is Device.ACCELERATOR for v in operands if v.kind is Kind.BATCH)
    return placed and all(v.kind is not Kind.UNKNOWN for v in operands)


# By exact type: LibCST's classes are abstract base classes, on which pattern matching is slow.
_BY_TYPE: dict[type[cst.CSTNode], Callable[[Inference, Any], Value]] = {
    cst.Name: Inference._name,
    cst.Attribute: lambda inference, node: inference.members.access(node),
    cst.Call: lambda inference, node: inference.calls.call(node),
    cst.Integer: Inference._number,
    cst.Float: Inference._number,
    cst.Imaginary: Inference._number,
    cst.SimpleString: Inference._string,
    cst.ConcatenatedString: Inference._string,
    cst.FormattedString: Inference._formatted,
    cst.Subscript: lambda inference, node: inference.containers.subscript(node),
    cst.BinaryOperation: Inference._operation,
    cst.UnaryOperation: Inference._unary,
    cst.Comparison: Inference._comparison,
    cst.BooleanOperation: Inference._either,
    cst.IfExp: Inference._choice,
    cst.Tuple: Inference._display,
    cst.List: Inference._display,
    cst.Set: Inference._display,
    cst.Dict: Inference._dict,
    cst.ListComp: Inference._comprehension,
    cst.SetComp: Inference._comprehension,
    cst.GeneratorExp: Inference._comprehension,
    cst.DictComp: Inference._dict_comprehension,
    cst.Lambda: Inference._lambda,
    cst.NamedExpr: Inference._held,
    cst.Arg: Inference._held,
    cst.Element: Inference._held,
    cst.Index: Inference._held,
    cst.Expr: Inference._held,
    cst.Await: Inference._awaited,
    cst.FunctionDef: lambda inference, node: inference.calls.result(node),
}

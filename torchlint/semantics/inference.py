"""Evaluates expressions without running them: which values can stand at a node.

Evaluation is lazy and remembered. It follows assignments by reaching definitions, unpacking, attributes
of ``self`` across the methods of a class, loop and comprehension targets, parameters (annotation, then
the calls in the file, then how the parameter is used, conventional names last) and the results of
functions of the file. Where the trail ends the answer is ``UNKNOWN``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import libcst as cst

from torchlint.effort import ExhaustedError
from torchlint.semantics.annotations import Annotations
from torchlint.semantics.api import results
from torchlint.semantics.callgraph import CallGraph, is_abstract
from torchlint.semantics.classes import Classes, ClassInfo, is_property, kind_of_class
from torchlint.semantics.clues import Clues
from torchlint.semantics.conventions import (
    LENGTHS_NAME,
    goes_over_data,
    is_noise_level,
    names_accelerator,
    says_host,
)
from torchlint.semantics.declared import Declared, is_declared
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.fixpoint import MANY, Answers
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.flow.guards import guards, unchanged
from torchlint.semantics.lexicon import (
    Role,
    denotes,
    ends,
    names_device,
    names_loader,
    names_loaders,
    names_loss,
)
from torchlint.semantics.library import DISTRIBUTION_METHODS, MODULE_CONTAINERS, TABLES, Library
from torchlint.semantics.linked import Target, handing_on
from torchlint.semantics.names import (
    AttributeBinding,
    Binding,
    BindingKind,
    Names,
    canonical,
    dotted_text,
)
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import given_as, is_none, is_place_of_model, keywords, last_name, start_of
from torchlint.semantics.tensordtypes import NOT_FLOATING
from torchlint.semantics.values import (
    BATCH,
    BOOL,
    BOTTOM,
    DTYPE,
    MISSING,
    MODULE,
    MOST_ALTERNATIVES,
    NDARRAY,
    NONE,
    NUMBER,
    SHAPE,
    STRING,
    TENSOR,
    UNKNOWN,
    Definition,
    Device,
    Graph,
    Kind,
    Memory,
    Value,
    bounded,
    chosen_device,
    dict_item,
    each_of,
    field,
    filled_in,
    item_of,
    join,
    join_devices,
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
# The join of more values than these is computed once for all places that ask for it.
_FEW = 8

_FIELD = "dataclasses.field"
_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer")
_PLACE_OR_MOVE = frozenset({"cpu", "cuda", "device", "is_cpu", "is_cuda", "to"})
_LEAVING = frozenset({"to", "type", *results.METHOD_DEVICES})
_CALLED = frozenset({Kind.CLASS, Kind.FUNCTION, Kind.MODULE, Kind.OBJECT})
"""What is put into a list to be called, or to have its methods called."""
_INSTANCES = frozenset({Kind.OBJECT, Kind.MODULE, Kind.DATASET, Kind.SAMPLER})
_LOOKING_UP = frozenset({"get", "keys", "values", "items", "copy"})
"""The methods of dicts that leave them as they are."""
_OF_ANYTHING = {"ndim": NUMBER, "shape": SHAPE}
"""What these attributes are of whatever has them, so that it need not be computed."""


class Inference:
    """The values of one file.

    ``declared`` are the names of the configuration; the façade supplies them.
    ``grad_off`` tells whether autograd is off where a node runs; the façade supplies it, since places
    know about grad mode and places ask for values.
    """

    answers_for_all = frozenset({"value", "element", "iterated", "unpacked", "call_of"})

    def __init__(
        self,
        tree: SyntaxTree,
        names: Names,
        flow: ControlFlow,
        classes: Classes,
    ) -> None:
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

    def _part(self, kind: type[Part]) -> type[Part]:
        return kind if self.link is None else handing_on(kind)

    @staticmethod
    def counterpart(module: Any) -> Inference:
        """Return the evaluator of a module."""
        inference: Inference = module.inference
        return inference

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
                solid(self.iterated(self.value(e.value)))
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
                if result.tensorlike and narrowed.kind in _COLLECTIONS and narrowed.item is None:
                    # ``if isinstance(out, tuple): out = out[0]``: a batch, or an output, of several parts.
                    return narrowed._replace(item=result._replace(kind=Kind.BATCH, constant=MISSING))
                return narrowed
        if result.kind is Kind.UNKNOWN:
            return self._unknown_name(node, bindings, result)
        if result.tensorlike:
            return self._tensor_by_use(node, bindings, result)
        return self._filled(node, bindings, result)

    def _unknown_name(self, node: cst.Name, bindings: tuple[Binding, ...], unknown: Value) -> Value:
        """Return what the use of a variable, or its name, says of it where its definitions do not."""
        if isinstance(self.names.imported(node), Path):
            return unknown  # ``from mine import functional as F``: a file, whatever it is asked for
        shown = self.clues.by_use(node)
        if shown.tensorlike and any(map(self._left_torch, bindings)):
            return unknown
        if shown.graph is Graph.ATTACHED and self._backpropagated.isdisjoint(bindings):
            return unknown  # ``loss = to_number(loss)`` behind ``loss.backward()``
        if shown.known:
            return shown.on(unknown.device) if unknown.device is not Device.UNKNOWN else shown
        if unknown.device is Device.UNKNOWN and says_host(node.value):
            return unknown.on(Device.CPU)
        if all(self._is_tensor_parameter(each) or self._stays_declared(each) for each in bindings):
            return TENSOR.on(unknown.device)
        if all(map(self._open, bindings)):
            return self._merge_device(self.clues.by_name(node.value, node, unknown), unknown)
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
        if says_host(node.value) or self._is_read_as_array(node, bindings):
            return found.on(Device.CPU).kept_in(Memory.EITHER)
        if self.clues.may_be_picture(node) and not any(map(self._is_moved, bindings)):
            return found.on(Device.CPU)
        return found

    def _is_read_as_array(self, node: cst.Name, bindings: Sequence[Binding]) -> bool:
        """Return whether ``numpy()`` is asked of a variable, which fails for a tensor on a device.

        A variable that is asked where it is, or moved, may be somewhere else elsewhere.
        """
        if not all(binding in self._read_as_arrays for binding in bindings):
            return False
        return self.clues.used_attributes(node).isdisjoint(_PLACE_OR_MOVE)

    @cached_property
    def _read_as_arrays(self) -> frozenset[Binding]:
        """The definitions of the variables that are asked for ``numpy()``, without an argument."""
        return frozenset(
            binding
            for read in self._asked_for_arrays
            if isinstance(read, cst.Name)
            for binding in self.names.bindings(read)
        )

    @cached_property
    def _backpropagated(self) -> frozenset[Binding]:
        """The definitions of the variables that ``backward`` is called on."""
        return frozenset(
            binding
            for call in self.tree.calls_by_name.get("backward", ())
            if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name)
            for binding in self.names.bindings(call.func.value)
        )

    def _is_attribute_read_as_array(self, node: cst.Attribute) -> bool:
        """Return whether ``out.tensor`` is read as an array elsewhere in the function."""
        spelt = dotted_text(node)
        reads = self._attributes_read_as_arrays.get(spelt) if spelt is not None else None
        if reads is None or not self.clues.used_attributes(node).isdisjoint(_PLACE_OR_MOVE):
            return False
        here = self._root_in_function(node)
        return any(self._root_in_function(read) == here for read in reads)

    @cached_property
    def _attributes_read_as_arrays(self) -> dict[str, list[cst.Attribute]]:
        """The attributes that are asked for ``numpy()``, by spelling."""
        found: dict[str, list[cst.Attribute]] = {}
        for read in self._asked_for_arrays:
            if isinstance(read, cst.Attribute) and (spelt := dotted_text(read)) is not None:
                found.setdefault(spelt, []).append(read)
        return found

    def _root_in_function(self, node: cst.Attribute) -> tuple[cst.CSTNode | None, tuple[Binding, ...]]:
        """Return the function around an attribute, and the definitions of the variable that it belongs to."""
        root = start_of(node, cst.Attribute)
        bindings = self.names.bindings(root)
        return self.tree.enclosing(node, cst.FunctionDef, cst.Lambda), bindings

    @cached_property
    def _asked_for_arrays(self) -> list[cst.BaseExpression]:
        """What ``numpy()`` is asked of, without an argument, and what that is computed from.

        ``(a.tensor - b.tensor).detach().numpy()`` is computed where the operands are.
        """
        found: list[cst.BaseExpression] = []
        waiting: list[cst.BaseExpression] = [
            call.func.value
            for call in self.tree.calls_by_name.get("numpy", ())
            if isinstance(call.func, cst.Attribute) and not call.args
        ]
        for read in waiting:
            match read:
                case cst.Name() | cst.Attribute():
                    found.append(read)
                case cst.BinaryOperation():
                    waiting += (read.left, read.right)
                case cst.UnaryOperation():
                    waiting.append(read.expression)
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if (
                    method in results.TENSOR_METHODS and method not in _LEAVING and method[:4] != "new_"
                ):
                    waiting.append(owner)
        return found

    def _of_project(self, bindings: tuple[Binding, ...]) -> tuple[Binding, ...]:
        """Return those of several alternative imports that lead to files of the project, if any do."""
        if self.link is None or len(bindings) < 2 or any(b.kind is not BindingKind.IMPORT for b in bindings):
            return bindings
        return tuple(b for b in bindings if self.names.imported_by(b) is not None) or bindings

    def _of_several(self, bindings: tuple[Binding, ...]) -> Value:
        """Return the join of the definitions of one name; many reads ask for that of all of them."""
        first = bindings[0]
        if len(bindings) > _FEW and bindings is self.names.definitions(first.scope, first.name):
            return self._joined("definitions", first.node, bindings, self.binding)
        return join(map(self.binding, bindings))

    def _joined(
        self, question: str, node: cst.CSTNode, parts: Collection[Part], value: Callable[[Part], Value]
    ) -> Value:
        """Return the join of the values of some parts; that of many is computed once for all who ask."""
        if len(parts) <= _FEW:
            return join(map(value, parts))
        return self._once(question, node, lambda: join(map(value, parts)))

    def _once(self, question: str, node: cst.CSTNode, work_out: Callable[[], Value]) -> Value:
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
        tensors = [value for binding in bindings for value in self._alternatives(binding) if value.tensorlike]
        return join(tensors) if tensors else UNKNOWN

    def _alternatives(self, binding: Binding) -> Iterator[Value]:
        """Yield what the calls of a function give one of its parameters, or an item of its keywords."""
        if binding.kind is BindingKind.PARAMETER and isinstance(binding.node, cst.Param):
            function = binding.scope.node
            if isinstance(function, cst.FunctionDef) and not binding.node.star:
                for call in self.callgraph.callers(function):
                    argument = self.callgraph.bound_to(call, function).get(binding.name)
                    if argument.node is not None:
                        yield self.value(argument.node)
            elif isinstance(function, cst.FunctionDef) and binding.node.star == "**":
                yield from self._keywords(function)
        match binding.value:
            case cst.Call(func=cst.Attribute(value=cst.Name() as owner, attr=cst.Name("items" | "values"))):
                if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION):
                    for keywords in self.names.bindings(owner):
                        if isinstance(keywords.node, cst.Param) and keywords.node.star == "**":
                            yield from self._alternatives(keywords)

    def _keywords(self, function: cst.FunctionDef) -> Iterator[Value]:
        """Yield what calls of a function pass by names that it does not declare: its ``**kwargs``."""
        params = function.params
        declared = {param.name.value for param in (*params.params, *params.kwonly_params)}
        for call in self.callgraph.callers(function):
            for argument in call.args:
                if argument.star == "**":
                    yield dict_item(self.value(argument.value))
                elif argument.keyword is not None and argument.keyword.value not in declared:
                    yield self.value(argument.value)

    def _open(self, binding: Binding) -> bool:
        """Return whether it is open what a definition binds, so that a conventional name may tell."""
        if binding.kind is BindingKind.PARAMETER:
            function = binding.scope.node
            constructor = isinstance(function, cst.FunctionDef) and function.name.value == "__init__"
            if constructor and names_loss(binding.name):
                return False  # it is given a loss to compute later, or a switch
            if isinstance(binding.node, cst.Param) and self._may_lack(binding, binding.node.default):
                return False
            if isinstance(binding.node, cst.Param) and self._is_of_library(binding, binding.node.default):
                return False
            return self.annotations.of_binding(binding) is None
        if binding.kind is BindingKind.ASSIGN and self._may_lack(binding, binding.value):
            return False
        if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, cst.Attribute):
            # ``zero_out_loss = opt.zero_out_loss``: what options hold are numbers, words and switches.
            owner = dotted_text(binding.value.value) or ""
            return not ends(owner, Role.OPTIONS)
        if self.names.link is not None and names_loss(binding.name) and _is_made(binding.value):
            return False  # what computes a loss, which other files are handed
        if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, cst.Call):
            # ``avg_val_loss, scores = validate_model(…)``: what runs over a whole set returns a mean.
            return not goes_over_data(last_name(binding.value.func))
        if binding.kind is BindingKind.LOOP:
            # What is kept for a report are numbers.
            match binding.value:
                case cst.Call(func=cst.Attribute(value=records)) if ends(last_name(records), Role.RECORD):
                    return False
        return binding.kind in (BindingKind.ASSIGN, BindingKind.LOOP, BindingKind.WITH, BindingKind.WALRUS)

    def _is_of_library(self, binding: Binding, default: cst.BaseExpression | None) -> bool:
        """Return whether a parameter gets what a library has under a name: ``loader=default_loader``."""
        values = [self.parameter(binding), UNKNOWN if default is None else self.value(default)]
        return any(value.kind is Kind.UNKNOWN and value.cls not in (None, BOTTOM.cls) for value in values)

    def _may_lack(self, binding: Binding, value: cst.BaseExpression | None) -> bool:
        """Return whether it is ``val_loss = None``: what is put there, if anything, may be no tensor."""
        named = binding.name != "loss" and names_loss(binding.name)
        return named and is_none(value) and not self._computed_by_part(binding)

    def _computed_by_part(self, binding: Binding) -> bool:
        """Return whether a part of a module gives the same variable elsewhere: ``loss = self.aux(x)``."""
        for other in binding.scope.bindings.get(binding.name, ()):
            match other.value:
                case cst.Call(func=cst.Attribute(value=cst.Name() as owner)):
                    definition = self.classes.instance_class(owner)
                    if definition is not None and self.classes.info(definition).kind is Kind.MODULE:
                        return True
        return False

    @staticmethod
    def _merge_device(value: Value, other: Value) -> Value:
        if value.known and value.device is Device.UNKNOWN:
            return value.on(other.device)
        return value if value.known else other

    def _filled(self, node: cst.Name, bindings: Sequence[Binding], value: Value) -> Value:
        """Return a list that starts empty, or with None in each place, with what is put into it,
        and a dict with what a loop over it has put in the place of its items.
        """
        if value.kind is Kind.DICT:
            return self._replaced(node, bindings, value)
        if value.kind is not Kind.LIST or not _is_vacant(value):
            return value
        if not all(
            isinstance(b.value, (cst.List, cst.ListComp, cst.BinaryOperation, cst.Call))
            or (isinstance(b.value, cst.Tuple) and b.path)  # ``losses, scores = [], []``
            or b.kind is BindingKind.AUGMENT
            for b in bindings
        ):
            return value
        first = bindings[0]
        if len(bindings) == 1:
            question, appended = "filled", self._appended_to(first)
        else:
            question = "filled jointly"
            found = {item for binding in bindings for item in self._appended_to(binding)}
            appended = sorted(found, key=self.tree.order.__getitem__)
        if not appended:
            return value
        if len(bindings) == 1 or bindings is self.names.definitions(first.scope, first.name):
            filled = self._joined(question, first.node, appended, self.value)
        else:
            filled = join(map(self.value, appended))
        return value._replace(item=filled, elements=None) if filled is not BOTTOM else value

    def _replaced(self, node: cst.Name, bindings: Sequence[Binding], held: Value) -> Value:
        """Return a dict behind loops that move each of its items: ``d[key] = value.to(device)``."""
        for loop, item in self._items_anew(bindings[0]) if len(bindings) == 1 else ():
            if self.tree.order[loop] < self.tree.order[node] and not self.tree.contains(loop, node):
                moved = self.value(item)
                if moved is not BOTTOM and moved.host:
                    held = held._replace(item=moved, fields=tuple((key, moved) for key, _ in held.fields))
                elif moved is not BOTTOM and moved.device is not Device.UNKNOWN:
                    fields = ((key, v.on(moved.device) if v.tensorlike else v) for key, v in held.fields)
                    held = held._replace(item=moved, fields=tuple(fields))
        return held

    @remembered
    def _items_anew(self, binding: Binding) -> list[tuple[cst.For, cst.BaseExpression]]:
        """Return the loops over a dict that put something under each of its keys, and what that is."""
        found: list[tuple[cst.For, cst.BaseExpression]] = []
        for read in self.names.uses(binding):
            match [*islice(self.tree.ancestors(read), 3)]:
                case [
                    cst.Subscript(
                        value=held, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name() as key))]
                    ),
                    cst.AssignTarget(),
                    cst.Assign(value=item),
                ] if held is read and (loop := self._loop_of_keys(key, binding)) is not None:
                    found.append((loop, item))
        return found

    def _loop_of_keys(self, key: cst.Name, binding: Binding) -> cst.For | None:
        """Return the loop over a dict, its keys or its items that a variable gets the keys of."""
        keys = self.names.bindings(key)
        if len(keys) != 1 or keys[0].kind is not BindingKind.LOOP or keys[0].path not in ((), (0,)):
            return None
        match keys[0].value:
            case cst.Name() as over if not keys[0].path:
                pass
            case cst.Call(func=cst.Attribute(value=cst.Name() as over, attr=cst.Name("keys" | "items"))):
                pass
            case _:
                return None
        loop = self.tree.enclosing(key, cst.For)
        return loop if isinstance(loop, cst.For) and self.names.bindings(over) == (binding,) else None

    @remembered
    def _appended_to(self, binding: Binding) -> list[cst.BaseExpression]:
        """Return what is put into the list that a definition may stand for, in source order."""
        found = map(self._put, self.names.uses(binding))
        return [item for item in found if item is not None]

    def _put(self, read: cst.CSTNode) -> cst.BaseExpression | None:
        """Return the expression ``x`` when ``read`` is the list in ``read.append(x)`` or ``read[i] = x``."""
        match [*islice(self.tree.ancestors(read), 3)]:
            case [
                cst.Subscript(value=held, slice=[cst.SubscriptElement(slice=cst.Index())]),
                cst.AssignTarget(),
                cst.Assign(value=stored),
            ] if held is read:
                return stored
        return self.appended(read)

    def appended(self, read: cst.CSTNode) -> cst.BaseExpression | None:
        """Return the expression ``x`` when ``read`` is the list in ``read.append(x)``."""
        call = self.tree.method_call(read)
        if call is None or last_name(call.func) not in ("append", "appendleft") or len(call.args) != 1:
            return None
        return call.args[0].value

    def binding(self, binding: Binding) -> Value:
        """Return what one definition binds its name to."""
        match binding.kind:
            case BindingKind.ASSIGN | BindingKind.WALRUS:
                value = self._assigned(binding)
                kind = without_constants(value)
                return kind if kind != value and self.is_set_elsewhere(binding) else value
            case BindingKind.AUGMENT if binding.value is not None:
                return self.library.operate(self.value(binding.node), self.value(binding.value), binding.node)
            case BindingKind.LOOP | BindingKind.COMPREHENSION if binding.value is not None:
                if binding.path == (0,) and self._enumerates(binding.value):
                    return NUMBER  # whatever is counted need not be computed
                return self.unpacked(self.iterated(self.value(binding.value)), binding.path)
            case BindingKind.WITH if binding.value is not None:
                return self.unpacked(self._entered(binding.value), binding.path)
            case BindingKind.IMPORT if (
                self.link is not None and (target := self.names.imported_by(binding)) is not None
            ):
                return self._imported(binding.node, target)
            case BindingKind.IMPORT:
                dotted = self.names.bound_name(binding)
                return self.library.named(dotted) if dotted is not None else UNKNOWN
            case BindingKind.PARAMETER:
                return self.parameter(binding)
            case BindingKind.FUNCTION | BindingKind.CLASS:
                assert isinstance(binding.node, (cst.FunctionDef, cst.ClassDef))
                return self._defined(binding.node)
            case BindingKind.MANY:
                return self._of_several(self.names.definitions(binding.scope, binding.name))
            case BindingKind.DECLARE:
                return self.annotations.of_binding(binding) or UNKNOWN
            case _:
                return UNKNOWN

    def _assigned(self, binding: Binding) -> Value:
        if binding.value is None:
            return UNKNOWN
        value = self.unpacked(self.value(binding.value), binding.path)
        if value.kind is Kind.UNKNOWN and not binding.path:
            declared = self.annotations.of_binding(binding)
            return declared if declared is not None else value
        if value.kind is Kind.DICT and not binding.path and self._makes_table(binding.value):
            return self._stored_in(binding, value)
        return value

    @remembered
    def is_set_elsewhere(self, binding: Binding) -> bool:
        """Return whether another file of the project gives a name of the module level something else,
        ``settings.AVERAGE = True``, or puts something into the dict that it is, or this file may, by
        ``exec`` or ``globals()``.
        """
        if binding.scope is not self.names.module_scope:
            return False
        if self.link is None or self._sets_globals:
            return self._sets_globals
        table = isinstance(binding.value, (cst.Dict, cst.Call)) and self._makes_table(binding.value)
        if (table or _is_switch(binding.value)) and not self._shows_users(self, binding.name):
            return True  # others may turn a switch, and fill in settings
        return self.names.is_set_elsewhere(binding) or (
            table and any(map(self._may_put, self.names.uses_elsewhere(binding)))
        )

    @cached_property
    def _sets_globals(self) -> bool:
        """Whether the file may set names of its module level by other words: ``globals()[key] = value``."""
        calls = self.tree.calls_by_name
        return any(
            self.names.qualified(call.func) == "builtins.exec" for call in calls.get("exec", ())
        ) or any(
            self.names.qualified(call.func) == "builtins.globals" and self._may_put(call)
            for call in calls.get("globals", ())
        )

    def _may_put(self, read: cst.BaseExpression) -> bool:
        """Return whether a read of a dict, perhaps in another file, does more than to look something up."""
        tree = self.tree.of(read)
        match [*islice(tree.ancestors(read), 2)]:
            case [cst.Subscript(value=held), outer] if held is read:
                return isinstance(outer, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del))
            case [cst.Attribute(value=held, attr=cst.Name(method)), *_] if held is read:
                return method not in _LOOKING_UP
            case [cst.ComparisonTarget() | cst.Comparison() | cst.For() | cst.CompFor(), *_]:
                return False
            case [cst.Arg(star="**") | cst.StarredDictElement(), *_]:
                return False
        return True

    def _enumerates(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and self.names.qualified(node.func) == "builtins.enumerate"

    def _makes_table(self, node: cst.CSTNode) -> bool:
        """Return whether an expression is a dict that is written out: ``{}``, ``dict(loss=loss)``."""
        if isinstance(node, cst.Call):
            return self.names.qualified(node.func) in TABLES
        return isinstance(node, cst.Dict)

    def _stored_in(self, binding: Binding, table: Value) -> Value:
        """Return a dict with what is stored in it later: under each key, and on the whole.

        What a loop over its items puts in their place counts behind that loop only: see `_replaced`.
        """
        anew = {item for _, item in self._items_anew(binding)}
        entries = [(key, entry) for key, entry in self._entries(binding) if entry not in anew]
        empty = table.item is None and not table.fields
        named = all(isinstance(key, str) for key, _ in entries)
        if not entries or len(entries) > MANY or not (empty or (named and table.fields)):
            return table
        stored = [entry for _, entry in entries]
        item = solid(self._joined("stored in", binding.node, stored, self.value))
        if not named:
            return table._replace(item=item if item.known else None)
        held = {key: [value] for key, value in table.fields}
        for key, entry in entries:
            held.setdefault(key or "", []).append(self.value(entry))
        fields = tuple((key, solid(join(values))) for key, values in sorted(held.items()))
        return table._replace(item=item if empty else join((dict_item(table), item)), fields=fields)

    @remembered
    def _entries(self, binding: Binding) -> list[tuple[str | None, cst.BaseExpression]]:
        """Return the keys and expressions ``x`` in ``d[key] = x``, where ``d`` is the dict that a definition
        makes; None for a key that is not written out.
        """
        found: list[tuple[str | None, cst.BaseExpression]] = []
        for read in self.names.uses(binding):
            match [*islice(self.tree.ancestors(read), 3)]:
                case [
                    cst.Subscript(value=held, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]),
                    cst.AssignTarget(),
                    cst.Assign(value=entry),
                ] if held is read:
                    written = key.evaluated_value if isinstance(key, cst.SimpleString) else None
                    found.append((written if isinstance(written, str) else None, entry))
        return found

    def _imported(self, node: cst.CSTNode, target: Target) -> Value:
        """Return what an import, or an attribute of a file, brings from another file of the project."""
        if isinstance(target, Path):
            return Value(Kind.NAMESPACE)
        if isinstance(target, str):
            return self.library.named(canonical(target))
        return self._once("imported", node, lambda: join(map(self.binding, target)))

    def _entered(self, context: cst.BaseExpression) -> Value:
        """Return what ``with context as name`` binds."""
        value = self.value(context)
        return value if value.kind in (Kind.LOADER, Kind.ITERATOR, Kind.LIST) else UNKNOWN

    def unpacked(self, value: Value, path: Sequence[int | None]) -> Value:
        """Return the part of a value that an unpacking target gets; ``path`` as in ``names.Binding``."""
        for step in path:
            if value is BOTTOM:
                return value
            value = self.element(value, step) if step is not None else self._rest(value)
        return value

    def _rest(self, value: Value) -> Value:
        item = self.iterated(value)
        return Value(Kind.LIST, item=item) if item.known else Value(Kind.LIST)

    def element(self, value: Value, index: int | None = None) -> Value:
        """Return the value of ``value[index]``; for an unknown index (None) what every item has in common."""
        if value.elements is not None:
            if index is not None and -len(value.elements) <= index < len(value.elements):
                return value.elements[index]
            return join(value.elements) if value.elements and index is None else UNKNOWN
        if value.kind is Kind.BATCH:
            # What could be moved to a device can only hold tensors.
            kind = Kind.TENSOR if value.device is Device.ACCELERATOR else Kind.BATCH
            return value._replace(kind=kind, part=True)
        if value.kind is Kind.TENSOR:
            taken = Value(Kind.TENSOR, device=value.device, graph=value.graph, dtype=value.dtype)
            return taken.kept_in(value.memory)
        if value.kind is Kind.NDARRAY:
            return value._replace(part=True)
        if value.kind in (Kind.SHAPE, Kind.STRING):
            return NUMBER if value.kind is Kind.SHAPE else value._replace(constant=MISSING)
        if value.kind is Kind.MODULE and value.cls in MODULE_CONTAINERS:
            return value.item if value.item is not None else MODULE.on(value.device)
        if value.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.MODULE, Kind.OBJECT):
            return value.item if value.item is not None else UNKNOWN
        if value.kind is Kind.DATASET:
            return BATCH.on(Device.CPU)
        return UNKNOWN

    def iterated(self, value: Value) -> Value:
        """Return what ``for x in value`` gives ``x``."""
        if value is BOTTOM:
            return value
        if value.kind is Kind.LOADER:
            return Value(Kind.BATCH, device=_loader_device(value), graph=Graph.DETACHED, origin=value.origin)
        if value.kind is Kind.PARAMETERS:
            return value.item if value.item is not None else UNKNOWN
        if value.kind is Kind.DICT:
            return UNKNOWN
        if value.kind is Kind.ITERATOR:
            return value.item if value.item is not None else UNKNOWN
        if value.kind is Kind.OBJECT and value.item is None and isinstance(value.definition, cst.ClassDef):
            return self._iterated_object(self.classes.info(value.definition))
        if value.kind is Kind.SAMPLER and value.definition is None:
            return self._drawn(value)
        if value.kind is Kind.BATCH and value.device is not Device.ACCELERATOR:
            return value
        return self.element(value, None)

    def _drawn(self, sampler: Value) -> Value:
        """Return what a sampler of torch draws: indices, or lists of what another sampler draws."""
        name = (sampler.cls or "").rpartition(".")[2]
        if name == "BatchSampler":
            inner = given_as(sampler.origin, "sampler", 0) if isinstance(sampler.origin, cst.Call) else None
            item = self.iterated(self.value(inner)) if inner is not None else UNKNOWN
            return item if item is BOTTOM else Value(Kind.LIST, item=item if item.known else None)
        return NUMBER if name and name != "Sampler" else UNKNOWN

    def _iterated_object(self, info: ClassInfo) -> Value:
        """Return what iterating over an instance of a class of this file gives."""
        method = info.method("__iter__")
        if method is None:
            return UNKNOWN
        iterator = self.returned(method)
        if iterator.kind is Kind.OBJECT and isinstance(iterator.definition, cst.ClassDef):
            following = self.classes.info(iterator.definition).method("__next__")
            return self.returned(following) if following is not None else UNKNOWN
        return self.iterated(iterator)

    # ------------------------------------------------------------------ parameters

    def is_plain(self, node: cst.CSTNode) -> bool:
        """Return whether an expression is a parameter that is declared as a number, a flag or a text.

        It is no tensor whatever its callers pass, so that they need not be computed to tell.
        """
        if not isinstance(node, cst.Name) or self.declared is not None:
            return False
        bindings = self.names.bindings(node)
        return bool(bindings) and all(map(self._is_declared_plain, bindings))

    def _is_declared_plain(self, binding: Binding) -> bool:
        if binding.kind is not BindingKind.PARAMETER:
            return False
        declared = self.annotations.of_binding(binding)
        return declared is not None and declared.kind in _PLAIN and not self.is_one_of_set(binding)

    def parameter(self, binding: Binding) -> Value:
        """Return what a parameter can be, by its annotation, what the project passes, and its use.

        Where others may call the function, that is no constant, even if all calls in sight pass the same.
        ``constant_in_sight`` tells which one these pass.
        """
        param, function = binding.node, binding.scope.node
        assert isinstance(param, cst.Param) and isinstance(function, (cst.FunctionDef, cst.Lambda))
        if isinstance(function, cst.FunctionDef):
            owner = self.classes.owner(function)
            if owner is not None and self.classes.self_name(function) == binding.name:
                return self.instance(owner)
            if owner is not None and self.classes.class_name(function) == binding.name:
                return self._own_class(owner)
        if isinstance(param.star, str) and param.star:
            if param.star == "**":
                return without_constants(self._given_by_name(function))
            return without_constants(Value(Kind.TUPLE, item=self._given_besides(function, param)))
        declared = self.annotations.of_binding(binding)
        named = names_device(binding.name)
        if (declared is None or declared.kind is Kind.NUMBER) and self.is_one_of_set(binding):
            return TENSOR.on(Device.ACCELERATOR)
        if declared is not None and declared.host and self._called_variously(function) and not named:
            return declared
        passed = self._passed(function, binding.name, param)
        if passed is not None and self._has_other_users(self.classes.owner(function) or function):
            passed = without_constants(passed)
        agreed = self._agreed(declared, passed, named)
        if agreed is not None:
            return agreed
        if isinstance(function, cst.FunctionDef) and (declared is None or self._speaks_of_tensors(param)):
            given = self._hook_parameter(function, binding.name, param)
            if given.known:
                return given
        if isinstance(function, cst.Lambda):
            mapped = self._mapped(function, param)
            if mapped is BOTTOM or mapped.known:
                return mapped
        if named and (passed is None or passed.may_be(Kind.DEVICE)):
            return Value(Kind.DEVICE, device=Device.ACCELERATOR)
        if passed is BOTTOM:
            return passed
        if param.default is not None and self.value(param.default).kind is Kind.BOOL:
            # A switch, whatever its name suggests: ``return_loss=False``.
            return BOOL
        return passed if passed is not None else UNKNOWN

    @remembered
    def is_one_of_set(self, binding: Binding) -> bool:
        """Return whether a parameter of a method is one of what the class keeps on the device for its users:
        ``timestep`` where ``set_timesteps(…)`` makes ``self.timesteps`` there.

        Whoever goes through them hands on what they are, whatever the method declares.
        """
        if binding.kind is not BindingKind.PARAMETER:
            return False
        if self.link is not None and self.tree.is_elsewhere(binding.node):
            return self.counterpart(self.link.home(binding.node)).is_one_of_set(binding)
        owner = self.classes.owner(binding.scope.node)
        if owner is None:
            return False
        several = f"{binding.name}s"
        setter = self.classes.info(owner).methods.get(f"set_{several}")
        if setter is None:
            return False
        made = [
            self.value(each.value)
            for each in self.classes.assigned(owner, several)
            if each.value is not None and not each.path and self.tree.contains(setter, each.target)
        ]
        return any(value.kind is Kind.TENSOR and value.device is Device.ACCELERATOR for value in made)

    def _has_other_users(self, definition: Definition | None) -> bool:
        """Return whether code that the project does not show may use a function or class."""
        if self.link is None or not isinstance(definition, (cst.FunctionDef, cst.ClassDef)):
            return True
        home = self.link.home(definition) if self.tree.is_elsewhere(definition) else self
        return not self._shows_users(home, definition.name.value)

    def _shows_users(self, home: Any, name: str) -> bool:
        """Return whether the project shows all code that may use a name of the top level of a module."""
        link = self.link
        return link is not None and link.shows_users(home, name) and link.shows_programs(home)

    @remembered
    def _is_replaced(self, definition: Definition | None, attr: str) -> bool:
        """Return whether the project shows an heir of a class with an attribute of its own in place of one,
        or code that gives an object another one.
        """
        if self.link is None or not isinstance(definition, cst.ClassDef):
            return False
        family = self.classes.heirs(definition)
        if any(heir is not definition and self.classes.has_own(heir, attr) for heir in family):
            return True
        return self._is_given(definition, attr)

    @remembered
    def _is_given(self, definition: cst.ClassDef, attr: str) -> bool:
        """Return whether code of the project gives a class, or an object of it, another attribute."""
        if self.link is None:
            return False
        family = self.classes.heirs(definition)
        homes = (self, *map(self.counterpart, self.link.companions(self, (f".{attr} = ",))))
        given = ((home, each.target.value) for home in homes for each in home.names.attributes.get(attr, ()))
        return any(
            home.classes.instance_class(holder) is None and _may_be_of(home.value(holder), family)
            for home, holder in given
        )

    def constant_in_sight(self, node: cst.CSTNode) -> object:
        """Return the constant that an expression is; of a parameter, the one that all calls in sight pass."""
        bindings = self.names.bindings(node)
        if not bindings or any(not isinstance(binding.node, cst.Param) for binding in bindings):
            return self.value(node).constant
        return join(map(self._passed_for, bindings)).constant

    def _passed_for(self, binding: Binding) -> Value:
        param, function = binding.node, binding.scope.node
        if not isinstance(param, cst.Param) or not isinstance(function, (cst.FunctionDef, cst.Lambda)):
            return UNKNOWN
        return (None if param.star else self._passed(function, binding.name, param)) or UNKNOWN

    def _agreed(self, declared: Value | None, passed: Value | None, named_device: bool) -> Value | None:
        """Return what a parameter is by its annotation and its calls; None if both leave it open."""
        if passed is not None and passed is not BOTTOM and passed.known:
            if declared is None:
                return passed
            fits = declared.kind is passed.kind or not declared.known
            # ``decay: torch.Tensor``, which all that is seen calls with a number.
            promised = declared.tensorlike and passed.kind is Kind.NUMBER
            if fits or promised or (passed.kind is Kind.MODULE and self._leaves_open(declared)):
                return filled_in(passed, declared)
        if declared is None or not declared.known:
            return None
        if declared.tensorlike and passed is not None and passed is not BOTTOM:
            return declared.on(passed.device)
        if named_device and passed is None and declared.kind in (Kind.STRING, Kind.DEVICE):
            return declared.on(Device.ACCELERATOR)
        return declared

    def _mapped(self, function: cst.Lambda, param: cst.Param) -> Value:
        """Return what a lambda gets from ``filter(lambda p: …, parameters)``, ``map`` or ``sorted``."""
        call = self.tree.call_given(function)
        if call is None:
            return UNKNOWN
        if keywords(call).get("key") is function:
            return self._handed_to_key(call)
        if call.args[0].value is not function:
            return UNKNOWN
        position = function.params.params.index(param) + 1 if param in function.params.params else 0
        if not position or position >= len(call.args) or any(a.star for a in call.args):
            return UNKNOWN
        if self.names.qualified(call.func) not in ("builtins.filter", "builtins.map"):
            return UNKNOWN
        return self.iterated(self.value(call.args[position].value))

    def _handed_to_key(self, call: cst.Call) -> Value:
        """Return what ``sorted(items, key=…)``, ``max``, ``min`` and ``items.sort`` hand to ``key``."""
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "sort":
            items = self.value(call.func.value)
            return self.iterated(items) if items.kind is Kind.LIST else UNKNOWN
        if self.names.qualified(call.func) not in ("builtins.sorted", "builtins.max", "builtins.min"):
            return UNKNOWN
        single = len([arg for arg in call.args if arg.keyword is None]) == 1 and not call.args[0].star
        return self.iterated(self.value(call.args[0].value)) if single else UNKNOWN

    def _called_variously(self, function: cst.CSTNode) -> bool:
        """Return whether so many calls may run a function that they will not agree on one constant."""
        if not isinstance(function, cst.FunctionDef):
            return False
        owner = self.classes.owner(function)
        name = (
            owner.name.value
            if owner is not None and function.name.value == "__init__"
            else function.name.value
        )
        return len(self.tree.calls_by_name.get(name, ())) > 1

    def _speaks_of_tensors(self, param: cst.Param) -> bool:
        """Return whether an unknown annotation names a tensor in some way: ``Float[Tensor, "b c"]``."""
        return param.annotation is not None and "Tensor" in self.tree.source(param.annotation.annotation)

    def _passed(self, function: Function, name: str, param: cst.Param) -> Value | None:
        """Return the join of what the calls in this file pass for a parameter; None if nothing calls it."""
        found: list[Value] = []
        sites = self.callgraph.callers(function)
        for argument in [each for call in sites for each in self.callgraph.passed(call, function, name)]:
            if argument.node is not None:
                found.append(self.value(argument.node))
            elif argument.unknown:
                return UNKNOWN
            elif param.default is not None:
                found.append(self.value(param.default))
        if isinstance(function, cst.FunctionDef) and not sites and self._is_only_parameter(function, param):
            found += map(self._defined, self.callgraph.decorated(function))
        if found:
            return join(found)
        if not sites and param.default is not None:
            default = self.value(param.default)
            if (chosen := chosen_device(default)) is not None:
                return chosen
            if default.kind is Kind.TENSOR:
                return TENSOR  # wherever that of a caller is
            # A default of None or of an empty string says nothing about what callers pass.
            if default.kind in (Kind.NUMBER, Kind.BOOL, Kind.DTYPE) or default.device is not Device.UNKNOWN:
                return default._replace(constant=MISSING, literal=False)
        return None

    def _is_only_parameter(self, function: cst.FunctionDef, param: cst.Param) -> bool:
        """Return whether a function, or method, takes just this one."""
        given = function.params.params[self.classes.self_name(function) is not None :]
        return len(given) == 1 and given[0] is param

    @staticmethod
    def _defined(definition: cst.ClassDef | cst.FunctionDef) -> Value:
        kind = Kind.CLASS if isinstance(definition, cst.ClassDef) else Kind.FUNCTION
        return Value(kind, definition=definition)

    def _given_besides(self, function: Function, param: cst.Param) -> Value | None:
        """Return what the calls pass that ``*args`` takes; None if nothing is known of it."""
        found: list[Value] = []
        for call in self.callgraph.callers(function):
            given = self.callgraph.bound_to(call, function).given.get(param.name.value)
            found += map(self.value, given.nodes if given is not None else ())
            found += (self.iterated(self.value(a.value)) for a in call.args if a.star == "*")
        return join(found) if found else None

    def _given_by_name(self, function: Function) -> Value:
        """Return the dict of what the calls pass that ``**kwargs`` takes."""
        fields: dict[str, list[Value]] = {}
        others: list[Value] = []
        for call in self.callgraph.callers(function):
            bound = self.callgraph.bound_to(call, function)
            named = {each.name for each in bound.signature or ()}
            for name, given in bound.given.items():
                if name not in named:
                    fields.setdefault(name, []).extend(map(self.value, given.nodes))
            others += (dict_item(self.value(a.value)) for a in call.args if a.star == "**")
        item = each_of([*(value for values in fields.values() for value in values), *others])
        joined = {name: join(values) for name, values in fields.items()}
        known = tuple(sorted((name, value) for name, value in joined.items() if value.known))
        return Value(Kind.DICT, item=item, fields=known)

    def _hook_parameter(self, function: cst.FunctionDef, name: str, param: cst.Param) -> Value:
        """Return parameters that a framework fills: batches of a Lightning step, the inputs of a forward."""
        owner = self.classes.owner(function)
        if owner is None:
            return UNKNOWN
        info = self.classes.info(owner)
        if info.kind is not Kind.MODULE:
            return UNKNOWN
        if info.lightning and function.name.value in LIGHTNING_STEPS:
            return BATCH._replace(graph=Graph.DETACHED) if name == "batch" else UNKNOWN
        if function.name.value == "forward" and param.default is None:
            if ends(name, *LENGTHS_NAME) and self._moves_input(function, name):
                return BATCH._replace(part=True, device=Device.CPU)
            return BATCH._replace(part=True)
        return UNKNOWN

    def _moves_input(self, function: cst.FunctionDef, name: str) -> bool:
        """Return whether a function moves some of what it gets to the device itself, and not ``name``.

        What is asked where it is, or copied to the host, comes from the device as well.
        """
        parameters = {p.name.value for p in (*function.params.params, *function.params.kwonly_params)}
        moved: set[str] = set()
        for node in self.tree.descendants(function.body):
            match node:
                case cst.Attribute(value=cst.Name(asked), attr=cst.Name(attr)) if asked == name:
                    if attr in _PLACE_OR_MOVE:
                        return False
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("cuda" | "to"))):
                    root = start_of(owner, cst.Attribute, cst.Subscript)
                    moved.update({root.value} & parameters if isinstance(root, cst.Name) else ())
        return bool(moved) and name not in moved

    # ------------------------------------------------------------------ attributes

    def _attribute(self, node: cst.Attribute) -> Value:
        result = self._attribute_alone(node)
        if result.kind is Kind.UNKNOWN and result.device is Device.UNKNOWN and says_host(node.attr.value):
            return result.on(Device.CPU)
        if not result.tensorlike or result.device is Device.CPU:
            return result
        if (shown := self.proven(node, result)) is not None:
            return shown
        if says_host(node.attr.value) or (
            result.device is Device.UNKNOWN and self._is_attribute_read_as_array(node)
        ):
            return result.on(Device.CPU).kept_in(Memory.EITHER)
        left = self._left_on_host(node) if result.device is Device.ACCELERATOR else None
        return result if left is None else left

    def _left_on_host(self, node: cst.Attribute) -> Value | None:
        """Return what ``self.x`` is where all other methods of a class leave it on the host in the end, be it
        that one of them has had it on the device: ``self.x = x.to(device)``, … ``self.x = self.x.to("cpu")``.
        """
        owner, function = self.tree.enclosing(node, cst.ClassDef), self.tree.enclosing(node, cst.FunctionDef)
        if owner is None or function is None or not isinstance(node.value, cst.Name):
            return None
        left = self._left_in_the_end(owner, node.attr.value)
        if self.classes.self_name(function) != node.value.value or any(
            self.tree.enclosing(each.target, cst.FunctionDef) is function for each in left
        ):
            return None
        values = [self.value(each.value) for each in left if each.value is not None]
        return join(values) if values and all(value.device is Device.CPU for value in values) else None

    @remembered
    def _left_in_the_end(self, owner: cst.ClassDef, attr: str) -> list[AttributeBinding]:
        """Return the assignments to an attribute that none behind it in the same block takes the place of,
        before another method could see it; none if all are such.
        """
        info = self.classes.info(owner)
        stores = self.classes.attribute_bindings(info, attr)
        if any(self.tree.is_elsewhere(store.target) for store in stores):
            return []
        last: dict[cst.CSTNode | None, AttributeBinding] = {}
        replaced: list[AttributeBinding] = []
        for store in stores:
            block = self.tree.parent(self.tree.statement(store.target))
            if block in last and not self._is_read_between(info, last[block].target, store.target):
                replaced.append(last[block])
            last[block] = store
        return [store for store in stores if store not in replaced] if replaced else []

    def _is_read_between(self, info: ClassInfo, first: cst.Attribute, second: cst.Attribute) -> bool:
        """Return whether a method that reads an attribute is called between two assignments to it."""
        reads = self.tree.attributes_by_name.get(first.attr.value, ())
        for call in self.tree.between(first, second, cst.Call):
            if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name):
                method = info.method(call.func.attr.value)
                if method is not None and self.tree.holds(method, reads):
                    return True
        return False

    def _attribute_alone(self, node: cst.Attribute) -> Value:
        dotted = self.names.qualified(node)
        if dotted is not None:
            return self.library.named(dotted)
        if self.link is not None and (target := self.names.imported(node)) is not None:
            return self._imported(node, target)
        attr = node.attr.value
        if attr in _OF_ANYTHING and attr not in self._own_attributes:
            return _OF_ANYTHING[attr]
        if (owner := self._class_of_super(node.value)) is not None:
            return self._inherited(owner, attr) or UNKNOWN
        base = self.value(node.value)
        if base is BOTTOM:
            return base
        result = self.attribute(base, attr, node)
        if result.constant is not MISSING and self._is_chosen(base, attr, node.value):
            result = result._replace(constant=MISSING, literal=False)
        elif base.kind in _INSTANCES and base.origin is None:
            # What the class has, or its constructor sets, an heir or whoever holds the object may replace.
            kind = without_constants(result)
            if kind != result and (
                self._has_other_users(base.definition) or self._is_replaced(base.definition, attr)
            ):
                result = kind
        elif base.kind is Kind.CLASS and isinstance(base.definition, cst.ClassDef):
            kind = without_constants(result)
            named = self._names_class(node.value)
            others = (result.kind is Kind.BOOL or not named) and self._has_other_users(base.definition)
            changed = self._is_given if named else self._is_replaced
            if kind != result and (others or changed(base.definition, attr)):
                result = kind
        if result.kind is Kind.NONE and base.kind is Kind.OBJECT:
            # ``self.model = None`` keeps the place for what heirs in other files, or callers, put there.
            later = self.clues.by_name(attr, node)
            return later if later.kind in _PUT_THERE_LATER else result
        if result.kind is Kind.DEVICE and result.device is Device.UNKNOWN and is_place_of_model(node):
            return result.on(Device.ACCELERATOR)
        if result.kind is Kind.LOADER and base.kind is Kind.OBJECT:
            # ``data.loader = accelerator.prepare(data.loader)``
            prepared = self._assigned_as(dotted_text(node) or "")
            return prepared if prepared.device is Device.ACCELERATOR else result
        if result is BOTTOM or result.known:
            return result
        if is_noise_level(attr, dotted_text(node.value) or ""):
            return TENSOR.on(Device.CPU)
        if base.kind in (Kind.UNKNOWN, Kind.OBJECT, Kind.MODULE):
            return self._unknown_attribute(node, base, result)
        return result

    def _unknown_attribute(self, node: cst.Attribute, base: Value, unknown: Value) -> Value:
        """Return what assignments elsewhere, the use of an attribute or its name say of it."""
        attr = node.attr.value
        assigned = self._assigned_elsewhere(node)
        if assigned.known:
            return assigned
        if attr == "forward" and base.kind is Kind.MODULE:
            return base  # to call it is to call the module
        shown = self.clues.by_use(node)
        if shown.known:
            shown = self._merge_device(shown, unknown)
            if shown.device is Device.UNKNOWN and shown.tensorlike and self.clues.may_be_picture(node):
                return shown.on(Device.CPU)
            return shown
        if base.kind is Kind.MODULE and "item" in self.clues.used_attributes(node):
            return TENSOR  # a parameter or a buffer
        if attr == "data" and self._asked_as_tensor(node):
            return TENSOR
        if attr == "shape":
            return SHAPE
        if attr == "dtype" or attr.endswith("_dtype"):
            return DTYPE
        if attr == "grad" and base.kind is Kind.UNKNOWN and not self.tree.is_called(node):
            return TENSOR.attached(Graph.DETACHED)
        if attr in results.METHOD_DEVICES and self.tree.is_called(node):
            return unknown  # a method that moves, and no device
        if names_loss(attr):
            return unknown  # ``self.stft_loss`` is a criterion or a switch as often as a tensor
        return self._merge_device(self.clues.by_name(attr, node, unknown), unknown)

    def _names_class(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression is a class by its name, and not ``cls``, which may be an heir."""
        if isinstance(node, cst.Name):
            return all(b.kind is not BindingKind.PARAMETER for b in self.names.bindings(node))
        return isinstance(node, cst.Attribute) and node.attr.value != "__class__"

    def _is_chosen(self, base: Value, attr: str, owner: cst.BaseExpression) -> bool:
        """Return whether whoever makes an object that is only promised chooses what it has under a name."""
        if base.kind is not Kind.OBJECT or base.origin is not None:
            return False
        own = self.classes.instance_class(owner)
        if own is not None:
            # What stands beside a field is only its default.
            constructed = self.classes.info(own).method("__init__") is not None
            return not constructed and self.classes.parameter_behind(own, attr) is not None
        classes = (one for one in base.definitions if isinstance(one, cst.ClassDef))
        return any(self.classes.parameter_behind(one, attr) is not None for one in classes)

    def _asked_as_tensor(self, node: cst.Attribute) -> bool:
        """Return whether it is ``layer.alpha.data.item()``, a method of tensors asked of ``data``."""
        asked = self.tree.parent(node)
        return (
            isinstance(asked, cst.Attribute)
            and asked.value is node
            and asked.attr.value in ("item", "cpu", "cuda", "detach", "clone", "copy_", "fill_", "zero_")
        )

    @cached_property
    def _own_attributes(self) -> frozenset[str]:
        """Those names of `_OF_ANYTHING` that this file uses for attributes of its own."""
        classes = [self.names.scope_of(definition) for definition in self.tree.nodes(cst.ClassDef)]
        return frozenset(
            attr
            for attr in _OF_ANYTHING
            if attr in self.names.attributes or any(attr in scope.bindings for scope in classes)
        )

    def attribute(self, base: Value, attr: str, node: cst.CSTNode | None = None) -> Value:
        """Return the value of ``base.attr``."""
        if base.alternatives:
            # Whoever asks for what some of them lack knows that it is none of those.
            having = [one for one in base.each if not self._lacks(one, attr)]
            joined = join(self.attribute(one, attr, node) for one in having or base.each)
            inherited = joined.kind is Kind.FUNCTION and (joined.cls or "").startswith(".")
            return joined._replace(receiver=base) if inherited else joined
        match base.kind:
            case Kind.TENSOR | Kind.BATCH if attr == "device":
                return Value(Kind.DEVICE, device=base.device)
            case Kind.TENSOR:
                return self._attribute_of_tensor(base, attr)
            case Kind.BATCH:
                return self._attribute_of_batch(base, attr)
            case Kind.TUPLE if attr in _PAIR_FIELDS and base.elements and len(base.elements) == 2:
                # What max, sort, topk and their like return along a dimension.
                return base.elements[_PAIR_FIELDS.index(attr)]
            case Kind.LOADER | Kind.OPTIMIZER | Kind.SCHEDULER | Kind.SCALER | Kind.NDARRAY | Kind.DEVICE:
                if base.kind is Kind.NDARRAY and attr == "shape":
                    return SHAPE
                if base.kind is Kind.NDARRAY and attr == "T":
                    return base
                fact = results.ATTRIBUTES.get(base.kind.value, {}).get(attr)
                if fact is not None:
                    return self.library.from_fact(fact, (base,))
                return self._member(base, attr)
            case Kind.ACCELERATOR:
                if attr == "device":
                    return Value(Kind.DEVICE, device=Device.ACCELERATOR)
                return self._method(base, attr)
            case Kind.OBJECT | Kind.TUPLE if (held := field(base, attr)) is not None:
                known = base.origin is not None and not self._is_set_outside(attr, base.origin)
                return held if known else held._replace(constant=MISSING, literal=False)
            case Kind.MODULE | Kind.DATASET | Kind.OBJECT | Kind.SAMPLER:
                return self._member(base, attr)
            case Kind.CLASS if isinstance(base.definition, cst.ClassDef):
                method = self.classes.info(base.definition).method(attr)
                if method is not None:
                    return Value(Kind.FUNCTION, definition=method, receiver=base)
                return self._class_attribute(self.classes.info(base.definition), attr)
            case Kind.STRING | Kind.NUMBER | Kind.LIST | Kind.TUPLE | Kind.DICT | Kind.SHAPE:
                return self._method(base, attr)
            case _ if attr in results.MASKS_OF_NODES and base.device is Device.ACCELERATOR:
                return Value(Kind.TENSOR, device=base.device, dtype="torch.bool")
            case _:
                return UNKNOWN

    def _attribute_of_tensor(self, base: Value, attr: str) -> Value:
        fact = results.TENSOR_ATTRIBUTES.get(attr)
        if fact is None:
            return self._method(base, attr)
        if fact != "tensor":
            return self.library.from_fact(fact, (base,))
        graph = Graph.DETACHED if attr in results.DETACHED_ATTRIBUTES else base.graph
        dtype = base.dtype if attr in ("T", "mT", "data") else None
        taken = Value(Kind.TENSOR, device=base.device, graph=graph, dtype=dtype)
        return taken.kept_in(base.memory) if attr == "data" else taken

    def _attribute_of_batch(self, base: Value, attr: str) -> Value:
        # ``items`` and ``keys`` are those of a dict of them; no batch has a field of that name.
        if attr in results.TENSOR_METHODS or attr in DISTRIBUTION_METHODS or attr in ("items", "keys"):
            return self._method(base, attr)
        if attr in ("meta", "metadata"):
            return UNKNOWN  # what is known of a picture besides its pixels stays on the host
        fact = results.TENSOR_ATTRIBUTES.get(attr) or results.BATCH_ATTRIBUTES.get(attr)
        if fact is not None and attr not in ("T", "data", "name", "names"):
            return self.library.from_fact(fact, (base,))
        part = self.element(base)
        masks = attr in results.MASKS_OF_NODES and part.kind is Kind.TENSOR
        return part._replace(dtype="torch.bool") if masks else part

    def _lacks(self, base: Value, attr: str) -> bool:
        """Return whether an object or a model certainly has nothing under a name."""
        made = base.definition
        if not isinstance(made, cst.ClassDef) or base.kind not in (Kind.OBJECT, Kind.MODULE):
            return False
        inherited = attr in results.METHODS["module"] or attr in results.ATTRIBUTES["module"]
        return not (base.kind is Kind.MODULE and inherited) and self.classes.lacks(made, attr)

    def _method(self, base: Value, name: str) -> Value:
        """Return a bound method that no definition in this file has; the call computes what it returns."""
        return Value(Kind.FUNCTION, receiver=base, cls=f".{name}")

    def _member(self, base: Value, attr: str) -> Value:
        """Return an attribute of an instance: of its class in the project first, then of the library."""
        if isinstance(base.definition, cst.ClassDef):
            info = self.classes.info(base.definition)
            own = self._instance_attribute(info, attr, base)
            if own is not None and own.kind is Kind.NONE:
                own = self._put_there_by_heirs(base.definition, attr, base) or own
            if own is not None:
                return self._as_made(base, attr, own)
            if base.kind is Kind.MODULE and info.lightning:
                if attr == "device":
                    return Value(Kind.DEVICE, device=Device.ACCELERATOR)
                if attr in ("trainer", "logger", "hparams"):
                    return UNKNOWN
            # A mixin or abstract base asks for what its heirs in this file define.
            heirs = map(self.classes.info, self.classes.heirs(base.definition))
            defined = [self._instance_attribute(heir, attr, base) for heir in heirs]
            if any(own is not None for own in defined):
                return join(own for own in defined if own is not None)
        receiver = self.library.receiver(base)
        fact = results.ATTRIBUTES.get(receiver, {}).get(attr)
        if fact is not None:
            return self.library.from_fact(fact, (base,))
        if attr in results.METHODS.get(receiver, {}):
            return self._method(base, attr)
        return self._attribute_of_module(base, attr) if base.kind is Kind.MODULE else UNKNOWN

    def _attribute_of_module(self, base: Value, attr: str) -> Value:
        """Return what many modules have under a name, where nothing shows what this one has."""
        match attr:
            case "weight" | "bias" | "in_proj_weight" | "running_mean" | "running_var":
                graph = Graph.DETACHED if attr.startswith("running") else Graph.ATTACHED
                return Value(Kind.TENSOR, device=base.device, graph=graph, leaf=graph is Graph.ATTACHED)
            case "module":
                return base
            case "device":
                return Value(Kind.DEVICE, device=base.device)
            case "generate":
                return self._method(base, attr)
            case "items" | "values" if self._is_module_dict(base):
                return self._method(base, attr)
        return UNKNOWN

    def _as_made(self, base: Value, attr: str, own: Value) -> Value:
        """Return an attribute of an instance as the call that made the instance sets it."""
        call, definition = base.origin, base.definition
        if base.kind is not Kind.OBJECT or not isinstance(call, cst.Call):
            return own
        assert isinstance(definition, cst.ClassDef)
        parameter = self.classes.parameter_behind(definition, attr)
        if parameter is None or own is BOTTOM:
            return own
        if self._called(call).definition is not definition or self._is_set_outside(attr, call):
            return own._replace(constant=MISSING, literal=False)
        name, place = parameter
        plain = [argument for argument in call.args if argument.keyword is None]
        given = next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)
        if given is None and place is not None and place < len(plain):
            given = plain[place]
        if any(argument.star for argument in call.args):
            return own._replace(constant=MISSING, literal=False)
        if given is None:
            return own if place is not None or not plain else own._replace(constant=MISSING, literal=False)
        passed = self.value(given.value)
        return passed if passed is BOTTOM or passed.known else own._replace(constant=MISSING, literal=False)

    def _is_set_outside(self, attr: str, made: cst.CSTNode) -> bool:
        """Return whether this file, or that which makes an object, sets the attribute from outside."""
        files = [self]
        if self.link is not None and self.tree.is_elsewhere(made):
            files.append(self.counterpart(self.link.home(made)))
        for each in files:
            targets = (binding.target.value for binding in each.names.attributes.get(attr, ()))
            if any(each.classes.instance_class(owner) is None for owner in targets):
                return True
        return False

    def _put_there_by_heirs(self, definition: cst.ClassDef, attr: str, base: Value) -> Value | None:
        """Return what heirs of a class have where it only keeps the place, ``config = None``;
        None if that is nothing of one kind that is made to be put there.
        """
        heirs = map(self.classes.info, self.classes.heirs(definition))
        defined = [self._instance_attribute(heir, attr, base) for heir in heirs]
        put = join(one for one in defined if one is not None and one.kind is not Kind.NONE)
        return put if put.kind is Kind.OBJECT or put.kind in _PUT_THERE_LATER else None

    def _is_module_dict(self, module: Value) -> bool:
        if isinstance(module.definition, cst.ClassDef):
            return self.classes.info(module.definition).inherits("torch.nn.ModuleDict")
        return module.cls == "torch.nn.ModuleDict"

    def _instance_attribute(self, info: ClassInfo, attr: str, base: Value) -> Value | None:
        """Return what ``self.attr`` is by the assignments and methods of a class; None if it has none."""
        if self.link is not None and self.tree.is_elsewhere(info.node):
            return self.counterpart(self.link.home(info.node))._instance_attribute(info, attr, base)
        method = info.method(attr)
        assigned = self.classes.attribute_bindings(info, attr)
        if method is not None:
            bound = self._bound_method(method, base)
            if assigned and bound.kind is Kind.FUNCTION and not all(_wraps(each, attr) for each in assigned):
                # ``self.update = self.update_one``: the method only says how it is called.
                standing = self._assigned_to_attribute(assigned)
                if standing is BOTTOM or (standing.kind is Kind.FUNCTION and standing.definition is not None):
                    return standing
            return bound
        # What only adds to what is there says nothing of it.
        if any(b.value is not None and b.kind is not BindingKind.AUGMENT for b in assigned):
            work_out = partial(self._assigned_to_attribute, assigned)
            many = len(assigned) > _FEW
            joined = self._once(f"attribute {attr}", info.node, work_out) if many else work_out()
            if joined is not BOTTOM and joined.kind is Kind.LIST:
                return self._with_items(info, attr, joined)
            if joined is not BOTTOM and joined.kind is Kind.MODULE and joined.device is Device.UNKNOWN:
                joined = self._with_items(info, attr, joined)
                return joined.on(base.device) if base.device is Device.CPU else joined
            if joined == UNKNOWN:
                return self._declared_field(info, attr)
            return joined
        shared = self._class_attribute(info, attr)
        if shared.known:
            return shared
        if attr == "accelerator" and any(map(info.inherits, _TRAINERS)):
            return Value(Kind.ACCELERATOR)  # what a trainer has since it was built on Accelerate
        return self._registered(info, attr)

    def _with_items(self, info: ClassInfo, attr: str, held: Value) -> Value:
        """Return a list, or a container of layers, that starts empty, with the layers, functions or objects
        that the methods of a class put into it, or with what they keep in host memory.
        """
        container = held.kind is Kind.LIST or held.cls in MODULE_CONTAINERS
        if not container or not _is_vacant(held):
            return held
        lineage = {ancestor.node for ancestor in info.lineage}
        fillings = self._fillings.get(attr, ())
        filled = [read for read in fillings if self.tree.enclosing(read, cst.ClassDef) in lineage]
        put = [item for item in map(self._put_in, filled) if item is not None]
        if not put or len(put) < len(filled):
            return held
        items = join(put)
        kinds = _CALLED if held.kind is Kind.LIST else (Kind.MODULE,)
        on_host = held.kind is Kind.LIST and (items.kind is Kind.NUMBER or items.device is Device.CPU)
        known = items is not BOTTOM and (items.kind in kinds or on_host)
        return held._replace(item=items, elements=None) if known else held

    def _put_in(self, read: cst.Attribute) -> Value | None:
        """Return what a list gets when ``read`` is that of ``read.append(x)``, ``read[i] = x``,
        ``read.insert(0, x)`` or ``read.extend(xs)``.
        """
        match self.tree.parent(self.tree.parents[read]):
            case cst.Call(func=cst.Attribute(attr=cst.Name("insert")), args=[_, inserted]):
                return self.value(inserted.value)
            case cst.Call(func=cst.Attribute(attr=cst.Name("extend")), args=[several]):
                return self.iterated(self.value(several.value))
        item = self._put(read)
        return self.value(item) if item is not None else None

    def _assigned_to_attribute(self, bindings: Iterable[AttributeBinding]) -> Value:
        """Return what the assignments to an attribute, one of which does more than add to it, make of it."""
        found: list[Value] = []
        added: list[Value] = []
        promised: list[Value] = []
        for assigned in bindings:
            if assigned.value is None:
                continue
            value = self.value(assigned.value)
            if assigned.kind is BindingKind.AUGMENT:
                added.append(value)
                continue
            if assigned.kind is BindingKind.LOOP:
                value = self.iterated(value)
            value = self.unpacked(value, assigned.path)
            if value.kind in (Kind.UNKNOWN, Kind.NONE) and not assigned.path:
                holder = self.tree.parent(assigned.target)
                if isinstance(holder, cst.AnnAssign):
                    # None stands for what is filled in later.
                    declared = self.annotations.promised(holder.annotation.annotation)
                    if declared.known:
                        promised.append(declared)
                        continue
            found.append(value)
        # What is filled in says more than what is announced, if that is all there is.
        filled = join(found)
        found += [value for value in promised if filled is BOTTOM or filled.kind is not value.kind]
        if found and added:
            # Any method may come first: what all of them leave is the sum.
            found.append(reduce(self.library.operate, added, join(found)))
        return join(found)

    def _class_attribute(self, info: ClassInfo, attr: str) -> Value:
        for ancestor in info.lineage:
            self.effort.spent += 1
            bindings = self.names.scope_of(ancestor.node).bindings.get(attr)
            if bindings:
                return join(map(self._field, bindings))
        return UNKNOWN

    def _declared_field(self, info: ClassInfo, attr: str) -> Value:
        """Return what an annotation in the body of a class promises of an attribute."""
        for ancestor in info.lineage:
            self.effort.spent += 1
            for binding in self.names.scope_of(ancestor.node).bindings.get(attr, ()):
                return self.annotations.of_binding(binding) or UNKNOWN
        return UNKNOWN

    def _field(self, binding: Binding) -> Value:
        """Return what a binding in a class body makes of an attribute; None stands for what is filled in."""
        value = self.binding(binding)
        if value.kind is not Kind.NONE:
            return value
        declared = self.annotations.of_binding(binding)
        return value if declared is None or not declared.known else declared

    def _registered(self, info: ClassInfo, attr: str) -> Value | None:
        """Return buffers, parameters and submodules that are registered by name."""
        for node in self._registrations.get(attr, ()):
            if self.tree.enclosing(node, cst.ClassDef) in {a.node for a in info.lineage}:
                method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
                if method == "register_modules":
                    return self._part_of_pipeline(node, attr)
                if method == "add_module":
                    return self.value(node.args[1].value) if len(node.args) > 1 else MODULE
                leaf = method == "register_parameter"
                graph = Graph.ATTACHED if leaf else Graph.DETACHED
                given = self.value(node.args[1].value).dtype if len(node.args) > 1 else None
                # What is of floating-point numbers is cast with the module: ``model.half()``.
                dtype = given if given in NOT_FLOATING else None
                return Value(Kind.TENSOR, graph=graph, leaf=leaf, dtype=dtype)
        return None

    def _part_of_pipeline(self, registration: cst.Call, attr: str) -> Value:
        """Return what a pipeline of diffusers registers by a name: what it is given, promised, or called."""
        given = next(a.value for a in registration.args if a.keyword is not None and a.keyword.value == attr)
        value = self.value(given)
        if value.known:
            return value
        promised = ""
        for binding in self.names.bindings(given):
            if isinstance(binding.node, cst.Param) and binding.node.annotation is not None:
                promised = self.tree.source(binding.node.annotation.annotation)
        is_model = denotes(attr, Role.DIFFUSION) or promised.strip("'\"").endswith("Model")
        return MODULE if is_model else UNKNOWN

    @cached_property
    def _registrations(self) -> dict[str, list[cst.Call]]:
        found: dict[str, list[cst.Call]] = {}
        for call in self.tree.nodes(cst.Call):
            match call:
                case cst.Call(
                    func=cst.Attribute(
                        attr=cst.Name(
                            "register_buffer" | "register_parameter" | "add_module" | "register_module"
                        )
                    ),
                    args=[cst.Arg(value=cst.SimpleString() as name), *_],
                ):
                    found.setdefault(str(name.evaluated_value), []).append(call)
                case cst.Call(func=cst.Attribute(attr=cst.Name("register_modules"))):
                    for argument in call.args:
                        if argument.keyword is not None:
                            found.setdefault(argument.keyword.value, []).append(call)
        return found

    @cached_property
    def _fillings(self) -> dict[str, list[cst.Attribute]]:
        """By name: the attributes of ``self`` to which a call adds layers, as ``self.layers.append``, or in
        which a place is set: ``self.losses[i] = x``.
        """
        found: dict[str, list[cst.Attribute]] = {}
        for each in self.tree.nodes(cst.AssignTarget):
            match each.target:
                case cst.Subscript(
                    value=cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)) as filled
                ):
                    found.setdefault(name, []).append(filled)
        for call in self.tree.nodes(cst.Call):
            match call.func:
                case cst.Attribute(
                    value=cst.Attribute(value=cst.Name("self"), attr=cst.Name(name)) as filled,
                    attr=cst.Name("append" | "extend" | "insert" | "add_module" | "register_module"),
                ):
                    found.setdefault(name, []).append(filled)
        return found

    def _assigned_elsewhere(self, node: cst.Attribute) -> Value:
        """Return the value of ``args.device`` where the file assigns it under the same spelling.

        Of a parameter also after such an assignment in the files of all its callers.
        """
        spelt = dotted_text(node)
        assigned = self._assigned_as(spelt) if spelt is not None else UNKNOWN
        if assigned.known or self.link is None or not isinstance(node.value, cst.Name):
            return assigned
        bindings = self.names.bindings(node.value)
        if len(bindings) != 1 or bindings[0].kind is not BindingKind.PARAMETER:
            return assigned
        attr = node.attr.value
        owned = attr in self.names.attributes and self.classes.instance_class(node.value) is not None
        if owned or not self.link.has_anywhere((f".{attr} = ",)):
            return assigned  # by the class itself, or by nobody
        return self._assigned_by_callers(bindings[0], attr)

    def _assigned_as(self, spelt: str) -> Value:
        """Return what the file assigns to an attribute that is spelt so."""
        assigned = self._assignments_by_spelling.get(spelt)
        if assigned is None:
            return UNKNOWN
        found = solid(self._joined("spelt", assigned[0].target, assigned, self._assigned_value))
        if found.device is Device.CPU and found.kind in (Kind.STRING, Kind.DEVICE):
            # ``if not torch.cuda.is_available(): args.device = "cpu"``: it was something else before.
            return UNKNOWN if all(self._builds_on_former(each, spelt) for each in assigned) else found
        return found

    def _builds_on_former(self, assignment: AttributeBinding, spelt: str) -> bool:
        """Return whether an assignment leaves what an attribute was before, or makes something of that:
        ``args.device = torch.device(args.device)``.
        """
        if any(isinstance(branch.construct, cst.If) for branch in self.flow.branches(assignment.target)):
            return True
        return assignment.value is not None and any(
            isinstance(part, cst.Attribute) and dotted_text(part) == spelt
            for part in self.tree.descendants(assignment.value)
        )

    @solved(UNKNOWN)
    def _assigned_by_callers(self, binding: Binding, attr: str) -> Value:
        """Return the device that all callers assign to an attribute of what they pass for a parameter."""
        function = binding.scope.node
        if not isinstance(function, cst.FunctionDef):
            return UNKNOWN
        calls = self.callgraph.callers(function)
        found = [self._assigned_to_argument(call, function, binding.name, attr) for call in calls]
        devices = all(v.kind in (Kind.STRING, Kind.DEVICE) and v.device is not Device.UNKNOWN for v in found)
        return join(found) if found and devices else UNKNOWN

    def _assigned_to_argument(self, call: cst.Call, function: cst.FunctionDef, name: str, attr: str) -> Value:
        given = self.callgraph.bound_to(call, function).get(name).node
        spelt = dotted_text(given) if given is not None else None
        if given is None or spelt is None or self.link is None:
            return UNKNOWN
        home = self.counterpart(self.link.home(call)) if self.tree.is_elsewhere(call) else self
        assigned = home._assigned_as(f"{spelt}.{attr}")
        passed = home.names.bindings(given)
        if assigned.known or len(passed) != 1 or passed[0].kind is not BindingKind.PARAMETER:
            return assigned
        return home._assigned_by_callers(passed[0], attr)

    def _assigned_value(self, binding: AttributeBinding) -> Value:
        assert binding.value is not None
        return self.unpacked(self.value(binding.value), binding.path)

    @cached_property
    def _assignments_by_spelling(self) -> dict[str, list[AttributeBinding]]:
        """The plain assignments to attributes by how they are spelt, in the order in which they stand."""
        found: dict[str, list[AttributeBinding]] = {}
        for bindings in self.names.attributes.values():
            for binding in bindings:
                if binding.kind is BindingKind.ASSIGN and binding.value is not None:
                    spelt = dotted_text(binding.target)
                    if spelt is not None:
                        found.setdefault(spelt, []).append(binding)
        return found

    # ------------------------------------------------------------------ subscripts

    def _subscript(self, node: cst.Subscript) -> Value:
        base = self.value(node.value)
        if base is BOTTOM:
            return base
        if base.kind is Kind.UNKNOWN:
            shown = self.clues.by_use(node)
            if self._is_hyperparameter(node):
                return shown.on(Device.CPU)
            if not shown.known:
                word = last_name(node)
                if names_device(word):
                    return Value(Kind.DEVICE, device=Device.ACCELERATOR)  # ``config["device"]``
                if names_loader(word) or names_loaders(last_name(node.value)):
                    return Value(Kind.LOADER)  # a loader itself cannot be asked for an item
            return shown.on(base.device) if shown.device is Device.UNKNOWN else shown
        if base.kind is Kind.CLASS:
            return base
        if base.kind is Kind.OBJECT and base.origin is not None:
            held = self._registered_in(base.origin)
            if held is not BOTTOM:
                return held
        index = node.slice[0].slice if len(node.slice) == 1 else None
        if isinstance(index, cst.Slice):
            if base.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR):
                item = item_of(base)
                return Value(base.kind, item=item)
            if base.kind is Kind.MODULE or base.kind is Kind.BATCH:
                return base
            if base.kind is Kind.SHAPE:
                return SHAPE
        if base.kind is Kind.DICT:
            return self._held_under(base, index, node)
        position: int | None = None
        # Of whatever else is indexed, the index does not matter.
        if isinstance(index, cst.Index) and (base.elements or base.kind is Kind.TENSOR):
            constant = self.value(index.value).constant
            position = constant if isinstance(constant, int) else None
            if base.kind is Kind.TENSOR and isinstance(constant, str):
                return UNKNOWN  # a dictionary, whatever was promised
        if base.tensorlike and base.kind is Kind.TENSOR:
            taken = self.library.tensor(base, node=node).kept_in(self._sliced(base, node))
            return taken if base.dtype is None else taken._replace(dtype=base.dtype)
        if base.kind is Kind.NDARRAY and all(isinstance(e.slice, cst.Slice) for e in node.slice):
            return base._replace(constant=MISSING)
        held = self.element(base, position)
        if base.kind is Kind.LIST and held.device is Device.CPU:
            return self._held_or_stored(held, node)
        return held

    def _is_hyperparameter(self, node: cst.Subscript) -> bool:
        """Return whether it is ``group["betas"]``: a setting of an optimizer, in host memory."""
        match node:
            case cst.Subscript(
                value=cst.Name() as group, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]
            ):
                named = self.value(key).constant
                if not isinstance(named, str) or named == "params":
                    return False
            case _:
                return False
        bindings = self.names.bindings(group)
        return (
            bool(bindings)
            and all(
                isinstance(binding.value, cst.Attribute)
                and binding.value.attr.value == "param_groups"
                and self.classes.instance_class(binding.value.value) is not None
                for binding in bindings
            )
            and self.tree.source(node) not in self._subscript_stores
        )

    def _sliced(self, base: Value, node: cst.Subscript) -> Memory:
        """Return which memory a part of a tensor is in: that of the tensor, if it has no gaps.

        ``x[:n]`` and ``x[i]`` have none, ``x[:, :n]`` has some, and what indices gather is a new tensor.
        """
        first, *others = (element.slice for element in node.slice)
        for index in (first, *others):
            if isinstance(index, cst.Index) and self.value(index.value).kind not in (Kind.NUMBER, Kind.NONE):
                known = self.value(index.value).kind is not Kind.UNKNOWN or base.memory is Memory.PAGEABLE
                return Memory.PAGEABLE if known and base.memory is not Memory.UNKNOWN else Memory.UNKNOWN
        if isinstance(first, cst.Slice) and first.step is not None:
            return base.memory if base.memory is not Memory.PINNED else Memory.EITHER
        if not others or base.memory is not Memory.PINNED:
            return base.memory
        whole = isinstance(first, cst.Slice) and first.upper is None and first.lower is None
        cut = all(isinstance(i, cst.Slice) and i.upper is not None for i in others)
        return Memory.PAGEABLE if whole and cut else Memory.EITHER

    def _held_under(self, base: Value, index: cst.BaseSlice | None, node: cst.Subscript) -> Value:
        """Return what a dict has under a key."""
        if isinstance(index, cst.Index):
            held = self.held_under(base, index.value)
            if held is not None:
                return self._held_or_stored(held, node)
        return base.item if base.item is not None else self._stored(node)

    def held_under(self, base: Value, key: cst.BaseExpression) -> Value | None:
        """Return what a dict has under a key; None if that is not known."""
        if base.fields:
            return field(base, self.value(key).constant)
        if isinstance(base.origin, cst.Dict) and base.origin.elements:
            return self._picked(base.origin, self.value(key).constant)
        return None

    def _picked(self, display: cst.Dict, key: object) -> Value | None:
        """Return what a display has under a text, if all of its keys are spelt out."""
        found = None
        for element in display.elements:
            match element:
                case cst.DictElement(key=cst.SimpleString() as own):
                    found = element.value if own.evaluated_value == key else found
                case _:
                    return None
        return None if found is None else self.value(found)

    def _stored(self, node: cst.Subscript) -> Value:
        """Return the value of ``d[key]`` where the file stores something under the same spelling."""
        spelt, stores = self.tree.source(node), self._stores_to(node)
        values = [assign.value for assign in stores]
        return solid(self._joined(f"stored {spelt}", stores[0], values, self.value)) if stores else UNKNOWN

    def _stores_to(self, node: cst.Subscript) -> list[cst.Assign]:
        """Return the assignments to what is spelt like an item; if it is of a variable, in the same scope."""
        stores = self._subscript_stores.get(self.tree.source(node), [])
        if not stores or not isinstance(node.value, cst.Name):
            return stores
        name = node.value.value
        scope = self.names.lookup(name, node)
        return [assign for assign in stores if self.names.lookup(name, assign) is scope]

    def _held_or_stored(self, held: Value, node: cst.Subscript) -> Value:
        """Return an item, or what the file puts in its place: ``self.grid[i] = grid.to(x.device)``."""
        return join((held, self._stored(node))) if self._stores_to(node) else held

    @cached_property
    def _subscript_stores(self) -> dict[str, list[cst.Assign]]:
        found: dict[str, list[cst.Assign]] = {}
        for assign in self.tree.nodes(cst.Assign):
            for target in assign.targets:
                if isinstance(target.target, cst.Subscript):
                    spelt = self.tree.source(target.target)
                    found.setdefault(spelt, []).append(assign)
        return found

    # ------------------------------------------------------------------ calls

    def _call(self, node: cst.Call) -> Value:
        func = node.func
        dotted = self.names.qualified(func)
        if dotted == "typing.cast" and len(node.args) == 2:
            return self._cast(node.args[0].value, self.value(node.args[1].value))
        if self._is_async_helper(func):
            return TENSOR.on(Device.ACCELERATOR)
        if dotted == _FIELD:
            return self._default_of_field(node)
        if dotted is not None:
            return self.library.call(node, dotted)
        if isinstance(func, cst.Attribute) and (owner := self._class_of_super(func.value)) is not None:
            if self._inherited(owner, func.attr.value) is None:
                return self.library.method_call(self.instance(owner), func.attr.value, node, inherited=True)
        if isinstance(func, cst.Call) and len(node.args) == 1 and len(func.args) == 1:
            if self.names.qualified(func.func) == "builtins.type":
                return self._made_alike(func.args[0].value, node.args[0].value)
        names = self._names_of_tuple(func)
        if names and not any(argument.star for argument in node.args):
            return self._named_tuple(node, names)
        callee = self.value(func)
        if callee is BOTTOM:
            return callee
        if callee.definition is None and callee.cls is None and isinstance(func, (cst.Name, cst.IfExp)):
            chosen = self._chosen_callees(func)
            if chosen:
                return join(self._called_as(one, node) for one in chosen)
        return self.call_of(callee, node)

    def _chosen_callees(self, func: cst.Name | cst.IfExp) -> tuple[cst.BaseExpression, ...]:
        """Return the two functions of which a call runs one: ``bar = tqdm if verbose else iter``."""
        binding = self.names.assignment(func) if isinstance(func, cst.Name) else None
        match func if binding is None else binding.value:
            case cst.IfExp(body=one, orelse=other):
                return one, other
            case _:
                return ()

    def _called_as(self, func: cst.BaseExpression, node: cst.Call) -> Value:
        """Return what a call gives if it runs what another expression names."""
        dotted = self.names.qualified(func)
        if dotted is not None:
            return self.library.call(node, dotted)
        callee = self.value(func)
        return callee if callee is BOTTOM else self.call_of(callee, node)

    def _names_of_tuple(self, func: cst.BaseExpression) -> tuple[str, ...]:
        """Return the names of the elements of a class that ``namedtuple("Loss", "total kl")`` made."""
        binding = self.names.assignment(func)
        made = binding.value if binding is not None else None
        if not isinstance(made, cst.Call) or len(made.args) < 2:
            return ()
        if self.names.qualified(made.func) not in _NAMED_TUPLES:
            return ()
        match made.args[1].value:
            case cst.SimpleString(raw_value=text):
                return tuple(text.replace(",", " ").split())
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                pairs = (each.value for each in elements)
                firsts = [
                    pair.elements[0] if isinstance(pair, cst.Tuple) and pair.elements else each
                    for each, pair in zip(elements, pairs, strict=True)
                ]
                texts = [e.value.raw_value for e in firsts if isinstance(e.value, cst.SimpleString)]
                return tuple(texts) if len(texts) == len(elements) else ()
        return ()

    def _named_tuple(self, node: cst.Call, names: tuple[str, ...]) -> Value:
        """Return the tuple that a call makes of its arguments, with the names of its elements."""
        given = {
            argument.keyword.value if argument.keyword is not None else names[min(place, len(names) - 1)]: (
                solid(self.value(argument.value))
            )
            for place, argument in enumerate(node.args)
        }
        elements = tuple(given.get(name, UNKNOWN) for name in names)
        return Value(Kind.TUPLE, elements=elements, fields=tuple(sorted(zip(names, elements, strict=True))))

    def _default_of_field(self, node: cst.Call) -> Value:
        """Return what ``field(default=…)`` or ``field(default_factory=…)`` puts into an object."""
        default = keywords(node).get("default")
        if default is not None:
            return self.value(default)
        made_by = self._called(node)
        if made_by is BOTTOM:
            return made_by
        return self.call_of(made_by, node) if made_by.definition is not None else UNKNOWN

    def _called(self, node: cst.Call) -> Value:
        """Return what a call runs, as ``field(default_factory=…)`` does to what it is given."""
        if self.names.qualified(node.func) != _FIELD:
            return self.value(node.func)
        factory = keywords(node).get("default_factory")
        return UNKNOWN if factory is None else self.value(factory)

    def _is_async_helper(self, func: cst.BaseExpression) -> bool:
        """Return whether the configuration says that a function copies what it is given to the device."""
        helpers = self.declared.known_async_helpers if self.declared is not None else ()
        return isinstance(func, (cst.Name, cst.Attribute)) and is_declared(self.names, func, helpers)

    def _cast(self, wanted: cst.BaseExpression, value: Value) -> Value:
        """Return what ``typing.cast`` says a value to be, with all that is known of it."""
        if value is BOTTOM:
            return value
        promised = self.annotations.promised(wanted)
        if not promised.known or promised.kind is value.kind:
            return value
        if promised.kind is Kind.TENSOR and value.kind is Kind.BATCH:
            return value._replace(kind=Kind.TENSOR)
        return promised if promised.device is not Device.UNKNOWN else promised.on(value.device)

    def _made_alike(self, model: cst.BaseExpression, items: cst.BaseExpression) -> Value:
        """Return ``type(batch)(move(item) for item in batch)``: the same container of other items."""
        container, given = self.value(model), self.value(items)
        if container is BOTTOM or given is BOTTOM:
            return BOTTOM
        if container.kind is Kind.BATCH or container.kind in _COLLECTIONS:
            return Value(Kind.LIST, item=item_of(given), origin=given.origin)
        return UNKNOWN

    def call_of(self, callee: Value, node: cst.Call) -> Value:
        """Return what calling ``callee`` at ``node`` gives."""
        if callee.alternatives:
            return join(self.call_of(one, node) for one in callee.each)
        match callee.kind:
            case Kind.FUNCTION if callee.receiver is not None and callee.definition is None:
                return self.library.method_call(callee.receiver, (callee.cls or ".")[1:], node)
            case Kind.FUNCTION if isinstance(callee.definition, (cst.FunctionDef, cst.Lambda)):
                result = self._applied(callee.definition, node) or self._returned_to(callee, node)
                parts = result.elements or (result,)
                if any(self._may_be_elsewhere(callee.definition, part) for part in parts):
                    result = self._where_given(callee.definition, node, result)
                if result.kind is Kind.UNKNOWN and (others := self._overriding(callee.definition)):
                    result = join(map(self.returned, others))
                if result.kind is Kind.UNKNOWN and result is not BOTTOM:
                    # A body that leaves it open tells no less than one that the project does not show.
                    called = self.library.unknown_call(node)
                    return called if result.may_be(called.kind) else result
                return result
            case Kind.FUNCTION | Kind.CLASS if callee.cls is not None:
                return self._preset(self.library.call(node, callee.cls), callee, node)
            case Kind.CLASS:
                either = self._of_either(node) if callee.definition is None else None
                return either or self.library.instance_of(callee, node)
            case Kind.MODULE:
                owners = map(self.classes.owner, self.callgraph.forwards(callee))
                run = [callee._replace(definition=owner) for owner in owners] or [callee]
                return join(self.library.module_call(one, node) for one in run)
            case Kind.OBJECT | Kind.DATASET if isinstance(callee.definition, cst.ClassDef):
                method = self.classes.info(callee.definition).method("__call__")
                return self.returned(method) if method is not None else UNKNOWN
            case Kind.TENSOR if callee.device is Device.CPU:
                return TENSOR.on(Device.CPU)  # ``scheduler.sigma_to_alpha(…)``
            case Kind.UNKNOWN:
                return self._of_either(node) or self.library.unknown_call(node)
            case _:
                return UNKNOWN

    def _of_either(self, node: cst.Call) -> Value | None:
        """Return the result of calling what a condition chooses among functions and types of a library."""
        ways = self.names.either_qualified(node.func)
        known = [dotted for dotted in ways if dotted is not None]
        return join(self.library.call(node, each) for each in known) if ways and known == ways else None

    # ------------------------------------------------------------------ registries

    def _returned_to(self, callee: Value, node: cst.Call) -> Value:
        """Return what a function of the project returns; for a method of a registry, an entry of that."""
        assert isinstance(callee.definition, (cst.FunctionDef, cst.Lambda))
        receiver = callee.receiver
        made = receiver.origin if receiver is not None and receiver.kind is Kind.OBJECT else None
        if made is not None and isinstance(callee.definition, cst.FunctionDef):
            held = self._registered_in(made)
            found = self._handed_out(callee.definition, held) if held is not BOTTOM else None
            if found is not None:
                # All that a registry makes, one expression of it makes.
                return found._replace(origin=node) if found.kind is Kind.MODULE else found
        result = self.returned(callee.definition)
        owner = self.classes.owner(callee.definition) if self.classes.is_of_class(callee.definition) else None
        return result if owner is None or receiver is None else self._made_by(receiver, owner, result, node)

    def _made_by(self, receiver: Value, owner: cst.ClassDef, result: Value, node: cst.Call) -> Value:
        """Return what a class method makes, ``cls(…)``, for the class or instance that it is called of."""
        if result.elements is not None:
            parts = tuple(self._made_by(receiver, owner, part, node) for part in result.elements)
            return result._replace(elements=parts, item=each_of(parts))
        if result.definition is not owner or result.kind in (Kind.CLASS, Kind.FUNCTION):
            return result
        makers = [one for one in receiver.definitions if isinstance(one, cst.ClassDef)]
        if makers == [owner] and result.kind is not Kind.MODULE:
            return result
        return join(result._replace(definition=one, origin=node, fields=()) for one in makers or [owner])

    def _own_class(self, owner: cst.ClassDef) -> Value:
        """Return the class that its class methods get; unknown if heirs are of another kind: of a mixin."""
        kind = self.classes.info(owner).kind
        alike = all(self.classes.info(heir).kind is kind for heir in self.classes.heirs(owner))
        return Value(Kind.CLASS, definition=owner) if alike else UNKNOWN

    @solved(BOTTOM)
    def _registered_in(self, made: cst.CSTNode) -> Value:
        """Return the classes and functions that decorators store in an object: ``@MODELS.register()``."""
        registry = self.value(made).definition
        if not isinstance(registry, cst.ClassDef):
            return BOTTOM
        entries = [
            self._defined(definition)
            for method in self._storing(registry)
            for decorator, definition in self.callgraph.decorators(method)
            if self._decorates_by(decorator, made)
        ]
        return join(entries) if len(entries) <= MANY else BOTTOM

    def _decorates_by(self, decorator: cst.BaseExpression, made: cst.CSTNode) -> bool:
        head = decorator.func if isinstance(decorator, cst.Call) else decorator
        owner = head.value if isinstance(head, cst.Attribute) else head
        return self.value(owner).origin is made

    @remembered
    def _storing(self, registry: cst.ClassDef) -> tuple[cst.FunctionDef, ...]:
        """Return the methods that put a variable under a key of an attribute, ``self.entries[name] = cls``,
        or of the object itself, which is a dict then, or hand one to a method that does.
        """
        found: dict[cst.FunctionDef, None] = {}
        for assign in self.tree.nodes_within(registry, cst.Assign):
            match assign:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Subscript(value=owner))], value=cst.Name()
                ) if isinstance(owner, cst.Attribute) or self.classes.instance_class(owner) is registry:
                    function = self.tree.enclosing(assign, cst.FunctionDef)
                    found.update({function: None} if isinstance(function, cst.FunctionDef) else {})
                case _:
                    pass
        for storing in (waiting := list(found)):
            for call in self.tree.calls_by_name.get(storing.name.value, ()):
                function = self.tree.enclosing(call, cst.FunctionDef)
                match call:
                    case cst.Call(func=cst.Attribute(value=owner), args=args) if (
                        isinstance(function, cst.FunctionDef)
                        and function not in found
                        and self.tree.contains(registry, call)
                        and self.classes.instance_class(owner) is not None
                        and any(isinstance(each.value, cst.Name) for each in args)
                    ):
                        found[function] = None
                        waiting.append(function)
                    case _:
                        pass
        return tuple(found)

    def _handed_out(self, method: cst.FunctionDef, held: Value) -> Value | None:
        """Return what a method of a registry returns for an entry: the entry, or the result of calling it."""
        if self.link is not None and self.tree.is_elsewhere(method):
            return self.counterpart(self.link.home(method))._handed_out(method, held)
        for way_out in self.flow.exits(method):
            given = way_out.value if isinstance(way_out, cst.Return) else None
            if given is not None and self._is_entry(given):
                return held
            if isinstance(given, cst.Call) and self._is_entry(given.func):
                return self.call_of(held, given)
        return None

    @solved(False)
    def _is_entry(self, node: cst.BaseExpression) -> bool:
        """Return whether an expression is an item of an attribute of ``self``, or of what a method gives."""
        match node:
            case cst.Subscript(value=cst.Attribute(value=owner) | (cst.Name() as owner)):
                return self.classes.instance_class(owner) is not None
            case cst.Call(func=cst.Attribute(value=cst.Attribute(value=owner), attr=cst.Name("get"))):
                return self.classes.instance_class(owner) is not None
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))):
                registry = self.classes.instance_class(owner)
                method = self.classes.info(registry).method(name) if registry is not None else None
                ways_out = self.flow.exits(method) if method is not None else ()
                return any(
                    isinstance(each, cst.Return) and each.value is not None and self._is_entry(each.value)
                    for each in ways_out
                )
            case cst.Name():
                values = [b.value for b in self.names.bindings(node) if b.kind is BindingKind.ASSIGN]
                return any(value is not None and self._is_entry(value) for value in values)
            case _:
                return False

    # ------------------------------------------------------------------ calls of functions

    def _applied(self, function: Function, node: cst.Call) -> Value | None:
        """Return what a call gives that applies a function to the tensors of a structure."""
        parts = self.callgraph.applied(function) if isinstance(function, cst.FunctionDef) else None
        if parts is None:
            return None
        bound = self.callgraph.bound_to(node, function)
        applied, given = (bound.get(name).node for name in parts)
        if applied is None or given is None:
            return None
        functions, structure = self.value(applied), self.value(given)
        if functions is BOTTOM or structure is BOTTOM:
            return BOTTOM
        definitions = [one.definition for one in functions.each] if functions.kind is Kind.FUNCTION else []
        results_of = [
            self.returned(one) for one in definitions if isinstance(one, (cst.FunctionDef, cst.Lambda))
        ]
        result = join(results_of) if results_of else UNKNOWN
        if result is BOTTOM:
            return BOTTOM
        found = _with_each(structure, result)
        return None if found == UNKNOWN else found

    def _where_given(self, function: Function, node: cst.Call, result: Value) -> Value:
        """Return what a call gives of which all tensors are on the CPU,
        while others have some on an accelerator.

        A function that moves nothing itself computes where its tensors are.
        """
        given = [self.value(argument.value) for argument in node.args]
        tensors = [value for value in given if value.tensorlike]
        if not tensors or any(value.device is not Device.CPU for value in tensors):
            return result
        if any(argument.star for argument in node.args):
            return result
        if any(value.kind not in _NOWHERE for value in given if not value.tensorlike):
            return result
        if self._names_place(function):
            return result
        if result.kind is Kind.TUPLE and result.elements:
            parts = tuple(one.on(Device.CPU) if one.tensorlike else one for one in result.elements)
            return result._replace(elements=parts, item=each_of(parts))
        return result.on(Device.CPU)

    def _may_be_elsewhere(self, function: Function, result: Value) -> bool:
        """Return whether a result may be on the device, or wherever its callers' tensors are."""
        if not result.tensorlike or result.device is Device.CPU:
            return False
        return result.device is Device.ACCELERATOR or self._only_computes(function)

    @remembered
    def _only_computes(self, function: Function) -> bool:
        """Return whether a function calls only torch, so that its results are where its tensors are."""
        calls = (part for part in self.tree.descendants(function.body) if isinstance(part, cst.Call))
        return all((self.names.qualified(call.func) or "").startswith(("torch.", "math.")) for call in calls)

    @remembered
    def _names_place(self, function: Function) -> bool:
        """Return whether a function names a device, or state of its own, beside its arguments."""
        names = (part.value for part in self.tree.descendants(function.body) if isinstance(part, cst.Name))
        return not _PLACES.isdisjoint(names)

    def _preset(self, made: Value, callee: Value, node: cst.Call) -> Value:
        """Return a tensor that ``partial(torch.zeros, device=device)`` makes, where that says."""
        if made.kind is not Kind.TENSOR or not callee.presets:
            return made
        for call in (*callee.presets, node):
            if (device := keywords(call).get("device")) is not None:
                made = made.on(self.library.device(self.value(device)))
        return made

    def _overriding(self, function: Function) -> Sequence[Function]:
        """Return what heirs define in the place of a method without a body; nothing for any other."""
        if not isinstance(function, cst.FunctionDef) or not is_abstract(function):
            return ()
        return self.callgraph.overriding(function)

    def _class_of_super(self, node: cst.BaseExpression) -> cst.ClassDef | None:
        """Return the class around ``super()``; None for any other expression."""
        if not isinstance(node, cst.Call) or self.names.qualified(node.func) != "builtins.super":
            return None
        return self.tree.enclosing(node, cst.ClassDef)

    def _inherited(self, owner: cst.ClassDef, attr: str) -> Value | None:
        """Return what ``super().attr`` is in a class, by the methods of its bases; None if it has none."""
        for parent in self.classes.info(owner).parents:
            method = parent.method(attr)
            if method is not None:
                return self._bound_method(method, self.instance(owner))
        return None

    def _bound_method(self, method: cst.FunctionDef, instance: Value) -> Value:
        """Return a method of an instance, or what it returns if it is a property."""
        if is_property(method):
            return self.returned(method)
        return Value(Kind.FUNCTION, definition=method, receiver=instance)

    # ------------------------------------------------------------------ modules

    @remembered
    def instance(self, definition: cst.ClassDef) -> Value:
        """Return an instance of a class of this file."""
        info = self.classes.info(definition)
        cls = next((b for b in info.bases if kind_of_class(b) is info.kind), None)
        kind = Kind.MODULE if info.kind is Kind.OBJECT and self._is_interface(info) else info.kind
        return Value(kind, cls=cls, definition=definition)

    def _leaves_open(self, declared: Value) -> bool:
        """Return whether a declared class is a protocol, of which models need not be instances."""
        if declared.kind is not Kind.OBJECT:
            return False
        definition = declared.definition
        if not isinstance(definition, cst.ClassDef):
            return False
        return any(map(is_abstract, self.classes.info(definition).methods.values()))

    def _is_interface(self, info: ClassInfo) -> bool:
        """Return whether a class says what models have to offer: all that implement it are modules."""
        if not any(map(is_abstract, info.methods.values())):
            return False
        heirs = [self.classes.info(heir) for heir in self.classes.heirs(info.node) if heir is not info.node]
        return bool(heirs) and all(heir.kind is Kind.MODULE for heir in heirs)

    # ------------------------------------------------------------------ functions of the file

    def returned(self, function: Function) -> Value:
        """Return what a function of this file returns, whoever calls it; a generator is an iterator."""
        if isinstance(function, cst.Lambda):
            return self.value(function.body)
        return self.value(function)

    def _returned(self, function: cst.FunctionDef) -> Value:
        exits = self.flow.exits(function)
        yielded = [
            self.iterated(self.value(e.value.item)) if isinstance(e.value, cst.From) else self.value(e.value)
            for e in exits
            if isinstance(e, cst.Yield) and e.value is not None
        ]
        if yielded:
            item = join(yielded)
            return Value(Kind.ITERATOR, item=item.if_known)
        given = [e.value for e in exits if isinstance(e, cst.Return) and e.value is not None]
        values = [self.value(node) for node in given]
        result = join(values) if values else UNKNOWN if is_abstract(function) else NONE
        if result.kind is Kind.UNKNOWN:
            # ``if not batch: return {}`` says nothing of what the other ways out return.
            filled = [value for node, value in zip(given, values, strict=True) if not _is_empty(node)]
            structure = _structure(filled)
            if structure is not None:
                return structure
        if result is not BOTTOM and result.kind is Kind.UNKNOWN and function.returns is not None:
            declared = self.annotations.promised(function.returns.annotation)
            several = [value for value in values if value.kind is Kind.TUPLE]
            if several and declared.tensorlike:
                return join(several)  # one of the ways out keeps the promise; the others are unpacked
            # What returns something does not return None, whatever it declares.
            return declared if declared.kind is not Kind.NONE else UNKNOWN
        return result


def _item(value: Value) -> Value | None:
    """Return what each item of a comprehension is; None while that is still being computed."""
    return None if value is BOTTOM else value


def _with_each(structure: Value, result: Value) -> Value:
    """Return a structure of tensors with what a function gave for each of them."""
    if structure.kind in _COLLECTIONS:
        elements = structure.elements and tuple(_with_each(element, result) for element in structure.elements)
        item = None if elements else _with_each(structure.item or UNKNOWN, result)
        fields = tuple((key, _with_each(held, result)) for key, held in structure.fields)
        return structure._replace(item=item, elements=elements, fields=fields)
    if structure.kind is Kind.UNKNOWN:
        return UNKNOWN.on(result.device)
    if not structure.tensorlike:
        return structure
    if result.known and not result.tensorlike:
        return result if structure.kind is Kind.TENSOR else UNKNOWN
    graph = structure.graph if result.graph is Graph.UNKNOWN else result.graph
    return structure._replace(device=result.device, graph=graph, dtype=result.dtype, constant=MISSING)


def _may_be_of(value: Value, family: Collection[cst.ClassDef]) -> bool:
    """Return whether a value may be an instance of one of some classes."""
    if value.definition is None:
        return value.cls is None and value.kind in (Kind.UNKNOWN, Kind.OBJECT, Kind.MODULE)
    return value.definition in family


def _is_switch(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value in ("True", "False")


def _is_vacant(value: Value) -> bool:
    """Return whether a list starts without items, or with None in each place."""
    held = value.elements if value.elements is not None else (value.item,) if value.item is not None else ()
    return all(each.kind is Kind.NONE for each in held)


def _is_empty(node: cst.BaseExpression) -> bool:
    """Return whether an expression is ``{}``, ``[]`` or ``()``."""
    return isinstance(node, (cst.Dict, cst.List, cst.Tuple)) and not node.elements


def _structure(values: Sequence[Value]) -> Value | None:
    """Return the batch that a function returns as a tensor in one case, as a container in others."""
    if not any(value.tensorlike for value in values):
        return None
    parts = []
    for value in values:
        part = item_of(value) if value.kind in _COLLECTIONS else value
        # ``{key: move(item) for …}``, which is what the function itself returns
        if part is None and isinstance(value.origin, (cst.DictComp, cst.ListComp, cst.GeneratorExp)):
            continue
        if part is None or not part.tensorlike:
            return None
        parts.append(part)
    return join(parts)._replace(kind=Kind.BATCH)


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


_COLLECTIONS = frozenset({Kind.LIST, Kind.TUPLE, Kind.DICT})
_HOST_KINDS = frozenset({Kind.NUMBER, Kind.BOOL, Kind.STRING, Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.NDARRAY})
# What is on no device, and what a function names that may compute elsewhere than where its arguments are.
_NOWHERE = frozenset({Kind.BOOL, Kind.DTYPE, Kind.NONE, Kind.NUMBER, Kind.SHAPE, Kind.STRING})
_NAMED_TUPLES = frozenset({"collections.namedtuple", "typing.NamedTuple"})
_PLACES = frozenset({"cuda", "device", "self", "to", "type_as"})
_PLAIN = frozenset({Kind.BOOL, Kind.NUMBER, Kind.STRING})
# What heirs, or callers, put where a class has ``None``; in other files its name tells.
_PUT_THERE_LATER = frozenset({Kind.MODULE, Kind.LOADER, Kind.OPTIMIZER, Kind.DEVICE})
_PAIR_FIELDS = ("values", "indices")
_CONSTANT_NAMES = {
    "True": BOOL._replace(constant=True),
    "False": BOOL._replace(constant=False),
    "None": NONE,
    "__name__": STRING,
    "__file__": STRING,
}

# The hooks of a LightningModule that get a batch; the trainer moves it and sets the grad mode.
LIGHTNING_STEPS = frozenset({"training_step", "validation_step", "test_step", "predict_step"})


def _ordered(operators: Sequence[cst.BaseCompOp], operands: Sequence[Value]) -> bool:
    """Return whether only tensors answer this comparison of a batch: ``<``, or ``==`` on a device."""
    if any(v.kind not in (Kind.BATCH, Kind.NUMBER, Kind.UNKNOWN) for v in operands):
        return False
    ordering = (cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual)
    if all(isinstance(o, ordering) for o in operators):
        return True
    placed = all(v.device is Device.ACCELERATOR for v in operands if v.kind is Kind.BATCH)
    return placed and all(v.kind is not Kind.UNKNOWN for v in operands)


def _loader_device(loader: Value) -> Device:
    """Return where the batches of a loader are: in host memory, unless a framework prepared the loader."""
    return Device.ACCELERATOR if loader.device is Device.ACCELERATOR else Device.CPU


# By exact type: LibCST's classes are abstract base classes, on which pattern matching is slow.
_BY_TYPE: dict[type[cst.CSTNode], Callable[[Inference, Any], Value]] = {
    cst.Name: Inference._name,
    cst.Attribute: Inference._attribute,
    cst.Call: Inference._call,
    cst.Integer: Inference._number,
    cst.Float: Inference._number,
    cst.Imaginary: Inference._number,
    cst.SimpleString: Inference._string,
    cst.ConcatenatedString: Inference._string,
    cst.FormattedString: Inference._formatted,
    cst.Subscript: Inference._subscript,
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
    cst.FunctionDef: Inference._returned,
}


def _is_made(value: cst.BaseExpression | None) -> bool:
    """Return whether a table makes it of nothing to compute with: ``LOSSES.get(name)(**options)``."""
    match value:
        case cst.Call(func=cst.Call(), args=args):
            return all(arg.keyword is not None or arg.star == "**" for arg in args)
        case _:
            return False


def _wraps(assigned: AttributeBinding, name: str) -> bool:
    """Return whether an assignment puts around a method what calls it:
    ``self.update = counted(self.update)``.
    """
    match assigned.value:
        case cst.Call(args=args):
            return any(isinstance(a.value, cst.Attribute) and a.value.attr.value == name for a in args)
    return False

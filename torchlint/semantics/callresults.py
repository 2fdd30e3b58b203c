"""What calls give and functions return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from torchlint.semantics.annotations import Annotations
from torchlint.semantics.callgraph import CallGraph, is_abstract
from torchlint.semantics.classes import ClassInfo, kind_of_class
from torchlint.semantics.containers import Containers
from torchlint.semantics.declared import is_declared
from torchlint.semantics.evaluator import Evaluator, EvaluatorPart
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.library import Library
from torchlint.semantics.members import Members
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import keywords
from torchlint.semantics.values import (
    BOTTOM,
    COLLECTIONS,
    MISSING,
    NONE,
    TENSOR,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Value,
    each_of,
    item_of,
    join,
    solid,
)

_FIELD = "dataclasses.field"
# What is on no device, and what a function names that may compute elsewhere than where its arguments are.
_NOWHERE = frozenset({Kind.BOOL, Kind.DTYPE, Kind.NONE, Kind.NUMBER, Kind.SHAPE, Kind.STRING})
_NAMED_TUPLES = frozenset({"collections.namedtuple", "typing.NamedTuple"})
_PLACES = frozenset({"cuda", "device", "self", "to", "type_as"})


class CallResults(EvaluatorPart):
    """The results of the calls and functions of one file."""

    answers_for_all = frozenset({"call", "call_of"})

    def __init__(
        self,
        evaluator: Evaluator,
        flow: ControlFlow,
        library: Library,
        annotations: Annotations,
        callgraph: CallGraph,
        containers: Containers,
        members: Members,
    ) -> None:
        super().__init__(evaluator)
        self.flow = flow
        self.library = library
        self.annotations = annotations
        self.callgraph = callgraph
        self.containers = containers
        self.members = members

    @staticmethod
    def counterpart(module: Any) -> CallResults:
        """Return the call results of a module."""
        found: CallResults = module.inference.calls
        return found

    def call(self, node: cst.Call) -> Value:
        """Return what a call gives, by what it calls."""
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
        if isinstance(func, cst.Attribute) and (owner := self.members.class_of_super(func.value)) is not None:
            if self.members.inherited(owner, func.attr.value) is None:
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
        if callee.definition is None and callee.cls is None and not callee.alternatives:
            chosen = self._chosen_callees(func) or self.callgraph.assigned_to(func)
            made = join(self._called_as(one, node) for one in chosen) if chosen else UNKNOWN
            if made is BOTTOM or made.known:
                return made
        return self.call_of(callee, node)

    def _chosen_callees(self, func: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
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
        made_by = self.called(node)
        if made_by is BOTTOM:
            return made_by
        return self.call_of(made_by, node) if made_by.definition is not None else UNKNOWN

    def called(self, node: cst.Call) -> Value:
        """Return what a call runs, as ``field(default_factory=…)`` does to what it is given."""
        if self.names.qualified(node.func) != _FIELD:
            return self.value(node.func)
        factory = keywords(node).get("default_factory")
        return UNKNOWN if factory is None else self.value(factory)

    def _is_async_helper(self, func: cst.BaseExpression) -> bool:
        """Return whether the configuration says that a function copies what it is given to the device."""
        helpers = self.evaluator.declared.known_async_helpers if self.evaluator.declared is not None else ()
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
        if container.kind is Kind.BATCH or container.kind in COLLECTIONS:
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
                if isinstance(callee.definition, cst.FunctionDef) and result.item is None:
                    result = self._by_argument(callee.definition, node, result)
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

    def _returned_to(self, callee: Value, node: cst.Call) -> Value:
        """Return what a function of the project returns; for a method of a registry, an entry of that."""
        assert isinstance(callee.definition, (cst.FunctionDef, cst.Lambda))
        receiver = callee.receiver
        made = receiver.origin if receiver is not None and receiver.kind is Kind.OBJECT else None
        if made is not None and isinstance(callee.definition, cst.FunctionDef):
            held = self.containers.registered_in(made)
            found = self.containers.handed_out(callee.definition, held) if held is not BOTTOM else None
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

    def _by_argument(self, function: cst.FunctionDef, node: cst.Call, result: Value) -> Value:
        """Return the progress bar, or the copy on the device, that a function makes of what each caller
        gives it, where the ``result`` for all of them tells less.
        """
        if result.kind is Kind.ITERATOR:
            name = self.callgraph.shown_progress(function)
        elif result.kind in (Kind.UNKNOWN, Kind.BATCH) and result.device is Device.UNKNOWN:
            name = self.callgraph.sent(function)
        else:
            return result
        given = self.callgraph.bound_to(node, function).get(name).node if name is not None else None
        if result is BOTTOM or given is None:
            return result
        value = self.value(given)
        if value is BOTTOM:
            return value
        if result.kind is Kind.ITERATOR:
            return self.library.iterator(value)
        return value.on(Device.ACCELERATOR) if value.tensorlike else result

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

    @remembered
    def instance(self, definition: cst.ClassDef) -> Value:
        """Return an instance of a class of this file."""
        info = self.classes.info(definition)
        cls = next((b for b in info.bases if kind_of_class(b) is info.kind), None)
        kind = Kind.MODULE if info.kind is Kind.OBJECT and self._is_interface(info) else info.kind
        return Value(kind, cls=cls, definition=definition)

    def _is_interface(self, info: ClassInfo) -> bool:
        """Return whether a class says what models have to offer: all that implement it are modules."""
        if not any(map(is_abstract, info.methods.values())):
            return False
        heirs = [self.classes.info(heir) for heir in self.classes.heirs(info.node) if heir is not info.node]
        return bool(heirs) and all(heir.kind is Kind.MODULE for heir in heirs)

    def returned(self, function: Function) -> Value:
        """Return what a function of this file returns, whoever calls it; a generator is an iterator."""
        if isinstance(function, cst.Lambda):
            return self.value(function.body)
        return self.value(function)

    def result(self, function: cst.FunctionDef) -> Value:
        """Work out what a function returns, by all of its ways out."""
        exits = self.flow.exits(function)
        yielded = [
            self.evaluator.iterated(self.value(e.value.item))
            if isinstance(e.value, cst.From)
            else self.value(e.value)
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


def _with_each(structure: Value, result: Value) -> Value:
    """Return a structure of tensors with what a function gave for each of them."""
    if structure.kind in COLLECTIONS:
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


def _is_empty(node: cst.BaseExpression) -> bool:
    """Return whether an expression is ``{}``, ``[]`` or ``()``."""
    return isinstance(node, (cst.Dict, cst.List, cst.Tuple)) and not node.elements


def _structure(values: Sequence[Value]) -> Value | None:
    """Return the batch that a function returns as a tensor in one case, as a container in others."""
    if not any(value.tensorlike for value in values):
        return None
    parts = []
    for value in values:
        part = item_of(value) if value.kind in COLLECTIONS else value
        # ``{key: move(item) for …}``, which is what the function itself returns
        if part is None and isinstance(value.origin, (cst.DictComp, cst.ListComp, cst.GeneratorExp)):
            continue
        if part is None or not part.tensorlike:
            return None
        parts.append(part)
    return join(parts)._replace(kind=Kind.BATCH)

"""What an expression can be: the lattice in which programs are evaluated.

A ``Value`` never says more than the file shows. ``UNKNOWN`` is a proper answer, and joining two
different answers gives it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import itemgetter
from typing import Final, NamedTuple

import libcst as cst

from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.fixpoint import MANY


class Kind(IdentityEnum):
    """What sort of thing an expression evaluates to.

    ``BATCH`` is a structure of tensors whose shape the file does not show: what a loader yields, what a
    model of another file returns. Its parts are batches or tensors.
    """

    TENSOR = "tensor"
    BATCH = "batch"
    MODULE = "module"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    LOADER = "loader"
    DATASET = "dataset"
    SAMPLER = "sampler"
    SCALER = "scaler"
    ACCELERATOR = "accelerator"  # accelerate.Accelerator, lightning.Fabric
    PARAMETERS = "parameters"
    NDARRAY = "ndarray"
    NUMBER = "number"
    STRING = "string"
    BOOL = "bool"
    NONE = "none"
    LIST = "list"
    TUPLE = "tuple"
    DICT = "dict"
    SHAPE = "shape"
    CLASS = "class"
    FUNCTION = "function"
    NAMESPACE = "namespace"
    DEVICE = "device"
    DTYPE = "dtype"
    GENERATOR = "generator"  # torch.Generator
    ITERATOR = "iterator"  # of a loader, a list, a generator function
    OBJECT = "object"  # an instance of a class of this file that is none of the above
    UNKNOWN = "unknown"


class Device(IdentityEnum):
    """Where a tensor, module, batch or device value lives; ACCELERATOR also when it only may."""

    CPU = "cpu"
    ACCELERATOR = "accelerator"
    UNKNOWN = "unknown"


class Memory(IdentityEnum):
    """Which memory the host holds a tensor or array in; PINNED also when it only may.

    What is asked for as pinned wherever that is possible (``pin_memory=PIN``) is meant to be. A slice of
    pinned memory with gaps is PAGEABLE: a copy to the device gathers it in pageable memory first. What is
    certainly in host memory is in EITHER where nothing says which.
    """

    PAGEABLE = "pageable"
    PINNED = "pinned"
    EITHER = "either"
    UNKNOWN = "unknown"


class Graph(IdentityEnum):
    """Whether a tensor drags an autograd graph along; ATTACHED also when it only may."""

    ATTACHED = "attached"
    DETACHED = "detached"
    UNKNOWN = "unknown"


class Missing(IdentityEnum):
    """The type of ``MISSING``: a constant that is not known (None is a constant)."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

Definition = cst.ClassDef | cst.FunctionDef | cst.Lambda


class Value(NamedTuple):
    """What is known of an expression.

    A named tuple: a hundred thousand are made for a usual package, and compared, at a third of the cost of
    a frozen dataclass.

    Attributes:
        dtype: of a tensor, as torch calls it (``torch.float64``), of an array, as NumPy does (``float64``).
        memory: of a tensor in host memory and of an array.
        cls: dotted library name: of the class of an instance, or of the class, function or module that
            the expression itself names.
        definition: the class (of an instance or named) or function of this file.
        origin: the node that made the thing, such as the ``DataLoader(...)`` call of a loader; batches
            keep the origin of their loader.
        elements: the items of a tuple or list of known length.
        item: what each item of a container or iterator is.
        constant: the Python constant, if the expression has only one.
        receiver: the instance that a method is bound to; the class of one that it names: ``Base.update``.
        presets: the ``functools.partial`` calls around a callable, innermost first.
        leaf: a tensor that is a parameter.
        part: an item taken out of a batch, or an input of a forward: what moves to a device is a tensor. Of
            an array: an item or a sum, which may be a scalar.
        literal: a number that is one of several constants, and not computed.
        among: the kinds of what it may be where they differ, ``Kind.UNKNOWN`` among them if it may be
            something else as well; None if nothing is known of it.
        fields: what a dict has under each of its keys, sorted by key, where all of them are known.
        alternatives: the definitions of which one is that of the value, where there are several.
    """

    kind: Kind
    device: Device = Device.UNKNOWN
    graph: Graph = Graph.UNKNOWN
    dtype: str | None = None
    cls: str | None = None
    definition: Definition | None = None
    origin: cst.CSTNode | None = None
    elements: tuple[Value, ...] | None = None
    item: Value | None = None
    constant: object = MISSING
    receiver: Value | None = None
    presets: tuple[cst.Call, ...] = ()
    leaf: bool = False
    part: bool = False
    literal: bool = False
    among: frozenset[Kind] | None = None
    alternatives: frozenset[Definition] = frozenset()
    fields: tuple[tuple[str, Value], ...] = ()
    memory: Memory = Memory.UNKNOWN

    @property
    def named_by_class(self) -> bool:
        """Whether it is a method that takes its instance as an argument, as in ``Base.update(self, x)``."""
        return self.receiver is not None and self.receiver.kind is Kind.CLASS

    @property
    def definitions(self) -> frozenset[Definition]:
        """The classes or functions of the project one of which the value is of, or is; none if any may be."""
        return self.alternatives if self.definition is None else frozenset((self.definition,))

    @property
    def each(self) -> list[Value]:
        """The value with each of its alternatives; only itself if there are none."""
        if not self.alternatives:
            return [self]
        if self.among is None:
            return [self._replace(definition=one, alternatives=frozenset()) for one in self.alternatives]
        # Functions, and classes or their instances: by what each of them is.
        (other,) = self.among - {Kind.FUNCTION}
        return [
            Value(other if isinstance(one, cst.ClassDef) else Kind.FUNCTION, definition=one)
            for one in self.alternatives
        ]

    @property
    def known(self) -> bool:
        """Whether the kind is known."""
        return self.kind is not Kind.UNKNOWN

    @property
    def if_known(self) -> Value | None:
        """The value itself; None of what is not known, and as long as it is being computed."""
        return self if self is not BOTTOM and self.known else None

    @property
    def tensorlike(self) -> bool:
        """A tensor, or a structure of tensors."""
        return self.kind is Kind.TENSOR or self.kind is Kind.BATCH

    @property
    def host(self) -> bool:
        """A value that certainly lives in host memory: numbers, strings, arrays, shapes, CPU tensors."""
        return self.kind in _HOST_KINDS or (self.tensorlike and self.device is Device.CPU)

    @property
    def starts(self) -> bool:
        """A number that no computation gave, so that it may be the start of a sum."""
        return self.kind is Kind.NUMBER and (self.literal or self.constant is not MISSING)

    def may_be(self, kind: Kind) -> bool:
        """Return whether an expression that is not known may be of this kind, as far as it is known."""
        if self.among is None:
            return True
        kind = _JOINED_KINDS.get(kind, kind)
        return self.among == {kind, Kind.UNKNOWN} or (Kind.UNKNOWN not in self.among and kind in self.among)

    def on(self, device: Device) -> Value:
        """Return the same thing on another device."""
        return self if device is self.device else self._replace(device=device, memory=Memory.UNKNOWN)

    def kept_in(self, memory: Memory) -> Value:
        """Return the same value in this memory, unless it is on a device or in an unknown place."""
        if not self.host:
            memory = Memory.UNKNOWN
        return self if memory is self.memory else self._replace(memory=memory)

    def attached(self, graph: Graph) -> Value:
        """Return the same thing with another relation to autograd."""
        return self if graph is self.graph else self._replace(graph=graph)


_HOST_KINDS = frozenset({Kind.NUMBER, Kind.STRING, Kind.BOOL, Kind.NONE, Kind.SHAPE, Kind.NDARRAY})

_DEFINED = frozenset({Kind.MODULE, Kind.OBJECT, Kind.DATASET, Kind.SAMPLER, Kind.CLASS, Kind.FUNCTION})
COLLECTIONS = frozenset({Kind.LIST, Kind.TUPLE, Kind.DICT})
MOST_ALTERNATIVES = 8
"""How many definitions a value may have, to be told apart."""

UNKNOWN: Final = Value(Kind.UNKNOWN)
NONE: Final = Value(Kind.NONE, constant=None)
NUMBER: Final = Value(Kind.NUMBER)
STRING: Final = Value(Kind.STRING)
BOOL: Final = Value(Kind.BOOL)
SHAPE: Final = Value(Kind.SHAPE, item=NUMBER)
NDARRAY: Final = Value(Kind.NDARRAY)
DTYPE: Final = Value(Kind.DTYPE)
TENSOR: Final = Value(Kind.TENSOR)
BATCH: Final = Value(Kind.BATCH)
MODULE: Final = Value(Kind.MODULE)


# The value of a definition that is still being computed: the neutral element of every join.
BOTTOM: Final = Value(Kind.UNKNOWN, cls="⊥")


def solid(value: Value) -> Value:
    """Return the value itself, or ``UNKNOWN`` for one that is still being computed."""
    return UNKNOWN if value is BOTTOM else value


def bounded(value: Value) -> Value:
    """Return the value itself; of one that is made of too many, what is told without going into its parts.

    ``b = (a, a)``, ``c = (b, b)`` doubles with each line, and comparing goes through all of it.
    """
    if value.elements is None and value.item is None and value.receiver is None and not value.fields:
        return value
    if not _is_larger(value, MANY):
        return value
    elements = value.elements
    if elements is not None:
        elements = tuple(map(_alone, elements)) if len(elements) < MANY else None
    return value._replace(
        elements=elements,
        item=None if value.item is None else _alone(value.item),
        receiver=None if value.receiver is None else _alone(value.receiver),
        fields=tuple((key, _alone(field)) for key, field in value.fields) if len(value.fields) < MANY else (),
    )


def _alone(value: Value) -> Value:
    return value._replace(elements=None, item=None, receiver=None, fields=())


def _is_larger(value: Value, most: int) -> bool:
    """Return whether a value is made of more than so many, counted as often as they are met."""
    waiting = [value]
    while waiting:
        if most < len(waiting):
            return True
        most -= 1
        one = waiting.pop()
        if one.elements:
            waiting.extend(one.elements)
        if one.item is not None:
            waiting.append(one.item)
        if one.receiver is not None:
            waiting.append(one.receiver)
        waiting.extend(field for _, field in one.fields)
    return False


def join_devices(devices: Iterable[Device]) -> Device:
    """Return where a thing may be that is in one of these places: an accelerator wins, then the unknown."""
    found = set(devices)
    for device in (Device.ACCELERATOR, Device.UNKNOWN, Device.CPU):
        if device in found:
            return device
    return Device.UNKNOWN


def unknown_of(operands: Iterable[Value]) -> Value:
    """Return what is not known, computed from these: on the host if all of them are, whatever they are."""
    found = list(operands)
    unknown = [v for v in found if v.kind is Kind.UNKNOWN]
    others = (v.kind in (Kind.NUMBER, Kind.BOOL) for v in found if v.kind is not Kind.UNKNOWN)
    on_host = bool(unknown) and all(v.device is Device.CPU for v in unknown) and all(others)
    return UNKNOWN.on(Device.CPU) if on_host else UNKNOWN


def join_graphs(graphs: Iterable[Graph]) -> Graph:
    """Return whether a tensor computed from these carries a graph."""
    found = set(graphs)
    for graph in (Graph.ATTACHED, Graph.UNKNOWN, Graph.DETACHED):
        if graph in found:
            return graph
    return Graph.UNKNOWN


def join(values: Iterable[Value]) -> Value:
    """Return what an expression is that may be any of these; ``BOTTOM`` if there are none.

    The least upper bound in a semilattice, so that neither the order of the values nor how they are grouped
    changes it. ``BOTTOM`` is its least element; what is of different kinds is not known, but for the kinds
    that it is of. ``None`` gives way to anything
    else (an attribute set to None first and filled later). A literal number, which is only the start of a
    sum, gives way to the batch or tensor that is added to it, and a batch to a tensor.
    """
    result = BOTTOM
    for value in values:
        result = value if result is BOTTOM else _join_two(result, value)
    return result


def _join_two(a: Value, b: Value) -> Value:
    if a is b or b is BOTTOM or _same(a, b):
        return a
    if a is BOTTOM:
        return b
    if a.kind is Kind.NONE or b.kind is Kind.NONE:
        if a.kind is not b.kind:
            return b if a.kind is Kind.NONE else a
    kind = _join_kinds(a, b)
    if kind is Kind.UNKNOWN:
        kinds = _kinds(a) | _kinds(b)
        if kinds == _OPEN:
            return UNKNOWN
        others = kinds - {Kind.FUNCTION}
        told_apart = len(others) == 1 < len(kinds) and others < _DEFINED
        return UNKNOWN._replace(among=kinds, alternatives=_alternatives(a, b) if told_apart else frozenset())
    tensors = [v for v in (a, b) if v.tensorlike] or [a, b]
    elements: tuple[Value, ...] | None = None
    if a.elements is not None and b.elements is not None and len(a.elements) == len(b.elements):
        elements = tuple(map(_join_two, a.elements, b.elements))
    items = [v for v in (item_of(a), item_of(b)) if v is not None]
    return Value(
        kind,
        device=join_devices(v.device for v in tensors),
        graph=join_graphs(v.graph for v in tensors),
        dtype=a.dtype if a.dtype == b.dtype else None,
        cls=a.cls if a.cls == b.cls else None,
        definition=a.definition if a.definition is b.definition else None,
        alternatives=_alternatives(a, b) if kind in _DEFINED else frozenset(),
        fields=_fields(a, b) if a.fields and b.fields else (),
        origin=a.origin if a.origin is b.origin else None,
        elements=elements,
        item=join(items) if items else None,
        # A number that may be a truth value as well is none that a sum starts from.
        constant=a.constant
        if _same_constant(a.constant, b.constant) and (a.kind is b.kind or kind is not Kind.NUMBER)
        else MISSING,
        memory=_join_memory(tensors),
        receiver=_join_classes(a, b),
        leaf=a.leaf and b.leaf,
        part=a.part and b.part,
        literal=kind is Kind.NUMBER and a.starts and b.starts,
    )


def _join_classes(a: Value, b: Value) -> Value | None:
    """Return the classes that name two methods; None unless a class names both."""
    if a.receiver is None or b.receiver is None or not (a.named_by_class and b.named_by_class):
        return None
    return _join_two(a.receiver, b.receiver)


def _join_memory(values: Collection[Value]) -> Memory:
    """Return the memory that all of these are in."""
    found = {value.memory for value in values}
    if Memory.UNKNOWN in found or not found:
        return Memory.UNKNOWN
    return found.pop() if len(found) == 1 else Memory.EITHER


def _alternatives(a: Value, b: Value) -> frozenset[Definition]:
    if a.definition is b.definition and a.definition is not None:
        return frozenset()
    ours, theirs = a.definitions, b.definitions
    if not ours or not theirs or a.presets or b.presets or len(ours | theirs) > MOST_ALTERNATIVES:
        return frozenset()
    return ours | theirs


def _fields(a: Value, b: Value) -> tuple[tuple[str, Value], ...]:
    """Return what either dict has under a key: who reads it there has one that holds it."""
    found = dict(a.fields)
    for key, value in b.fields:
        found[key] = _join_two(found[key], value) if key in found else value
    return tuple(sorted(found.items(), key=itemgetter(0)))


def _same(a: Value, b: Value) -> bool:
    """Return whether two values are one, to the type of their constants: ``1 == 1.0`` holds in Python."""
    if a != b or not _same_constant(a.constant, b.constant):
        return False
    if a.elements is not None and b.elements is not None:
        if not all(map(_same, a.elements, b.elements)):
            return False
    parts = ((a.item, b.item), (a.receiver, b.receiver))
    if not all(x is y or (x is not None and y is not None and _same(x, y)) for x, y in parts):
        return False
    return all(_same(x, y) for (_, x), (_, y) in zip(a.fields, b.fields, strict=True))


def _same_constant(a: object, b: object) -> bool:
    if a is b:
        return True
    if a.__class__ is not b.__class__:
        return False
    # ``0.0 == -0.0`` holds, and ``nan == nan`` does not.
    return repr(a) == repr(b) if isinstance(a, (float, complex)) else a == b


def _join_kinds(a: Value, b: Value) -> Kind:
    if a.kind is b.kind:
        return a.kind
    kinds = {a.kind, b.kind}
    if kinds <= {Kind.TENSOR, Kind.BATCH}:
        return Kind.TENSOR
    if (a.tensorlike and b.starts) or (b.tensorlike and a.starts):
        return a.kind if a.tensorlike else b.kind
    if kinds <= {Kind.BOOL, Kind.NUMBER}:
        return Kind.NUMBER
    if kinds <= {Kind.STRING, Kind.DEVICE}:
        return Kind.DEVICE
    if kinds <= {Kind.LIST, Kind.TUPLE, Kind.ITERATOR}:
        return Kind.LIST
    return Kind.UNKNOWN


def _kinds(value: Value) -> frozenset[Kind]:
    """Return the kinds of what an expression may be, with one for those that are joined to one.

    A number from which a sum may start says nothing: it gives way to what is added to it.
    """
    if value.kind is Kind.UNKNOWN:
        return _OPEN if value.among is None else value.among
    return frozenset() if value.starts else frozenset((_JOINED_KINDS.get(value.kind, value.kind),))


_OPEN: Final = frozenset((Kind.UNKNOWN,))
_JOINED_KINDS: Final = {
    Kind.BATCH: Kind.TENSOR,
    Kind.BOOL: Kind.NUMBER,
    Kind.STRING: Kind.DEVICE,
    Kind.TUPLE: Kind.LIST,
    Kind.ITERATOR: Kind.LIST,
}


def chosen_device(default: Value) -> Value | None:
    """Return a device that others may choose, ``default`` if they do not; None for other values."""
    if default.kind in (Kind.STRING, Kind.DEVICE) and default.device is not Device.UNKNOWN:
        # ``device="cpu"`` is where it runs unless somebody chooses, and it is there to be chosen.
        return Value(default.kind, device=Device.ACCELERATOR)
    return None


def item_of(value: Value) -> Value | None:
    """Return what iterating over a container gives, where that is known from the value alone."""
    if value.item is not None:
        return value.item
    if value.elements:
        return join(value.elements)
    return None


def field(value: Value, key: object) -> Value | None:
    """Return what a dict has under a key; None if that is not known."""
    return next((held for name, held in value.fields if name == key), None)


def without_constants(value: Value, *, replaced: bool = False) -> Value:
    """Return a value of which, and of whose items, the kind is known but not which one it is.

    A text stays, as does the call that made an object, unless the value is known to be ``replaced``.
    """
    plain = value.constant is MISSING and value.item is None and not value.elements and not value.fields
    made = replaced and value.kind is Kind.OBJECT and value.origin is not None
    if (plain and not made) or value is BOTTOM:
        return value
    return value._replace(
        origin=None if made else value.origin,
        constant=value.constant if value.kind is Kind.STRING and not replaced else MISSING,
        item=None if value.item is None else without_constants(value.item, replaced=replaced),
        elements=None
        if value.elements is None
        else tuple(without_constants(element, replaced=replaced) for element in value.elements),
        fields=tuple((name, without_constants(held, replaced=replaced)) for name, held in value.fields),
    )


def filled_in(value: Value, promised: Value) -> Value:
    """Return a container, with what is promised of its items where they are not known themselves."""
    item = promised.item
    if item is None or value.kind is not promised.kind or value.kind not in (Kind.DICT, Kind.LIST):
        return value
    fields = tuple((key, held if held.known else item.on(held.device)) for key, held in value.fields)
    bare = value.item is None and not value.elements and not fields
    return value._replace(fields=fields, item=item if bare else value.item)


def each_of(values: Collection[Value]) -> Value | None:
    """Return what several things are that a program goes through one by one; None if there are none.

    It treats them alike: what it does to each, it does to the tensors among them.
    """
    return join([value for value in values if value.tensorlike] or values) if values else None


def dict_item(value: Value) -> Value:
    """Return what the values of a dict are, as far as that is known."""
    return value.item if value.kind is Kind.DICT and value.item is not None else UNKNOWN


def defined(definition: cst.ClassDef | cst.FunctionDef) -> Value:
    """Return a class or function as what its name stands for."""
    kind = Kind.CLASS if isinstance(definition, cst.ClassDef) else Kind.FUNCTION
    return Value(kind, definition=definition)


def placed_as(value: Value, other: Value) -> Value:
    """Return a value, on the device of another if its own is not known; the other if it is unknown itself."""
    if value.known and value.device is Device.UNKNOWN:
        return value.on(other.device)
    return value if value.known else other

"""What containers hold: lists, tuples, dicts, those of layers, and registries that decorators fill.

What is read out of them is what a display or comprehension makes, with what is put in later.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import libcst as cst

from torchlint.semantics.api.results import MASKS_OF_NODES
from torchlint.semantics.callgraph import CallGraph
from torchlint.semantics.classes import ClassInfo
from torchlint.semantics.clues import Clues
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evaluator import Evaluator, EvaluatorPart
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.flow.control import ControlFlow
from torchlint.semantics.lexicon import names_device, names_loader, names_loaders
from torchlint.semantics.library import MODULE_CONTAINERS, TABLES, Library
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import given_as, last_name
from torchlint.semantics.values import (
    BATCH,
    BOTTOM,
    MISSING,
    MODULE,
    NUMBER,
    SHAPE,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Memory,
    Value,
    defined,
    dict_item,
    field,
    item_of,
    join,
    solid,
)

# What a loader of the project may do with the batches of torch's, and still yield them as they are.
_GOING_ON = frozenset({"__iter__", "__next__", "enumerate", "iter", "len", "next", "range", "super"})
_CALLED = frozenset({Kind.CLASS, Kind.FUNCTION, Kind.MODULE, Kind.OBJECT})
"""What is put into a list to be called, or to have its methods called."""


class Containers(EvaluatorPart):
    """The containers that one file makes, fills and reads."""

    answers_for_all = frozenset({"element", "iterated", "subscript", "unpacked"})

    def __init__(
        self, evaluator: Evaluator, flow: ControlFlow, library: Library, callgraph: CallGraph, clues: Clues
    ) -> None:
        super().__init__(evaluator)
        self.flow = flow
        self.library = library
        self.callgraph = callgraph
        self.clues = clues

    @staticmethod
    def counterpart(module: Any) -> Containers:
        """Return the containers of a module."""
        found: Containers = module.inference.containers
        return found

    def filled(self, node: cst.Name, bindings: Sequence[Binding], value: Value) -> Value:
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
            filled = self.evaluator.joined(question, first.node, appended, self.value)
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

    def enumerates(self, node: cst.BaseExpression) -> bool:
        """Return whether it is ``enumerate(items)``."""
        return isinstance(node, cst.Call) and self.names.qualified(node.func) == "builtins.enumerate"

    def makes_table(self, node: cst.CSTNode) -> bool:
        """Return whether an expression is a dict that is written out: ``{}``, ``dict(loss=loss)``."""
        if isinstance(node, cst.Call):
            return self.names.qualified(node.func) in TABLES
        return isinstance(node, cst.Dict)

    def stored_in(self, binding: Binding, table: Value) -> Value:
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
        item = solid(self.evaluator.joined("stored in", binding.node, stored, self.value))
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
            batch = Value(Kind.BATCH, device=_loader_device(value), graph=Graph.DETACHED, origin=value.origin)
            return self._batch_of_heir(value.definition, batch)
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

    def _batch_of_heir(self, loader: cst.CSTNode | None, batch: Value) -> Value:
        """Return what a loader of the project yields that goes over ``batch``, what torch's own yields."""
        method = self.classes.info(loader).method("__iter__") if isinstance(loader, cst.ClassDef) else None
        if method is None:
            return batch
        yielded = self.iterated(self.evaluator.returned(method))
        if yielded is BOTTOM or yielded.known:
            return yielded
        home = self.callgraph.counterpart_of(method)
        calls = home.tree.nodes_within(method, cst.Call)
        return batch if all(last_name(call.func) in _GOING_ON for call in calls) else batch.on(Device.UNKNOWN)

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
        iterator = self.evaluator.returned(method)
        if iterator.kind is Kind.OBJECT and isinstance(iterator.definition, cst.ClassDef):
            following = self.classes.info(iterator.definition).method("__next__")
            return self.evaluator.returned(following) if following is not None else UNKNOWN
        return self.iterated(iterator)

    def with_items(self, info: ClassInfo, attr: str, held: Value) -> Value:
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

    def subscript(self, node: cst.Subscript) -> Value:
        """Return what ``x[i]`` is."""
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
            held = self.registered_in(base.origin)
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
        if base.kind is Kind.BATCH and held.kind is Kind.TENSOR and last_name(node) in MASKS_OF_NODES:
            return held._replace(dtype="torch.bool")
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
        return (
            solid(self.evaluator.joined(f"stored {spelt}", stores[0], values, self.value))
            if stores
            else UNKNOWN
        )

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

    @solved(BOTTOM)
    def registered_in(self, made: cst.CSTNode) -> Value:
        """Return the classes and functions that decorators store in an object: ``@MODELS.register()``."""
        registry = self.value(made).definition
        if not isinstance(registry, cst.ClassDef):
            return BOTTOM
        entries = [
            defined(definition)
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

    def handed_out(self, method: cst.FunctionDef, held: Value) -> Value | None:
        """Return what a method of a registry returns for an entry: the entry, or the result of calling it."""
        if self.link is not None and self.tree.is_elsewhere(method):
            return self.counterpart(self.link.home(method)).handed_out(method, held)
        for way_out in self.flow.exits(method):
            given = way_out.value if isinstance(way_out, cst.Return) else None
            if given is not None and self._is_entry(given):
                return held
            if isinstance(given, cst.Call) and self._is_entry(given.func):
                return self.evaluator.call_of(held, given)
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


def _is_vacant(value: Value) -> bool:
    """Return whether a list starts without items, or with None in each place."""
    held = value.elements if value.elements is not None else (value.item,) if value.item is not None else ()
    return all(each.kind is Kind.NONE for each in held)


def _loader_device(loader: Value) -> Device:
    """Return where the batches of a loader are: in host memory, unless a framework prepared the loader."""
    return Device.ACCELERATOR if loader.device is Device.ACCELERATOR else Device.CPU

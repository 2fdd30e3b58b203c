"""What a dataset costs and where its items are, read from the class or the call that makes it."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.lexicon import Role, ends
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.transfers import transferred
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_ITERABLE = "torch.utils.data.IterableDataset"
_WORKER_INFO = "torch.utils.data.get_worker_info"
_RANDOM = re.compile(
    r"(^|\.)(random|rand|randn|randint|randperm|normal|uniform|choice|choices|sample|shuffle|multinomial"
    r"|bernoulli|rand_like|randn_like|default_rng|randrange|normal_|uniform_|random_|permutation|getrandbits)$"
)


# What such functions say has to do with which items are whose.
_CHOOSING = re.compile(
    r"shard|split|rank|worker|skip|keep|filter|partition|mine|owns|select|sample|shuffle|draw|rng|stream|batches"
    r"|reader|load|iter|fetch|next|get|open|query|receive|generate",
    re.IGNORECASE,
)

# Functions whose result yields the items of their arguments.
_HANDING_ON = frozenset(
    {
        "builtins.iter",
        "builtins.enumerate",
        "builtins.zip",
        "builtins.map",
        "builtins.sorted",
        "builtins.reversed",
        "builtins.list",
        "builtins.filter",
        "itertools.islice",
        "itertools.chain",
    }
)
# What ``__getitem__`` may call and still only pick a row.
_CHEAP_FUNCTIONS = frozenset(
    {
        "builtins.len",
        "builtins.int",
        "builtins.float",
        "builtins.str",
        "builtins.dict",
        "builtins.tuple",
        "builtins.list",
        "builtins.isinstance",
        "builtins.slice",
        "torch.tensor",
        "torch.as_tensor",
        "torch.from_numpy",
        "torch.is_tensor",
        "torch.FloatTensor",
        "torch.LongTensor",
        "torch.Tensor",
        "numpy.array",
        "numpy.asarray",
    }
)
_CHEAP_METHODS = frozenset(
    {
        "float",
        "long",
        "int",
        "clone",
        "tolist",
        "item",
        "astype",
        "items",
        "squeeze",
        "unsqueeze",
        "view",
        "detach",
    }
)
_PLAIN_METHODS = frozenset(
    {
        "strip",
        "rstrip",
        "lstrip",
        "split",
        "join",
        "format",
        "lower",
        "upper",
        "replace",
        "append",
        "extend",
        "items",
        "keys",
        "values",
        "read",
        "readlines",
        "readline",
        "startswith",
        "endswith",
        "float",
        "long",
        "to",
        "astype",
        "copy",
        "reshape",
        "view",
        "tolist",
        "decode",
        "encode",
        "clear",
        "pop",
        "get",
        "close",
        "seek",
    }
)
_PLAIN_SOURCES = frozenset(
    {
        "builtins.range",
        "builtins.open",
        "csv.reader",
        "csv.DictReader",
        "gzip.open",
        "io.open",
        "codecs.open",
        "glob.glob",
        "glob.iglob",
        "os.listdir",
        "os.scandir",
        "os.walk",
        "json.load",
        "json.loads",
        "numpy.load",
        "torch.load",
        "torch.arange",
        "numpy.arange",
        "pandas.read_csv",
        "itertools.count",
    }
)


class Datasets:
    """The datasets of one file."""

    def __init__(self, module: Module) -> None:
        self.module, self.tree, self.names = module, module.tree, module.names

    def in_memory(self, node: cst.BaseExpression) -> bool:
        """Whether the data is there already, so that fetching an item is only picking a row."""
        return self._rows_only(node, 0)

    @remembered
    def _rows_only(self, node: cst.BaseExpression, depth: int) -> bool:
        if depth > 6:
            return False
        made = self.made(node)
        if made is not None and made is not node:
            return self._rows_only(made, depth + 1)
        value = self.module.value(node)
        if value.kind in (Kind.LIST, Kind.TUPLE, Kind.TENSOR, Kind.NDARRAY, Kind.DICT, Kind.SHAPE):
            return True
        if isinstance(node, (cst.List, cst.ListComp, cst.Tuple)):
            return True
        if isinstance(node, cst.Call):
            name = self.module.class_of(node) or self.module.qualified(node.func)
            if name in ("builtins.range", "builtins.list", "builtins.tuple", "builtins.zip"):
                return True
            if name in ("torch.utils.data.TensorDataset", "torch.utils.data.StackDataset"):
                return True
            if name in (
                "torch.utils.data.Subset",
                "torch.utils.data.random_split",
                "torch.utils.data.ConcatDataset",
            ):
                return bool(node.args) and self._all_rows_only(node.args[0].value, depth)
        if isinstance(value.definition, cst.ClassDef) and value.kind is not Kind.CLASS:
            return self._class_rows_only(value.definition)
        return isinstance(node, cst.Call) and self._returns_rows(node, depth)

    def _returns_rows(self, call: cst.Call, depth: int) -> bool:
        """Whether a function of the file returns, on some path, data that is in memory."""
        function = self.module.callee(call)
        if not isinstance(function, cst.FunctionDef):
            return False
        for node in self.tree.descendants(function.body):
            if isinstance(node, cst.Return) and node.value is not None:
                parts = [e.value for e in node.value.elements] if isinstance(node.value, cst.Tuple) else []
                for part in (node.value, *parts):
                    if isinstance(part, cst.Name):
                        values = [b.value for b in self.names.bindings(part) if b.value is not None]
                    else:
                        values = [part] if isinstance(part, cst.Call) else []
                    if any(isinstance(v, cst.Call) and self._rows_only(v, depth + 1) for v in values):
                        return True
        return False

    def _all_rows_only(self, node: cst.BaseExpression, depth: int) -> bool:
        if isinstance(node, (cst.List, cst.Tuple)):
            return all(self._rows_only(element.value, depth + 1) for element in node.elements)
        return self._rows_only(node, depth + 1)

    def _class_rows_only(self, definition: cst.ClassDef) -> bool:
        """Whether ``__getitem__`` of a dataset does nothing but index what the object holds."""
        info = self.module.classes.info(definition)
        method = info.method("__getitem__")
        if method is None or info.inherits(_ITERABLE):
            return False
        return all(
            self._is_cheap(node) if isinstance(node, cst.Call) else not self._asks_dataset(node)
            for node in self.tree.descendants(method.body)
            if isinstance(node, (cst.Call, cst.Subscript))
        )

    def _asks_dataset(self, node: cst.Subscript) -> bool:
        """``self.dataset[i]``: an item of another dataset, which makes it in its own way."""
        match node.value:
            case cst.Attribute(value=cst.Name(), attr=cst.Name(value=name)) if ends(name, Role.DATASET):
                kind = self.module.value(node.value).kind
                return kind is Kind.DATASET or kind is Kind.UNKNOWN
            case _:
                return False

    def _is_cheap(self, call: cst.Call) -> bool:
        name = self.module.qualified(call.func)
        if name is not None:
            return name in _CHEAP_FUNCTIONS
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _CHEAP_METHODS

    def on_accelerator(self, node: cst.BaseExpression) -> bool:
        """Whether the items of a dataset are tensors that are on an accelerator already."""
        return self._default_is_accelerator or self._data_on_accelerator(node, 0)

    @remembered
    def _data_on_accelerator(self, node: cst.BaseExpression, depth: int) -> bool:
        if depth > 6:
            return False
        made = self.made(node)
        if made is not None and made is not node:
            return self._data_on_accelerator(made, depth + 1)
        value = self.module.value(node)
        if value.device is Device.ACCELERATOR:
            return True
        if isinstance(value.definition, cst.ClassDef) and value.kind is not Kind.CLASS:
            if any(
                self.moves(method) for method in self.module.classes.info(value.definition).methods.values()
            ):
                return True
        if isinstance(node, cst.Call):
            if any(self._generates_with_model(argument.value) for argument in node.args):
                return True
            return any(
                self.module.value(inner).device is Device.ACCELERATOR
                or self._is_transfer(inner if isinstance(inner, cst.Call) else self.made(inner))
                for argument in node.args
                for inner in self.tree.descendants(argument.value)
                if isinstance(inner, (cst.Name, cst.Call))
            )
        return False

    def _generates_with_model(self, given: cst.BaseExpression) -> bool:
        """Whether a dataset is given a function of the file that gets its items from a model on a device.

        No worker process could run it, and what it hands out may be in the memory of the device.
        """
        if not isinstance(given, (cst.Name, cst.Attribute)):
            return False
        definition = self.module.value(given).definition
        if not isinstance(definition, cst.FunctionDef):
            return False
        return self.moves(definition) or any(
            self.module.value(call.func).kind is Kind.MODULE
            for call in self.tree.descendants(definition)
            if isinstance(call, cst.Call)
        )

    def moves(self, definition: cst.CSTNode) -> bool:
        """Whether a function or class of the file puts something on an accelerator."""
        return any(
            self._is_transfer(node) or self._on_device_keyword(node)
            for node in self.tree.descendants(definition)
            if isinstance(node, cst.Call)
        )

    def _on_device_keyword(self, call: cst.Call) -> bool:
        return any(
            argument.keyword is not None
            and argument.keyword.value == "device"
            and self.module.value(argument.value).device is Device.ACCELERATOR
            for argument in call.args
        )

    def _is_transfer(self, node: cst.CSTNode | None) -> bool:
        return isinstance(node, cst.Call) and transferred(self.module, node) is not None

    @cached_property
    def _default_is_accelerator(self) -> bool:
        """Whether the file makes an accelerator the place where tensors are born."""
        for call in self.tree.nodes(cst.Call):
            name = self.module.qualified(call.func)
            if name in ("torch.set_default_device", "torch.set_default_tensor_type") and call.args:
                text = self.tree.source(call.args[0].value)
                if self.module.value(call.args[0].value).device is not Device.CPU and "cpu" not in text:
                    if name == "torch.set_default_device" or "cuda" in text:
                        return True
        return False

    def ignores_workers(self, definition: cst.ClassDef) -> bool:
        """Whether a class is an ``IterableDataset`` whose code never speaks of workers."""
        info = self.module.classes.info(definition)
        return info.inherits(_ITERABLE) and not any(
            isinstance(node, cst.Name) and "worker" in node.value.lower()
            for member in info.lineage
            for node in self.tree.descendants(member.node)
        )

    def unsharded(self, definition: cst.ClassDef) -> cst.FunctionDef | None:
        """The ``__iter__`` of an ``IterableDataset`` of this file that ignores which worker runs it.

        Only where the whole way of the data is in this file: it asks neither for its worker nor for random
        numbers, and it reads nothing that may do so on its behalf.
        """
        info = self.module.classes.info(definition)
        if set(info.bases) - {"typing.Generic", "abc.ABC"} != {_ITERABLE} or info.opaque:
            return None
        if not self.ignores_workers(definition):
            return None
        method = info.method("__iter__")
        if method is None:
            return None
        return method if self._yields_the_same(method, {method}) else None

    def _yields_the_same(self, function: cst.FunctionDef, seen: set[cst.CSTNode]) -> bool:
        """Whether what a generator yields is read from the object, the disk or a counter only."""
        for node in self.tree.descendants(function.body):
            if isinstance(node, cst.Call):
                name = self.module.qualified(node.func)
                if name is not None and (_RANDOM.search(name) or name == _WORKER_INFO):
                    return False
                if name is not None and not name.startswith("."):
                    continue
                callee = self.module.callee(node)
                if isinstance(callee, cst.FunctionDef):
                    if callee not in seen:
                        seen.add(callee)
                        if not self._yields_the_same(callee, seen):
                            return False
                elif not self._is_plain_method(node) and not self._maps_item(node):
                    return False
            elif isinstance(node, (cst.For, cst.From)):
                source = node.iter if isinstance(node, cst.For) else node.item
                opens = isinstance(node, cst.For) and self._opens_items(node)
                if not opens and not self._is_plain_source(source, 0):
                    return False
            elif isinstance(node, cst.Return) and node.value is not None:
                if not self._is_plain_source(node.value, 0) and not isinstance(node.value, cst.Call):
                    return False
        return True

    def _is_plain_method(self, call: cst.Call) -> bool:
        """A method that strings, files, arrays and lists have."""
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _PLAIN_METHODS

    def _maps_item(self, call: cst.Call) -> bool:
        """Whether a call makes something of what it is given: ``self.transform(line)``.

        It may be random, but it does not choose which items there are, as what a condition asks may.
        """
        name = last_name(call.func)
        if name is None or _CHOOSING.search(name) or not call.args:
            return False
        for around in self.tree.ancestors(call):
            if isinstance(around, (cst.If, cst.IfExp, cst.While, cst.For, cst.Comparison, cst.CompIf)):
                return isinstance(around, cst.For) and not self.tree.contains(around.iter, call)
            if isinstance(around, (cst.BaseSuite, cst.FunctionDef)):
                return True
        return True

    @remembered
    def _is_plain_source(self, node: cst.BaseExpression, depth: int) -> bool:
        """Whether what is iterated is a file, a range, a list: nothing that could know about workers."""
        if depth > 6:
            return False
        match node:
            case cst.List() | cst.Tuple() | cst.ListComp() | cst.SimpleString():
                return True
            case cst.GeneratorExp():
                return self._is_plain_source(node.for_in.iter, depth + 1)
            case cst.Subscript():
                return self._is_plain_source(node.value, depth + 1) or self._is_indexed(node.value)
            case cst.Call():
                name = self.module.qualified(node.func)
                if name in _HANDING_ON:
                    return bool(node.args) and all(
                        self._is_plain_source(argument.value, depth + 1)
                        or isinstance(argument.value, (cst.Lambda, cst.Integer))
                        for argument in node.args
                        if argument.keyword is None
                    )
                if name in _PLAIN_SOURCES:
                    return True
                callee = self.module.callee(node)
                return isinstance(callee, cst.FunctionDef)
            case cst.Name():
                bindings = self.names.bindings(node)
                return bool(bindings) and all(self._is_plain_binding(b, depth) for b in bindings)
            case cst.Attribute():
                values = self._attribute_values(node)
                if values and all(self._is_plain_source(value, depth + 1) for value in values):
                    return True
                return self._is_indexed(node)
            case _:
                return self.module.value(node).kind in (Kind.LIST, Kind.NDARRAY, Kind.TENSOR, Kind.TUPLE)

    def _opens_items(self, loop: cst.For) -> bool:
        """Whether a loop opens one file after the other: ``for path in self.files: with open(path) …``."""
        if not isinstance(loop.target, cst.Name) or not isinstance(loop.iter, cst.Attribute):
            return False
        return any(
            isinstance(call, cst.Call)
            and self.module.qualified(call.func) in _PLAIN_SOURCES
            and bool(call.args)
            and isinstance(call.args[0].value, cst.Name)
            and call.args[0].value.value == loop.target.value
            for call in self.tree.descendants(loop.body)
        )

    def _is_plain_binding(self, binding: Binding, depth: int) -> bool:
        value = binding.value
        if value is None:
            return False
        if binding.kind is BindingKind.WITH:
            return isinstance(value, cst.Call) and self.module.qualified(value.func) in _PLAIN_SOURCES
        if binding.kind is BindingKind.ASSIGN and binding.path:
            return False
        return binding.kind in (BindingKind.ASSIGN, BindingKind.LOOP) and self._is_plain_source(
            value, depth + 1
        )

    def _is_indexed(self, node: cst.BaseExpression) -> bool:
        """Whether the class counts or indexes what it holds here, so that it is no stream."""
        if self.module.value(node).kind in (Kind.LIST, Kind.NDARRAY, Kind.TENSOR, Kind.TUPLE, Kind.STRING):
            return True
        if not isinstance(node, cst.Attribute):
            return False
        owner = self.tree.enclosing(node, cst.ClassDef)
        for read in self.self_attributes.get(node.attr.value, ()):
            if self.tree.enclosing(read, cst.ClassDef) is not owner:
                continue
            parent = self.tree.parent(read)
            if isinstance(parent, cst.Subscript) and parent.value is read:
                return True
        return False

    def made(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The one expression that a name or attribute stands for; the node itself if it is neither."""
        if isinstance(node, cst.Name):
            bindings = self.names.bindings(node)
            if (
                len(bindings) == 1
                and bindings[0].kind is BindingKind.ASSIGN
                and bindings[0].value is not None
            ):
                value = bindings[0].value
                split = (
                    isinstance(value, cst.Call)
                    and self.module.qualified(value.func) == "torch.utils.data.random_split"
                )
                return value if not bindings[0].path or split else None
            return None
        if isinstance(node, cst.Attribute):
            values = self._attribute_values(node)
            return values[0] if len(values) == 1 else None
        return node

    def attribute_bindings(
        self, node: cst.Attribute
    ) -> list[tuple[cst.BaseExpression, tuple[int | None, ...]]]:
        """What the class around ``self.x`` assigns to it: each expression, and the part of it."""
        if not (isinstance(node.value, cst.Name) and node.value.value == "self"):
            return []
        owner = self.tree.enclosing(node, cst.ClassDef)
        if owner is None:
            return []
        info = self.module.classes.info(owner)
        return [
            (binding.value, binding.path)
            for binding in self.module.classes.attribute_bindings(info, node.attr.value)
            if binding.value is not None
        ]

    def _attribute_values(self, node: cst.Attribute) -> list[cst.BaseExpression]:
        return [value for value, path in self.attribute_bindings(node) if not path]

    @cached_property
    def self_attributes(self) -> dict[str, list[cst.Attribute]]:
        """All ``self.x`` of the file, by the name of the attribute."""
        found: dict[str, list[cst.Attribute]] = {}
        for attribute in self.tree.nodes(cst.Attribute):
            if isinstance(attribute.value, cst.Name) and attribute.value.value == "self":
                found.setdefault(attribute.attr.value, []).append(attribute)
        return found

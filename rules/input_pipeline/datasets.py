"""What a dataset costs and where its items are, read from the class or the call that makes it."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.api.families import listed
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.lexicon import Role, ends, has, names_tokenizer
from torchlint.semantics.loaders import Loaders, whole_of
from torchlint.semantics.module import Module, Part
from torchlint.semantics.sources import Item, Path, Source, Through, every, onward, some, traced
from torchlint.semantics.spellings import last_name, positional
from torchlint.semantics.transfers import transferred
from torchlint.semantics.values import UNKNOWN, Device, Kind

_ITERABLE = "torch.utils.data.IterableDataset"
_WORKER_INFO = "torch.utils.data.get_worker_info"
_ROWS = frozenset({Kind.LIST, Kind.TUPLE, Kind.TENSOR, Kind.NDARRAY, Kind.DICT, Kind.SHAPE})
_SEQUENCES = frozenset({Kind.LIST, Kind.TUPLE, Kind.TENSOR, Kind.NDARRAY})
# What makes a sequence of items that are there, and datasets whose items are those of others.
_IN_MEMORY = frozenset(f"builtins.{name}" for name in ("range", "list", "tuple", "zip"))
_IN_MEMORY |= {"torch.utils.data.TensorDataset", "torch.utils.data.StackDataset"}
_RANDOM = re.compile(
    r"(^|\.)(random|rand|randn|randint|randperm|normal|uniform|choice|choices|sample|shuffle|multinomial"
    r"|bernoulli|rand_like|randn_like|default_rng|randrange|normal_|uniform_|random_|permutation|getrandbits)$"
)

_READS_OTHERS = frozenset({"cv2.imread", "h5py.File", "numpy.load", "PIL.Image.open", "torch.load"})
_READS_TABLE = re.compile(r"(pandas|polars)\.read_\w+|numpy\.(loadtxt|genfromtxt)")

# What such functions are called after has to do with which items are whose.
_CHOOSING = (
    *(Role.SHARDING, Role.DISTRIBUTED, Role.CHOOSING, Role.SAMPLING, Role.ORDERING, Role.LOADING),
    *(Role.LOADER, Role.FETCHING, Role.GENERATION),
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
# What ``__getitem__`` may call and still only pick a row, or put a few together.
_CHEAP_FUNCTIONS = listed(
    "builtins.",
    "bool dict float int isinstance len list max min range slice str super tuple",
)
_CHEAP_FUNCTIONS |= listed(
    "torch.",
    """
    FloatTensor LongTensor Tensor arange as_tensor cat clamp concat empty flatten from_numpy full
    is_tensor nn.functional.one_hot nn.functional.pad ones ones_like squeeze stack tensor unsqueeze
    zeros zeros_like
    """,
)
_CHEAP_FUNCTIONS |= listed(
    "numpy.",
    """
    arange array asarray ascontiguousarray concatenate expand_dims float32 float64 int32 int64 ones squeeze
    stack transpose zeros
    """,
)
_CHEAP_METHODS = listed(
    "",
    """
    append astype bool clone contiguous copy detach expand flatten float get int item items keys long
    numpy permute reshape squeeze t to to_numpy tolist transpose type unsqueeze values view
    """,
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


_LITERALS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.Integer, cst.Float)


class Datasets(Part):
    """The datasets of one file."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.loaders = Loaders.of(module)

    def in_memory(self, node: cst.BaseExpression) -> bool:
        """Return whether the data is there already, so that fetching an item is only picking a row."""
        return some(self._rows_only(node))

    def has_tokens(self, node: cst.BaseExpression) -> bool:
        """Return whether an item is the tokens of a text that is there already,
        before it is fetched or then.
        """
        definition = self._class_of(node)
        if definition is not None:
            tokenizes = any(map(names_tokenizer, self.module.tree.names_in(definition)))
            return tokenizes and self._class_rows_only(definition, tokenizing=True)
        return every(self._tokenized(node))

    def has_table_rows(self, node: cst.BaseExpression) -> bool:
        """Return whether an item is a row, or a few, of a table that has been read as a whole."""
        definition = self._class_of(node)
        if definition is None or not self._class_rows_only(definition):
            return False
        home = self.module.home(definition)
        read = [home.qualified(call.func) or "" for call in home.tree.nodes_within(definition, cst.Call)]
        # What is loaded beside the table may be pictures, of which the table has the names.
        return any(map(_READS_TABLE.fullmatch, read)) and _READS_OTHERS.isdisjoint(read)

    @traced(Through.RETURNS)
    def _tokenized(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        """Return whether a dataset of Datasets comes from texts
        that a function tokenizes: ``texts.map(tokenize)``.

        The methods that choose and order items give such a dataset again, and its splits are its items.
        """
        match node:
            case cst.Name("None"):
                return []
            case cst.Subscript(value=owner):
                return onward(owner)
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if (
                self.module.callee(node) is None and self.module.qualified(node.func) is None
            ):
                function = self.module.argument(node, "function").node if name == "map" else None
                if function is None and name == "map" and node.args and node.args[0].keyword is None:
                    function = node.args[0].value
                return (function is not None and self._tokenizes(function)) or onward(owner)
        return None

    def _tokenizes(self, function: cst.BaseExpression) -> bool:
        """Return whether a function of the file hands a text to a tokenizer."""
        definition = self.module.value(function).definition
        return isinstance(definition, cst.FunctionDef | cst.Lambda) and any(
            isinstance(call, cst.Call) and names_tokenizer(last_name(call.func))
            for call in self.module.home(definition).tree.descendants(definition)
        )

    def has_few_items(self, node: cst.BaseExpression) -> bool:
        """Return whether a dataset is made of texts or numbers that are written out in the file, one by one.

        They are its first argument: further ones, such as a size and the names of classes, are options.
        """
        made = self.loaders.made(node)
        if isinstance(made, cst.Call):
            made = self.loaders.made(made.args[0].value) if made.args else None
        return (
            isinstance(made, (cst.List, cst.Tuple))
            and bool(made.elements)
            and all(isinstance(element.value, _LITERALS) for element in made.elements)
        )

    def is_plain_rows(self, node: cst.BaseExpression) -> bool:
        """Return whether it is a list, a tensor or a `TensorDataset`,
        and no class of the program picks the rows.
        """
        return some(self._plain_rows(node))

    @traced(Through.RETURNS)
    def _plain_rows(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        return self._plain_rows_at(node, path)

    def _plain_rows_at(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        value = UNKNOWN if path else self.module.value(node)
        if value.kind in _ROWS or (isinstance(node, cst.ListComp) and not path):
            return True
        if not isinstance(node, cst.Call):
            return None
        name = self.module.class_of(node) or self.module.qualified(node.func)
        return True if name in _IN_MEMORY and not path else whole_of(self.module, node)

    @traced(Through.RETURNS)
    def _rows_only(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        plain = self._plain_rows_at(node, path)
        if plain is not None:
            return plain
        definition = None if path else self._class_of(node)
        return None if definition is None else self._class_rows_only(definition)

    def _class_of(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """Return the class of a dataset; where the caller chooses it, the one that is the default."""
        value = self.module.value(node)
        if isinstance(value.definition, cst.ClassDef):
            return value.definition if value.kind is not Kind.CLASS else None
        made = self.loaders.made(node) if isinstance(node, cst.Name) else node
        if not isinstance(made, cst.Call):
            return None
        chosen = {
            self.module.value(binding.node.default).definition
            for binding in self.module.bindings(made.func)
            if isinstance(binding.node, cst.Param) and binding.node.default is not None
        }
        default = chosen.pop() if len(chosen) == 1 else None
        return default if isinstance(default, cst.ClassDef) else None

    def _class_rows_only(self, definition: cst.ClassDef, *, tokenizing: bool = False) -> bool:
        """Return whether ``__getitem__`` of a dataset does nothing but index what the object holds.

        With ``tokenizing`` it may call a tokenizer, too.
        """
        info = self.module.classes.info(definition)
        method = info.method("__getitem__")
        if method is None or info.inherits(_ITERABLE):
            return False
        return self._picks(method, {definition}, tokenizing)

    def _picks(self, function: cst.FunctionDef, seen: set[cst.CSTNode], tokenizing: bool) -> bool:
        """Return whether a method only picks rows, itself and by what it calls;
        each definition is gone to once.
        """
        seen.add(function)
        return all(
            self._is_cheap(node, seen, tokenizing)
            if isinstance(node, cst.Call)
            else not self._asks_dataset(node)
            for node in self.tree.descendants(function.body)
            if isinstance(node, (cst.Call, cst.Subscript))
        )

    def _asks_dataset(self, node: cst.Subscript) -> bool:
        """Return whether it is ``self.dataset[i]``: an item of another dataset,
        which makes it in its own way.
        """
        owner = node.value
        if isinstance(owner, cst.Subscript):
            named = has(last_name(owner.value), Role.DATASET)  # One of several: ``self.datasets[k][i]``.
        else:
            named = ends(last_name(owner), Role.DATASET)
        return named and self.module.value(owner).kind in (Kind.DATASET, Kind.UNKNOWN)

    def _is_cheap(self, call: cst.Call, seen: set[cst.CSTNode], tokenizing: bool) -> bool:
        name = self.module.qualified(call.func)
        if name is not None:
            return name in _CHEAP_FUNCTIONS
        callee = self.module.callee(call)
        if isinstance(callee, cst.FunctionDef):
            return callee in seen or self._picks(callee, seen, tokenizing)
        if tokenizing and names_tokenizer(last_name(call.func)):
            return True
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _CHEAP_METHODS

    def on_accelerator(self, node: cst.BaseExpression) -> bool:
        """Return whether the items of a dataset are tensors that are on an accelerator already."""
        return self._default_is_accelerator or some(self._data_on_accelerator(node))

    @traced(Through.NOTHING)
    def _data_on_accelerator(self, node: cst.CSTNode, path: Path) -> bool | None:
        value = UNKNOWN if path else self.module.value(node)
        if value.device is Device.ACCELERATOR:
            return True
        if isinstance(value.definition, cst.ClassDef) and value.kind is not Kind.CLASS:
            methods = self.module.classes.info(value.definition).methods.values()
            if any(self.moves(method) for method in methods):
                return True
        given = [argument.value for argument in node.args] if isinstance(node, cst.Call) else []
        return any(self._generates_with_model(each) or self._holds_moved(each) for each in given) or None

    def loads_ahead(self, node: cst.BaseExpression) -> bool:
        """Return whether a dataset is told how many workers it has,
        as one that fills a queue of its own is.
        """
        return some(self._has_workers(node))

    @traced(Through.RETURNS)
    def _has_workers(self, node: cst.CSTNode, path: Path) -> bool | None:
        if path or not isinstance(node, cst.Call):
            return None
        told = [a.value for a in node.args if a.keyword is not None and a.keyword.value == "num_workers"]
        return any(self.module.value(number).constant != 0 for number in told) or None

    def plays(self, node: cst.BaseExpression) -> bool:
        """Return whether a dataset is given a simulation, which no worker process can share."""
        return some(self._given_environment(node))

    @traced(Through.NOTHING)
    def _given_environment(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        if path or not isinstance(node, cst.Call):
            return None
        if any(has(last_name(argument.value), Role.ENVIRONMENT) for argument in node.args):
            return True
        # ``dataset.map(…)`` of a dataset of another library is one as well.
        return onward(node.func.value) if isinstance(node.func, cst.Attribute) else None

    def _holds_moved(self, given: cst.BaseExpression) -> bool:
        """Return whether an argument has something in it that has been moved to an accelerator."""
        return any(
            self.module.value(inner).device is Device.ACCELERATOR or some(self._is_sent(inner))
            for inner in self.tree.descendants(given)
            if isinstance(inner, (cst.Name, cst.Call))
        )

    @traced(Through.NOTHING)
    def _is_sent(self, node: cst.CSTNode, path: Path) -> bool | None:
        return self._is_transfer(node) or None

    def _generates_with_model(self, given: cst.BaseExpression) -> bool:
        """Return whether a dataset is given a function of the file that gets its items
        from a model on a device.

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
        """Return whether a function or class of the file puts something on an accelerator."""
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
        """Return whether a class is an ``IterableDataset`` whose code never speaks of workers."""
        info = self.module.classes.info(definition)
        return info.inherits(_ITERABLE) and not any(
            isinstance(node, cst.Name) and "worker" in node.value.lower()
            for member in info.lineage
            for node in self.tree.descendants(member.node)
        )

    def unsharded(self, definition: cst.ClassDef) -> cst.FunctionDef | None:
        """Return the ``__iter__`` of an ``IterableDataset`` of this file that ignores which worker runs it.

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
        """Return whether what a generator yields is read from the object, the disk or a counter only."""
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
                if not opens and not every(self._is_plain(source)):
                    return False
            elif isinstance(node, cst.Return) and node.value is not None:
                if not every(self._is_plain(node.value)) and not isinstance(node.value, cst.Call):
                    return False
        return True

    def _is_plain_method(self, call: cst.Call) -> bool:
        """Return whether a call is of a method that strings, files, arrays and lists have."""
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _PLAIN_METHODS

    def _maps_item(self, call: cst.Call) -> bool:
        """Return whether a call makes something of what it is given: ``self.transform(line)``.

        It may be random, but it does not choose which items there are, as what a condition asks may.
        """
        name = last_name(call.func)
        if name is None or has(name, *_CHOOSING) or not call.args:
            return False
        flow = self.module.flow
        return flow.condition(call) is None and not isinstance(flow.statement(call), cst.For)

    @traced(Through.ITEMS)
    def _is_plain(self, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
        """Return whether what is iterated is a file, a range, a list:
        nothing that could know about workers.
        """
        match node:
            case cst.Call():
                return self._is_plain_call(node, path)
            case _ if path[:1] == (Item.EACH,):
                return onward(node)
            case cst.GeneratorExp():
                return onward(node.for_in.iter)
            case cst.Subscript(value=owner):
                return self._is_indexed(owner) or onward(owner)
            case cst.Attribute():
                return self._is_indexed(node) or None
            case cst.Name():
                return None
            case cst.SimpleString():
                return True
            case _:
                return self.module.value(node).kind in _SEQUENCES or None

    def _is_plain_call(self, call: cst.Call, path: Path) -> bool | list[Source]:
        """Return what a call that yields items reads."""
        name = self.module.qualified(call.func)
        if name in _HANDING_ON:
            # What `map` applies makes something of each item, and does not choose which there are.
            given = positional(call)[1 if name == "builtins.map" else 0 :]
            read = [each for each in given if not isinstance(each, (cst.Lambda, cst.Integer))]
            return onward(*read) if read else bool(given)
        if name in _PLAIN_SOURCES:
            return True
        return path[:1] != (Item.ENTERED,) and isinstance(self.module.callee(call), cst.FunctionDef)

    def _opens_items(self, loop: cst.For) -> bool:
        """Return whether a loop opens one file after the other:
        ``for path in self.files: with open(path) …``.
        """
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

    def _is_indexed(self, node: cst.BaseExpression) -> bool:
        """Return whether the class counts or indexes what it holds here, so that it is no stream."""
        if self.module.value(node).kind in (*_SEQUENCES, Kind.STRING):
            return True
        attributes = SelfAttributes.of(self.module)
        owner = attributes.self_class(node)
        reads = attributes.self_reads(owner, last_name(node) or "") if owner is not None else ()
        parents = ((self.tree.parent(read), read) for read in reads)
        return any(isinstance(parent, cst.Subscript) and parent.value is read for parent, read in parents)

"""What calls into libraries return: torch's functions, tensors' methods, modules, the builtins.

The facts are data (``api.results``); this file lays them against the operands of a call, which decide
device and graph of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cache

import libcst as cst

from torchlint.semantics import dtypes, tensordtypes
from torchlint.semantics.api import results
from torchlint.semantics.api.families import makes_model, runs_elsewhere
from torchlint.semantics.api.frameworks import PREPARING, PROGRESS_BARS
from torchlint.semantics.classes import kind_of_class
from torchlint.semantics.clues import asked_by_dimension
from torchlint.semantics.conventions import MAKER_NAME
from torchlint.semantics.dependencies import cached_property
from torchlint.semantics.evaluator import Evaluator
from torchlint.semantics.lexicon import Role, begins, ends, names_criterion
from torchlint.semantics.names import dotted_text
from torchlint.semantics.spellings import given_as, keywords, last_name, positional, word_of
from torchlint.semantics.values import (
    BATCH,
    BOOL,
    BOTTOM,
    DTYPE,
    MISSING,
    MODULE,
    NDARRAY,
    NONE,
    NUMBER,
    SHAPE,
    STRING,
    TENSOR,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Memory,
    Value,
    chosen_device,
    dict_item,
    each_of,
    item_of,
    join,
    join_devices,
    join_graphs,
    solid,
    unknown_of,
)

# What makes a model run on several devices, or keeps an average of it, and is called as the model is.
WRAPPERS_OF_MODELS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "apex.parallel.DistributedDataParallel",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "torch.optim.swa_utils.AveragedModel",
    }
)
# Calls that hand on what they are given, an iterable as an iterable of the same items.
_PASSING = (PROGRESS_BARS | WRAPPERS_OF_MODELS).union(
    {
        "builtins.iter",
        "builtins.list",
        "builtins.tuple",
        "builtins.sorted",
        "builtins.reversed",
        "builtins.set",
        "copy.copy",
        "copy.deepcopy",
        "itertools.islice",
        "itertools.cycle",
        "itertools.chain",
        "rich.progress.track",
        "fastprogress.progress_bar",
        "fastprogress.fastprogress.progress_bar",
        "progressbar.progressbar",
        "torch.compile",
        "torch.cuda.make_graphed_callables",
        "torch.jit.script",
        "torch.jit.optimize_for_inference",
        "torch.jit.freeze",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
    }
)
_SIMPLE_KINDS: dict[str, Value] = {
    "tensor": TENSOR,
    "number": NUMBER,
    "bool": BOOL,
    "string": STRING,
    "none": NONE,
    "shape": SHAPE,
    "ndarray": NDARRAY,
    "ndarrays": Value(Kind.TUPLE, item=NDARRAY),
    "ndarray_or_number": NDARRAY,
    "dtype": DTYPE,
    "device": Value(Kind.DEVICE),
    "list": Value(Kind.LIST),
    "tuple": Value(Kind.TUPLE),
    "dict": Value(Kind.DICT),
    "numbers": Value(Kind.TUPLE, item=NUMBER),
    "module": MODULE,
    "optimizer": Value(Kind.OPTIMIZER),
    "scheduler": Value(Kind.SCHEDULER),
    "scaler": Value(Kind.SCALER),
    "loader": Value(Kind.LOADER),
    "dataset": Value(Kind.DATASET),
    "sampler": Value(Kind.SAMPLER),
    "generator": Value(Kind.GENERATOR),
    "distribution": Value(Kind.OBJECT, cls="torch.distributions.Distribution"),
    "packed": Value(Kind.OBJECT, cls="torch.nn.utils.rnn.PackedSequence"),
    "event": Value(Kind.OBJECT, cls="torch.Event"),
    "stream": Value(Kind.OBJECT, cls="torch.Stream"),
    "context": Value(Kind.OBJECT, cls="context"),
    "storage": Value(Kind.OBJECT, cls="torch.Storage"),
    "handle": Value(Kind.OBJECT),
    "object": Value(Kind.OBJECT),
    "finfo": Value(Kind.OBJECT, cls="torch.finfo"),
}
# How the facts in ``api.results`` call the receivers that are plain objects here.
_RECEIVER_OF_CLASS = {
    "torch.distributions.Distribution": "distribution",
    "torch.nn.utils.rnn.PackedSequence": "packed",
    "torch.Event": "event",
    "torch.Stream": "stream",
    "torch.Storage": "storage",
    "torch.finfo": "finfo",
}
DISTRIBUTION_METHODS = frozenset({"entropy", "log_prob", "rsample"})
_LOOKING_UP = ("get", "pop", "setdefault")
_STRING_METHODS = {
    **dict.fromkeys(("split", "rsplit", "splitlines"), Value(Kind.LIST, item=STRING)),
    **dict.fromkeys(("startswith", "endswith", "isdigit", "isalpha"), BOOL),
    **dict.fromkeys(("find", "index", "count", "rfind"), NUMBER),
}
_BUILTIN_RESULTS = {
    **dict.fromkeys(("int", "float", "complex", "len", "ord", "hash", "id"), NUMBER),
    **dict.fromkeys(("str", "repr", "format", "chr", "input"), STRING),
    **dict.fromkeys(("bool", "isinstance", "hasattr", "callable", "issubclass", "any", "all"), BOOL),
    "range": Value(Kind.ITERATOR, item=NUMBER),
}
# What some functions give, whatever they are given.
_RESULTS = {
    **{f"builtins.{name}": value for name, value in _BUILTIN_RESULTS.items()},
    **dict.fromkeys(
        ("tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "tqdm.tnrange"),
        Value(Kind.ITERATOR, item=NUMBER),
    ),
    "torch.accelerator.current_accelerator": Value(Kind.DEVICE, device=Device.ACCELERATOR),
}
_CONSTANTS = {
    **{f"{module}.{name}": NUMBER for module in ("math", "numpy") for name in ("pi", "e", "inf", "nan")},
    **dict.fromkeys(("math.tau", "torch.inf", "torch.nan", "torch.pi", "sys.maxsize"), NUMBER),
    **dict.fromkeys(("torch.__version__", "os.sep", "sys.platform"), STRING),
}
_READING_VARIABLES = frozenset({"os.environ.get", "os.getenv"})
_DRAWING = frozenset({"random.sample", "random.choices"})
MODULE_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
_NAMESPACES = frozenset(
    {"torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils", "torch.utils.data", "numpy"}
    | {"torch.cuda", "torch.amp", "torch.autograd", "torch.distributed", "math", "random", "os", "time"}
)
_TORCH_DTYPES = frozenset(
    f"torch.{name}"
    for group in (
        (
            "float32",
            "float",
            "float64",
            "double",
            "float16",
            "half",
            "bfloat16",
            "float8_e4m3fn",
            "float8_e5m2",
        ),
        ("complex64", "cfloat", "complex128", "cdouble", "bool", "uint8", "uint16", "uint32", "uint64"),
        ("int8", "int16", "short", "int32", "int", "int64", "long", "quint8", "qint8", "qint32"),
    )
    for name in group
)
TENSOR_TYPES = {
    "torch.Tensor": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.LongTensor": TENSOR._replace(dtype="torch.int64"),
    "torch.BoolTensor": TENSOR._replace(dtype="torch.bool"),
    "torch.IntTensor": TENSOR._replace(dtype="torch.int32"),
    "torch.ByteTensor": TENSOR._replace(dtype="torch.uint8"),
    "torch.DoubleTensor": TENSOR,
    "torch.HalfTensor": TENSOR,
    "torch.nn.Parameter": Value(Kind.TENSOR, graph=Graph.ATTACHED, leaf=True),
    "torch.device": Value(Kind.DEVICE, device=Device.ACCELERATOR),
    "torch.dtype": DTYPE,
    "torch.Size": SHAPE,
    "torch.nn.Module": MODULE,
    "builtins.int": NUMBER,
    "builtins.float": NUMBER,
    "builtins.bool": BOOL,
    "builtins.str": STRING,
    "builtins.list": Value(Kind.LIST),
    "builtins.dict": Value(Kind.DICT),
    "builtins.tuple": Value(Kind.TUPLE),
    "numpy.ndarray": NDARRAY,
}


_OF_DATA = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray"})
_PLACES = frozenset({Kind.DEVICE, Kind.STRING, Kind.NUMBER, Kind.BOOL, Kind.NONE})

# What gives the same memory, all of it or a part without gaps; and what copies it if it has to.
_VIEWS = frozenset(
    {"as_subclass", "detach", "select", "squeeze", "unbind", "unsqueeze", "view", "view_as"}
    | {"chunk", "split", "tensor_split"}
)
_JOINING = frozenset({"cat", "concat", "concatenate", "hstack", "stack", "vstack"})
_RESHAPING = frozenset({"contiguous", "flatten", "ravel", "reshape", "reshape_as", "unflatten", "narrow"})
_SHAPED_LIKE = frozenset({"expand_as", "reshape_as", "view_as"})
_CASTS = frozenset(
    {"bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short", "type", "type_as"}
)

# What keeps its arguments under their names as attributes.
_NAMESPACE_CLASSES = frozenset({"types.SimpleNamespace", "argparse.Namespace"})

# Classes and functions whose result depends on what they are given, though its kind does not.
TABLES = frozenset({"builtins.dict", "collections.OrderedDict"})
"""Classes of dicts that hold what their calls are given, and nothing else at first."""
_BY_ARGUMENTS = MODULE_CONTAINERS | _PASSING | _DRAWING | TABLES | {"torch.device"}
# How far back among the arguments of an unknown wrapper the loader can stand.
_WRAPPED = 3


def _typed_like(method: str, given: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the tensor whose type and place ``x.type_as(other)`` or ``x.type(other.type())`` takes."""
    match given:
        case cst.Call(func=cst.Attribute(value=other, attr=cst.Name("type")), args=[]) if method == "type":
            return other
    return given if method == "type_as" else None


@cache
def _plain(dotted: str) -> Value | None:
    """Return the result of a library function that is the same whatever it is given; None for all others."""
    if dotted in _RESULTS:
        return _RESULTS[dotted]
    if dotted in _BY_ARGUMENTS or dotted.startswith("builtins."):
        return None
    fact = results.function_result(dotted)
    if kind_of_class(dotted) is not Kind.UNKNOWN or not isinstance(fact, str) or fact in _FROM_OPERANDS:
        return None
    return _SIMPLE_KINDS.get(fact, UNKNOWN)


_BUILTIN_SEQUENCES = frozenset(f"builtins.{name}" for name in ("list", "tuple", "sorted", "reversed", "set"))
_FROM_OPERANDS = frozenset({"tensor", "tensors", "same", "parameters", "distribution", "packed", "unknown"})


class Library:
    """The results of library calls in one file."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self._value = evaluator.value

    def named(self, dotted: str) -> Value:
        """Return what a dotted library name itself is: a class, a function, a module, a constant."""
        if dotted in _TORCH_DTYPES:
            return Value(Kind.DTYPE, cls=dotted)
        head, _, name = dotted.rpartition(".")
        if dotted.startswith("."):
            return UNKNOWN
        if dotted in _CONSTANTS:
            return _CONSTANTS[dotted]
        constant = name.isupper() and len(name) > 3 and head not in ("torch.nn", "torch.optim")
        if (name[:1].isupper() and not constant) or (
            head == "builtins" and name in ("int", "float", "str", "bool", "list", "dict")
        ):
            return Value(Kind.CLASS, cls=dotted)
        if results.function_result(dotted) is not None or head == "builtins" or dotted in _PASSING:
            return Value(Kind.FUNCTION, cls=dotted)
        return Value(Kind.NAMESPACE, cls=dotted) if dotted in _NAMESPACES else Value(Kind.UNKNOWN, cls=dotted)

    def call(self, node: cst.Call, dotted: str) -> Value:
        """Return the result of calling a library function or class by its dotted name."""
        plain = _plain(dotted)
        if plain is not None:
            return self._array(node, dotted) if plain is NDARRAY else plain
        kind = kind_of_class(dotted)
        if kind not in (Kind.UNKNOWN, Kind.TENSOR, Kind.DEVICE) and dotted not in _BY_ARGUMENTS:
            return Value(kind, cls=dotted, origin=node)
        args = [self._value(a.value) for a in node.args if not a.star]
        first = args[0] if args and args[0] is not BOTTOM else UNKNOWN
        if dotted in TABLES:
            return self._table(node)
        if dotted.startswith("builtins."):
            return self._builtin_call(node, dotted, args)
        if dotted in _PASSING:
            return self._passed_on(node, dotted, first)
        if (made := self._by_first(node, dotted, first)) is not None:
            return made
        if kind is Kind.TENSOR or dotted in ("torch.nn.Parameter", "torch.autograd.Variable"):
            return self._tensor_class(dotted, node, first)
        if kind is not Kind.UNKNOWN:
            return Value(kind, cls=dotted, origin=node, item=self._contained(node, args) if args else None)
        fact = results.function_result(dotted)
        if fact is not None:
            return self._function_fact(node, dotted, fact, args)
        return self._by_name(node, dotted, args)

    def _passed_on(self, node: cst.Call, dotted: str, first: Value) -> Value:
        """Return what a function gives that hands on what it is given, as it is or item by item."""
        if dotted.startswith(("itertools.", "tqdm", "rich.", "fastprogress", "progressbar")):
            return self.iterator(first)
        # A copy is another model than the one that it is made of.
        copied = dotted == "copy.deepcopy" and first.kind is Kind.MODULE
        return first._replace(origin=node) if copied else first

    def _by_first(self, node: cst.Call, dotted: str, first: Value) -> Value | None:
        """Return what a function outside of torch's tables makes of its arguments; None for all others."""
        if dotted in _NAMESPACE_CLASSES:
            held = tuple(sorted((name, solid(value)) for name, value in self._named(node).items()))
            return Value(Kind.OBJECT, origin=node, fields=held) if held else UNKNOWN
        if dotted == "functools.partial" and first.kind in (Kind.FUNCTION, Kind.CLASS):
            return first._replace(presets=(*first.presets, node))
        if dotted == "torch.device":
            return self._device_call(first)
        if dotted in _DRAWING:
            return Value(Kind.LIST, item=self.evaluator.iterated(first).if_known)
        if dotted in _READING_VARIABLES and len(node.args) == 2:
            default = self._value(node.args[1].value)
            return STRING.on(Device.ACCELERATOR) if default.device is Device.ACCELERATOR else STRING
        return None

    def _by_name(self, node: cst.Call, dotted: str, args: Sequence[Value]) -> Value:
        """Return what a function of which no table tells gives, as far as its name and arguments say."""
        if runs_elsewhere(dotted):
            return Value(Kind.OBJECT, cls=dotted, origin=node)
        if makes_model(dotted):
            return Value(Kind.MODULE, cls=None, origin=node)
        if ends(dotted.rpartition(".")[2], Role.SENDING):
            return self._sent(args)
        if self._is_made_to_learn(node):
            return Value(Kind.OPTIMIZER, origin=node)
        return next((arg for arg in args if arg.kind is Kind.LOADER), UNKNOWN)

    def _is_made_to_learn(self, node: cst.Call) -> bool:
        """Return whether a call gives parameters and a learning rate, as to an optimizer."""
        told = not keywords(node).keys().isdisjoint(("lr", "learning_rate"))
        return told and self._value(node.args[0].value).kind is Kind.PARAMETERS

    def _named(self, node: cst.Call) -> dict[str, Value]:
        """Return what a call gives by keyword."""
        return {name: self._value(given) for name, given in keywords(node).items()}

    def _array(self, node: cst.Call, dotted: str) -> Value:
        """Return the array that a function of NumPy returns, of the dtype that its arguments show."""
        if any(arg.star for arg in node.args):
            return NDARRAY
        if dotted in results.NUMPY_TYPES and node.args:
            if self._value(node.args[0].value).kind in (Kind.NUMBER, Kind.BOOL, Kind.STRING):
                return NUMBER  # ``np.float32(3)``
        made = self._array_of_dtype(node, dotted)
        if dotted not in results.NUMPY_VIEWS:
            return made.kept_in(Memory.PAGEABLE)
        return made.kept_in(self._memory_of(self._value(node.args[0].value)) if node.args else Memory.UNKNOWN)

    def _array_of_dtype(self, node: cst.Call, dotted: str) -> Value:
        dtype = dtypes.of_call(dotted, [*map(self._value, positional(node))], self._named(node))
        return NDARRAY if dtype is None else NDARRAY._replace(dtype=dtype)

    def _array_method(self, base: Value, name: str, node: cst.Call) -> Value | None:
        """Return what a method of an array returns, if that is an array or one of its numbers."""
        if results.METHODS["ndarray"].get(name) not in ("ndarray", "ndarray_or_number"):
            return None
        given = [] if any(arg.star for arg in node.args) else [self._value(arg.value) for arg in node.args]
        dtype = dtypes.of_method(base, name, given)
        made = NDARRAY._replace(dtype=dtype, part=base.part or dtypes.reduces(name))
        views = name in results.LAYOUT_METHODS or name in ("astype", "copy", "ravel")
        return made.kept_in(base.memory if views and name != "copy" else Memory.PAGEABLE)

    @staticmethod
    def _memory_of(data: Value) -> Memory:
        """Return which memory a tensor or array is in that is made of this without a copy."""
        if data.kind is Kind.TENSOR or data.kind is Kind.NDARRAY:
            return data.memory
        known = data.kind in (Kind.LIST, Kind.TUPLE, Kind.NUMBER, Kind.BOOL, Kind.SHAPE)
        return Memory.PAGEABLE if known else Memory.UNKNOWN

    def _allocated(self, node: cst.Call, dotted: str, args: Sequence[Value]) -> Memory:
        """Return which memory a function of torch allocates for a tensor of the host, or takes over."""
        given = keywords(node)
        if "out" in given:
            return self._value(given["out"]).memory
        if "pin_memory" in given:
            asked = self._value(given["pin_memory"]).constant
            return Memory.PAGEABLE if asked is False or asked is None else Memory.PINNED
        if any(a.star == "**" for a in node.args):
            return Memory.UNKNOWN
        if dotted in _OF_DATA and dotted != "torch.tensor":
            return self._memory_of(args[0]) if args else Memory.UNKNOWN
        return Memory.PAGEABLE

    def _sent(self, args: Sequence[Value]) -> Value:
        """Return what a helper of another file gives that is called after sending what it gets to a device.

        ``to_device(module, x)`` as well as ``to_device(x, device)``.
        """
        tensors = [arg for arg in args if arg.tensorlike]
        if tensors:
            return tensors[-1]._replace(device=Device.ACCELERATOR, constant=MISSING, part=False)
        return UNKNOWN._replace(device=Device.ACCELERATOR)

    def _function_fact(
        self, node: cst.Call, dotted: str, fact: results.Result, args: Sequence[Value]
    ) -> Value:
        """Return the result of a torch function of which the facts are known."""
        name = dotted.rpartition(".")[2]
        values = [v for v in args if v is not BOTTOM]
        if (
            dotted in results.FACTORIES
            or dotted in results.LIKE_FACTORIES
            or dotted in results.HOST_FACTORIES
        ):
            return self._factory(node, dotted, values)
        fact = self._chosen(node, fact)
        if fact == "same":
            return values[0] if values else UNKNOWN
        tensors: list[Value] = []
        for value in values:
            if value.tensorlike:
                tensors.append(value)
            elif value.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR):
                item = item_of(value)
                parts = value.elements or (() if item is None else (item,))
                if any(part.tensorlike for part in parts):
                    tensors += [part for part in parts if part.tensorlike or part.kind is Kind.UNKNOWN]
        graphless = dotted in results.GRAPHLESS_FUNCTIONS and not _differentiates_twice(node)
        made = self.from_fact(fact, tensors, node=node, graphless=graphless, name=name, origin=node)
        if dotted.startswith(("torch.", "torch.nn.functional.")):
            made = self._with_dtype(made, name, _operands(values), node)
        hostly = made.kind is Kind.TENSOR and not self._default_device_changed
        if (
            hostly
            and values
            and not tensors
            and all(v.host or v.kind is Kind.TUPLE or v.device is Device.CPU for v in values)
        ):
            made = made.on(Device.CPU)  # from numbers alone, or what is there
        elif hostly and name in _JOINING and {v.device for v in tensors} == {Device.CPU, Device.UNKNOWN}:
            made = made.on(Device.CPU)  # tensors that are put together are in one place
        elif hostly and name in _JOINING and values and _all_on_host(_operands(values[:1])):
            made = made.on(Device.CPU)  # copies of what is not known otherwise
        if dotted in results.FUNCTIONAL_LOSSES and _beside_host_target(name, args):
            made = made.on(Device.CPU)
        if made.kind is not Kind.TENSOR or made.device is not Device.CPU:
            return made
        if values and (name in _VIEWS or name in _RESHAPING):
            return made.kept_in(_of_view(values[0], name))
        joined = [part for value in values for part in (value.elements or ()) if part.tensorlike]
        return made.kept_in(_new_beside(joined or tensors, self._allocated(node, dotted, values)))

    def _chosen(self, node: cst.Call, fact: results.Result, *, method: bool = False) -> results.Result:
        """Return what a call gives, where its arguments decide that, one after the other."""
        while isinstance(fact, results.Depends):
            fact = fact.choose(self._deciding(node, fact, method=method))
        return fact

    def _deciding(self, node: cst.Call, fact: results.Depends, *, method: bool = False) -> object:
        """Return the argument on which a result depends, in the terms of ``api.results``."""
        if any(a.star for a in node.args):
            return results.UNKNOWN
        given = given_as(node, fact.argument, fact.position)
        if given is None:
            return results.ABSENT
        if fact.argument in ("input", "x") and len(node.args) > 2:
            # ``torch.where(condition, a, b)``, ``np.where``: with ``b`` there, ``a`` is no None.
            return True
        value = self._value(given)
        if value.constant is not MISSING:
            return value.constant
        if value.kind is Kind.TENSOR:
            return results.TENSOR
        if value.kind in (Kind.NUMBER, Kind.STRING, Kind.DTYPE, Kind.CLASS, Kind.TUPLE, Kind.LIST):
            return True
        return results.UNKNOWN

    def from_fact(
        self,
        fact: results.Result,
        operands: Sequence[Value],
        *,
        node: cst.CSTNode | None = None,
        graphless: bool = False,
        name: str = "",
        origin: cst.CSTNode | None = None,
    ) -> Value:
        """Return the value that a fact of ``api.results`` describes, computed from these operands."""
        while isinstance(fact, results.Depends):
            fact = fact.choose(results.UNKNOWN)
        if isinstance(fact, tuple):
            flat = results.GRAPHLESS_ELEMENTS.get(name, frozenset())
            parts = tuple(
                self.from_fact(part, operands, node=node, graphless=graphless or i in flat)
                for i, part in enumerate(fact)
            )
            return Value(Kind.TUPLE, elements=parts)
        if fact in ("tensor", "tensors"):
            tensor = self.tensor(*operands, node=node)
            if graphless:
                tensor = tensor.attached(Graph.DETACHED)
            if name in results.METHOD_DTYPES:
                tensor = tensor._replace(dtype=results.METHOD_DTYPES[name])
            if fact == "tensors":
                return Value(Kind.TUPLE, item=tensor)
            return tensor._replace(origin=origin) if origin is not None else tensor
        if fact == "same":
            return operands[0] if operands else UNKNOWN
        if fact == "parameters":
            return self._parameters(operands[0] if operands else MODULE, name)
        if fact == "distribution" and operands:
            # It samples where its parameters are.
            made = _SIMPLE_KINDS[fact].on(join_devices(v.device for v in operands))
            return made._replace(origin=node)
        return _SIMPLE_KINDS.get(fact, UNKNOWN)

    def _factory(self, node: cst.Call, dotted: str, args: Sequence[Value]) -> Value:
        """Return a tensor made from nothing, or in the likeness of another."""
        named = self._named(node)
        if "device" in named:
            device = self.device(named["device"])
        elif any(a.star == "**" for a in node.args):
            device = Device.UNKNOWN
        else:
            device = self._device_of_factory(node, dotted, args)
        learnt = named.get("requires_grad", BOOL).constant is True
        asked = self._asked_dtype(node)
        if asked is not None:
            dtype = tensordtypes.named(asked)
        else:
            dtype = _dtype_of_data(dotted, args[0] if args else UNKNOWN)
            dtype = dtype or tensordtypes.of_factory(dotted, [*map(self._value, positional(node))], named)
        graph = Graph.ATTACHED if learnt else Graph.DETACHED
        made = Value(Kind.TENSOR, device=device, graph=graph, dtype=dtype, origin=node)
        if device is not Device.CPU:
            return made
        models = args[:1] if dotted in results.LIKE_FACTORIES and "device" not in named else ()
        return made.kept_in(_new_beside(models, self._allocated(node, dotted, args)))

    def _device_of_factory(self, node: cst.Call, dotted: str, args: Sequence[Value]) -> Device:
        """Return where a factory makes a tensor that is not told where to."""
        if dotted in results.LIKE_FACTORIES and args:
            return args[0].device
        if dotted in results.HOST_FACTORIES:
            return Device.CPU
        if self._default_device_changed:
            return Device.UNKNOWN
        tensors = [a for a in args if a.tensorlike]
        if dotted == "torch.tensor" and join_devices(a.device for a in tensors) is Device.ACCELERATOR:
            return Device.ACCELERATOR  # a copy of a tensor stays with it, a list of numbers is in host memory
        if dotted in ("torch.as_tensor", "torch.asarray", "torch.normal"):
            if tensors:
                return join_devices(a.device for a in tensors)
            if args and not args[0].known and not self._is_of_settings(node.args[0].value):
                return Device.UNKNOWN
        return Device.CPU

    def _is_of_settings(self, data: cst.BaseExpression) -> bool:
        """Return whether data is computed from numbers and from what a configuration holds, which is
        no tensor: ``config.length - x.shape[1]``.
        """
        match data:
            case cst.BinaryOperation(left=left, right=right):
                return self._is_of_settings(left) and self._is_of_settings(right)
            case cst.Attribute(value=owner) if not self._value(data).known:
                held = owner.value if isinstance(owner, cst.Subscript) else owner
                return ends(last_name(held), Role.OPTIONS)
        return self._value(data).kind is Kind.NUMBER

    def _asked_dtype(self, node: cst.Call) -> Value | None:
        """Return the dtype that a call asks for, if it may ask for one."""
        if any(argument.star for argument in node.args):
            return UNKNOWN
        asked = [a.value for a in node.args if a.keyword is not None and a.keyword.value in ("dtype", "out")]
        value = self._value(asked[0]) if asked else NONE
        return None if value.kind is Kind.NONE else value

    def _with_dtype(self, made: Value, name: str, operands: Sequence[Value], node: cst.Call) -> Value:
        """Return what a function or method returns, with the dtype that it has by what it is given."""
        asked = self._asked_dtype(node)
        dtype = tensordtypes.of_call(name, operands) if asked is None else tensordtypes.named(asked)
        if made.kind is Kind.TENSOR:
            return made if dtype is None or name in results.METHOD_DTYPES else made._replace(dtype=dtype)
        if made.kind is not Kind.TUPLE:
            return made
        elements = made.elements and tuple(
            element._replace(dtype=tensordtypes.of_element(name, i) or dtype)
            if element.kind is Kind.TENSOR
            else element
            for i, element in enumerate(made.elements)
        )
        item = made.item
        if item is not None and item.kind is Kind.TENSOR and dtype is not None:
            item = item._replace(dtype=dtype)
        return made._replace(elements=elements, item=item)

    @cached_property
    def _default_device_changed(self) -> bool:
        """Whether the file moves the default device, so that factories may not make host tensors."""
        names = self.evaluator.tree.names_by_name
        if "set_default_device" in names or "set_default_tensor_type" in names:
            return True
        return any(
            self.evaluator.names.qualified(item.item.func) == "torch.device"
            for item in self.evaluator.tree.nodes(cst.WithItem)
            if isinstance(item.item, cst.Call)
        )

    def _tensor_class(self, dotted: str, node: cst.Call, first: Value) -> Value:
        """Return constructors of tensors: parameters, ``Variable``, the legacy typed constructors."""
        if dotted.endswith("Parameter"):
            return Value(Kind.TENSOR, graph=Graph.ATTACHED, leaf=True, origin=node)
        if dotted.endswith("Buffer"):
            return Value(Kind.TENSOR, graph=Graph.DETACHED, origin=node)
        if dotted == "torch.autograd.Variable":
            # It takes one tensor, and lets go of its graph.
            return self._variable(node, first)
        device = Device.ACCELERATOR if dotted.startswith("torch.cuda.") else Device.CPU
        dtype = results.LEGACY_CONSTRUCTORS.get(dotted.replace("torch.cuda.", "torch."))
        made = Value(Kind.TENSOR, device=device, graph=Graph.DETACHED, dtype=dtype, origin=node)
        return made.kept_in(Memory.PAGEABLE)

    def _variable(self, node: cst.Call, first: Value) -> Value:
        options = [a.keyword.value if a.keyword is not None else "requires_grad" for a in node.args[1:]]
        told = "requires_grad" in options and any(
            self._value(a.value).constant is not False for a in node.args[1:]
        )
        graph = Graph.ATTACHED if told else Graph.DETACHED
        return first._replace(kind=Kind.TENSOR, graph=graph, leaf=False)

    @staticmethod
    def _device_call(first: Value) -> Value:
        if first.kind in (Kind.STRING, Kind.DEVICE):
            device = first.device if first.device is not Device.UNKNOWN else Device.ACCELERATOR
            return Value(Kind.DEVICE, device=device, constant=first.constant)
        return Value(Kind.DEVICE, device=Device.ACCELERATOR)

    def _contained(self, node: cst.Call, args: Sequence[Value]) -> Value | None:
        """Return what the items of ``nn.Sequential(...)`` or ``nn.ModuleList([...])`` are."""
        if any(a.star for a in node.args):
            starred = [self.evaluator.iterated(self._value(a.value)) for a in node.args if a.star == "*"]
            args = [*args, *starred]
        items = [a if a.kind is Kind.MODULE else item_of(a) or UNKNOWN for a in args]
        if not items:
            return None
        joined = join(items)
        return joined if joined is BOTTOM or joined.kind is Kind.MODULE else MODULE  # what else they may hold

    def _builtin_call(self, node: cst.Call, dotted: str, args: Sequence[Value]) -> Value:
        first = args[0] if args else UNKNOWN
        if dotted == "builtins.getattr":
            return self._getattr(node, first)
        if dotted == "builtins.enumerate":
            pair = (NUMBER, solid(self.evaluator.iterated(first)))
            return Value(Kind.ITERATOR, item=Value(Kind.TUPLE, elements=pair))
        if dotted == "builtins.zip":
            parts = tuple(solid(self.evaluator.iterated(a)) for a in args)
            return Value(Kind.ITERATOR, item=Value(Kind.TUPLE, elements=parts))
        if dotted == "builtins.next":
            return self.evaluator.iterated(first)
        if dotted == "builtins.open":
            return Value(Kind.OBJECT)
        if dotted == "builtins.map" and len(args) > 1:
            return Value(Kind.ITERATOR, item=self._mapped(node, args))
        if dotted == "builtins.filter" and len(args) > 1:
            return self.iterator(args[1])
        if dotted in ("builtins.abs", "builtins.round", "builtins.pow", "builtins.divmod"):
            if not first.tensorlike:
                return first._replace(constant=MISSING, literal=False)
            dtype = tensordtypes.of_call(dotted.removeprefix("builtins."), args)
            return self.tensor(*args, node=node)._replace(dtype=dtype)
        if dotted in ("builtins.sum", "builtins.max", "builtins.min"):
            item = first if len(args) > 1 and dotted != "builtins.sum" else self.evaluator.iterated(first)
            if item is BOTTOM:
                return item
            added = item.kind is Kind.TENSOR and dotted == "builtins.sum"
            dtype = tensordtypes.of_call("sum", (item,)) if added else item.dtype
            return item._replace(constant=MISSING, literal=False, dtype=dtype)
        if dotted in _BUILTIN_SEQUENCES:
            if first.kind in (Kind.LIST, Kind.TUPLE) and dotted != "builtins.sorted":
                kind = Kind.TUPLE if dotted == "builtins.tuple" else Kind.LIST
                return first._replace(kind=kind)
            item = self.evaluator.iterated(first)
            return Value(Kind.LIST, item=item.if_known, origin=node)
        if dotted == "builtins.iter":
            return self.iterator(first)
        return UNKNOWN

    def _table(self, node: cst.Call) -> Value:
        """Return the dict that a call makes of its arguments: ``dict(loss=loss)``."""
        named = keywords(node)
        fields = tuple((key, solid(self._value(held))) for key, held in sorted(named.items()))
        whole = len(named) == len(node.args)
        return Value(Kind.DICT, item=self._item_of_dict(node), fields=fields if whole else ())

    def _item_of_dict(self, node: cst.Call) -> Value | None:
        """Return what the values of ``dict(other, name=value)`` or ``dict(zip(names, values))`` are."""
        items: list[Value] = []
        for argument in node.args:
            value = self._value(argument.value)
            if argument.keyword is None and not argument.star and value.kind is not Kind.DICT:
                pair = self.evaluator.iterated(value)
                value = self.evaluator.element(pair, 1) if pair.kind is Kind.TUPLE else UNKNOWN
            elif argument.keyword is None:
                value = dict_item(value)
            items.append(solid(value))
        return join(items) if items else None

    def _getattr(self, node: cst.Call, first: Value) -> Value:
        name = self._value(node.args[1].value).constant if len(node.args) > 1 else MISSING
        return self.evaluator.attribute(first, name) if isinstance(name, str) else UNKNOWN

    def _mapped(self, node: cst.Call, args: Sequence[Value]) -> Value:
        function = args[0]
        if function.cls is not None and function.cls in _RESULTS:
            return _RESULTS[function.cls]
        if isinstance(function.definition, (cst.FunctionDef, cst.Lambda)):
            return solid(self.evaluator.returned(function.definition))
        return UNKNOWN

    def iterator(self, value: Value) -> Value:
        """Return an iterator over something; over a loader it stays a loader, since it yields its batches."""
        if value.kind in (Kind.LOADER, Kind.ITERATOR, Kind.LIST, Kind.PARAMETERS):
            return value
        return Value(Kind.ITERATOR, item=self.evaluator.iterated(value).if_known)

    def unknown_call(self, node: cst.Call) -> Value:
        """Return what an unknown call gives, as far as what it is asked of tells."""
        func = node.func
        if ends(last_name(func), Role.SENDING) and not any(arg.star for arg in node.args):
            return self._sent([v for v in (self._value(a.value) for a in node.args) if v is not BOTTOM])
        if _encodes(node):
            return BATCH.on(Device.CPU)
        if isinstance(func, cst.Attribute) and (given := self._unknown_method(node, func)) is not None:
            return given
        spelt = word_of(func)
        if names_criterion(spelt):
            if begins(spelt, *MAKER_NAME):
                return MODULE
            return self._tensor_result([self._value(a.value) for a in node.args], node)
        if self._is_made_to_learn(node):
            return Value(Kind.OPTIMIZER, origin=node)
        for arg in node.args[:_WRAPPED]:
            # An unknown wrapper around a loader (a progress bar, a prefetcher) still yields batches.
            passed = self._value(arg.value)
            if passed.kind is Kind.LOADER and not arg.star:
                return passed
        return UNKNOWN

    def _unknown_method(self, node: cst.Call, method: cst.Attribute) -> Value | None:
        """Return what a method gives by its name, whatever it is asked of; None if that tells nothing."""
        attr, base = method.attr.value, self._value(method.value)
        if attr in results.TENSOR_ONLY_METHODS or asked_by_dimension(node, self.evaluator.tree):
            return self.method_call(TENSOR.on(base.device), attr, node)
        if attr in ("cuda", "to") and base.kind is Kind.OBJECT and runs_elsewhere(base.cls or ""):
            return base  # sent to a device, it is what it was
        if attr in results.MOVES_TO_ACCELERATOR or (attr == "to" and node.args):
            device = Device.ACCELERATOR if attr != "to" else self.device_argument(node)
            stands_in_graph = base.kind is Kind.UNKNOWN and not isinstance(method.value, cst.Name)
            masks = stands_in_graph and last_name(method.value) in results.MASKS_OF_NODES
            if masks and device is Device.ACCELERATOR:
                return Value(Kind.TENSOR, device=device, dtype="torch.bool")
            return UNKNOWN._replace(device=device)
        if attr == "cpu" and not node.args:
            return UNKNOWN._replace(device=Device.CPU)
        if attr == "eval" and not node.args:
            # Nothing but a module is put into a mode without saying more.
            return MODULE.on(base.device)
        if attr in _LOOKING_UP and len(node.args) == 2:
            chosen = chosen_device(self._value(node.args[1].value))
            if chosen is not None:
                return chosen
        if attr in ("item", "__len__", "dim", "numel", "nelement"):
            return NUMBER
        if attr == "numpy":
            return NDARRAY
        if attr in ("format", "join", "strftime", "lower", "upper", "strip"):
            return STRING
        if attr in ("parameters", "named_parameters"):
            return self._parameters(MODULE, attr)
        if base.kind is Kind.UNKNOWN and attr in results.TENSOR_METHODS:
            return unknown_of((base,))
        return None

    def operate(self, left: Value, right: Value, node: cst.CSTNode | None = None) -> Value:
        """Return the result of an arithmetic operator."""
        if left is BOTTOM or right is BOTTOM:
            return right if left is BOTTOM else left
        kinds = {left.kind, right.kind}
        if Kind.TENSOR in kinds or (Kind.BATCH in kinds and _is_of_tensors(kinds, (left, right), node)):
            result = self.tensor(left, right, node=node)
            # ``mask * mask`` is an older way to write ``mask & mask``.
            logical = isinstance(node, cst.BinaryOperation) and isinstance(
                node.operator, (cst.BitAnd, cst.BitOr, cst.BitXor, cst.Multiply, cst.Add)
            )
            masks = logical and all(v.dtype == "torch.bool" for v in (left, right))
            if Kind.TENSOR not in kinds and any(v.part for v in (left, right)):
                # The input of a forward may as well be a number; arithmetic does not tell.
                return result._replace(kind=Kind.BATCH, part=True)
            if masks:
                return result._replace(dtype="torch.bool", graph=Graph.DETACHED)
            if isinstance(node, cst.Name) and left.kind is Kind.TENSOR:
                return result._replace(dtype=left.dtype)  # in place
            dtype = tensordtypes.of_operation((left, right), division=_divides(node))
            return result._replace(dtype=dtype)
        if Kind.NDARRAY in kinds:
            dtype = dtypes.of_operation(left, right, division=_divides(node))
            made = NDARRAY.kept_in(Memory.PAGEABLE)
            return made if dtype is None else made._replace(dtype=dtype, part=left.part or right.part)
        if Kind.STRING in kinds:
            # ``path / "name"`` is no string; ``"%d" % x`` and ``"a" + x`` are.
            joined = isinstance(node, cst.BinaryOperation) and isinstance(
                node.operator, (cst.Add, cst.Modulo)
            )
            augmented = isinstance(node, cst.Name)
            return STRING if joined or augmented or kinds <= {Kind.STRING, Kind.NUMBER} else UNKNOWN
        if kinds <= {Kind.NUMBER, Kind.BOOL}:
            return NUMBER
        if left.kind is Kind.LIST and left.elements and left.elements[0].kind is Kind.NONE:
            return Value(Kind.LIST, item=NONE)  # ``[None] * n``, whatever counts
        if kinds & {Kind.LIST, Kind.TUPLE} and Kind.UNKNOWN not in kinds:
            items = [i for i in (item_of(v) for v in (left, right)) if i is not None]
            kind = Kind.LIST if Kind.LIST in kinds else Kind.TUPLE
            return Value(kind, item=join(items) if items else None)
        if Kind.SHAPE in kinds:
            return SHAPE
        return unknown_of((left, right))

    def tensor(self, *operands: Value, node: cst.CSTNode | None = None) -> Value:
        """Return a tensor computed from these operands."""
        tensors = [v for v in operands if v.tensorlike]
        graph = join_graphs(v.graph for v in tensors)
        if graph is not Graph.DETACHED and node is not None and self.evaluator.grad_off(node):
            graph = Graph.DETACHED
        if graph is Graph.DETACHED and any(v.kind is Kind.UNKNOWN for v in operands):
            if node is None or not self.evaluator.grad_off(node):
                graph = Graph.UNKNOWN
        # A number or an unknown operand does not move the result; a tensor of an unknown place might.
        devices = [v.device for v in tensors] or [unknown_of(operands).device]
        made = Value(Kind.TENSOR, device=join_devices(devices), graph=graph)
        return made.kept_in(_new_beside(tensors, Memory.PAGEABLE))

    def receiver(self, base: Value) -> str:
        """Return how ``api.results`` calls this kind of receiver."""
        if base.kind is Kind.BATCH:
            return "tensor"
        if base.kind is Kind.OBJECT and base.cls is not None:
            return _RECEIVER_OF_CLASS.get(base.cls, "")
        return str(base.kind.value)

    def method_call(self, base: Value, name: str, node: cst.Call, *, inherited: bool = False) -> Value:
        """Return the result of a method of a library object."""
        if base.kind in (Kind.TENSOR, Kind.BATCH):
            return self._tensor_method(base, name, node)
        if base.kind is Kind.MODULE:
            return self._module_method(base, name, node)
        if base.kind is Kind.STRING:
            return _STRING_METHODS.get(name, STRING)
        if base.kind is Kind.ACCELERATOR:
            return self._accelerator_method(name, node)
        if base.kind is Kind.NDARRAY and (made := self._array_method(base, name, node)) is not None:
            return made
        if base.kind is Kind.SCALER and name == "scale":
            return self._value(node.args[0].value) if node.args else UNKNOWN
        if base.kind in (Kind.LIST, Kind.DICT, Kind.TUPLE):
            return self._container_method(base, name, node)
        if base.kind is Kind.LOADER and name == "__iter__":
            return self.iterator(base._replace(definition=None) if inherited else base)
        fact = results.METHODS.get(self.receiver(base), {}).get(name)
        if fact is None:
            return self.unknown_call(node) if not inherited else UNKNOWN
        fact = self._chosen(node, fact, method=True)
        if fact == "same":
            return base
        if base.cls == "torch.distributions.Distribution" and fact == "tensor":
            graph = Graph.DETACHED if name in results.GRAPHLESS_DISTRIBUTION_METHODS else Graph.ATTACHED
            return Value(Kind.TENSOR, device=base.device, graph=graph)
        return self.from_fact(fact, (base,), node=node, name=name)

    def _tensor_method(self, base: Value, name: str, node: cst.Call) -> Value:
        moved = self._moved_to(base, name, node)
        if moved is not None:
            kind = base.kind
            if kind is Kind.BATCH and (base.part or name != "to"):
                kind = Kind.TENSOR
            dtype = self._cast_to(base, node) if name in ("to", "type", "type_as") else base.dtype
            # Whole numbers and truth values have no gradients.
            graph = Graph.DETACHED if dtype in tensordtypes.NOT_FLOATING else base.graph
            made = Value(kind, device=moved, graph=graph, dtype=dtype, origin=base.origin)
            return made.kept_in(self._memory_after(base, name, node)) if moved is Device.CPU else made
        if base.kind is Kind.BATCH and name in ("items", "values", "keys", "get", "pop"):
            return self._batch_method(base, name)
        fact = results.TENSOR_METHODS.get(name)
        if fact is None:
            if name in DISTRIBUTION_METHODS:
                # One of several results of a model: no tensor, but the distribution that it parametrizes.
                return Value(Kind.TENSOR, device=base.device, graph=base.graph)
            return UNKNOWN
        fact = self._chosen(node, fact, method=True)
        # Of what ``x.expand_as(y)`` is given, only the shape counts.
        others = [] if name in _SHAPED_LIKE else [self._value(a.value) for a in node.args]
        operands = [base, *(v for v in others if v.kind is Kind.TENSOR)]
        if name == "requires_grad_":
            return base.attached(Graph.ATTACHED)
        if name in results.NEW_FACTORIES:
            asked = keywords(node).get("device")
            device = base.device if asked is None else self.device(self._value(asked))
            made = Value(Kind.TENSOR, device=device, graph=Graph.DETACHED, origin=node)
            made = self._with_dtype(made, name, (base,), node)
            return made.kept_in(_new_beside((base,), self._allocated(node, name, ())))
        if fact == "same":
            return base
        graphless = name in results.GRAPHLESS_METHODS
        result = self.from_fact(fact, operands, node=node, graphless=graphless, name=name)
        result = self._with_dtype(result, name, [base, *others], node)
        if result.kind is Kind.NDARRAY and name == "numpy":
            result = result.kept_in(base.memory)
        elif result.kind is Kind.TENSOR and result.device is Device.CPU:
            in_place = name.endswith("_") and not name.endswith("__")
            result = result.kept_in(base.memory if in_place else _of_view(base, name))
        if base.dtype is not None and name in results.LAYOUT_METHODS and result.kind is Kind.TENSOR:
            return result._replace(dtype=base.dtype, origin=base.origin)
        if name == "type" and result.kind is Kind.TENSOR:
            return result._replace(dtype=self._cast_to(base, node))
        if fact == "ndarray" and base.dtype is not None:
            return result._replace(dtype=dtypes.of_tensor(base.dtype))
        return result

    def _memory_after(self, base: Value, name: str, node: cst.Call) -> Memory:
        """Return which memory a tensor of the host is in after ``pin_memory()``, ``cpu()`` or ``to(…)``."""
        if name == "pin_memory":
            return Memory.PINNED
        if base.device is Device.CPU:
            return _cast(base.memory) if name == "to" else base.memory
        ahead = keywords(node).get("non_blocking")
        if ahead is not None and self._value(ahead).constant is not False:
            return Memory.PINNED  # what is copied to the host without waiting goes to pinned memory
        return Memory.PAGEABLE if base.device is Device.ACCELERATOR else Memory.UNKNOWN

    @staticmethod
    def _batch_method(base: Value, name: str) -> Value:
        kind = Kind.TENSOR if base.device is Device.ACCELERATOR else Kind.BATCH
        item = base._replace(kind=kind, part=True)
        if name == "items":
            return Value(Kind.ITERATOR, item=Value(Kind.TUPLE, elements=(STRING, item)))
        if name == "keys":
            return Value(Kind.ITERATOR, item=STRING)
        return Value(Kind.ITERATOR, item=item) if name == "values" else item

    def _container_method(self, base: Value, name: str, node: cst.Call) -> Value:
        held = [value for _, value in base.fields]
        if held and base.item is not None and base.item.known:
            held.append(base.item)  # some of them may have no key that is known
        item = each_of(held) or item_of(base)
        if base.kind is Kind.DICT:
            if name == "items":
                pair = (STRING if item is not None else UNKNOWN, item or UNKNOWN)
                return Value(Kind.ITERATOR, item=Value(Kind.TUPLE, elements=pair))
            if name == "values":
                return Value(Kind.ITERATOR, item=item)
            if name in _LOOKING_UP:
                given = [self._value(argument.value) for argument in node.args]
                known = self.evaluator.held_under(base, node.args[0].value) if given else None
                found = known or base.item or UNKNOWN
                if len(given) != 2:
                    return found
                return join((found, given[1])) if found.known else chosen_device(given[1]) or UNKNOWN
            if name == "keys":
                return Value(Kind.ITERATOR)
            if name == "copy":
                return base
        elif name == "pop":
            return item or UNKNOWN
        elif name in ("index", "count"):
            return NUMBER
        elif name == "copy":
            return base
        return NONE if name in ("append", "extend", "insert", "update", "clear", "sort") else UNKNOWN

    def _accelerator_method(self, name: str, node: cst.Call) -> Value:
        args = [self._value(a.value) for a in node.args]
        if name in PREPARING:
            moved = tuple(
                a.on(Device.ACCELERATOR) if a.kind in (Kind.MODULE, Kind.LOADER) else a for a in args
            )
            return moved[0] if len(moved) == 1 else Value(Kind.TUPLE, elements=moved)
        if name in ("gather", "gather_for_metrics", "reduce", "pad_across_processes", "unwrap_model"):
            return args[0] if args else UNKNOWN
        return UNKNOWN

    def _moved_to(self, base: Value, name: str, node: cst.Call) -> Device | None:
        """Return where this method moves a tensor or module; None if it moves none."""
        if name == "to" or name == "to_empty":
            device = self.device_argument(node)
            return base.device if device is Device.UNKNOWN and self._only_dtype(node) else device
        fixed = results.METHOD_DEVICES.get(name)
        if fixed is not None:
            return Device.CPU if fixed == "cpu" else Device.ACCELERATOR
        if name in ("type", "type_as") and node.args:
            other = _typed_like(name, node.args[0].value)
            if other is not None:
                return self._value(other).device if self._value(other).tensorlike else None
            given = node.args[0].value
            targets = [str(self._value(given).constant), *self.evaluator.names.either_qualified(given)]
            if any(target is not None and target.startswith("torch.cuda.") for target in targets):
                return Device.ACCELERATOR
            if any(target in results.HOST_TYPES for target in targets) and not self._default_device_changed:
                return Device.CPU
        return None

    def _cast_to(self, base: Value, node: cst.Call) -> str | None:
        """Return the dtype of a tensor after ``.to(...)`` or ``.type(...)``."""
        dtype = base.dtype
        for position, arg in enumerate(node.args):
            if arg.star:
                return None
            word = arg.keyword.value if arg.keyword is not None else None
            if word in ("device", "non_blocking", "copy", "memory_format"):
                continue
            value = self._value(arg.value)
            if value.kind is Kind.TENSOR or value.kind is Kind.DTYPE or word in ("dtype", "other"):
                dtype = value.dtype if value.kind is Kind.TENSOR else tensordtypes.named(value)
            elif position == 0 and value.kind is Kind.CLASS:
                dtype = results.LEGACY_CONSTRUCTORS.get((value.cls or "").replace("torch.cuda.", "torch."))
            elif position == 0 and not (value.kind in _PLACES or value.device is not Device.UNKNOWN):
                dtype = base.dtype if base.dtype == "torch.bool" else None
        return dtype

    def _only_dtype(self, node: cst.Call) -> bool:
        return all(
            self._value(a.value).kind is Kind.DTYPE
            or (
                a.keyword is not None
                and a.keyword.value in ("dtype", "non_blocking", "copy", "memory_format")
            )
            for a in node.args
        )

    def device_argument(self, node: cst.Call) -> Device:
        """Return the device that a ``.to(...)`` call names; UNKNOWN if it names none or an unknown one."""
        for arg in node.args:
            if arg.star:
                continue
            if arg.keyword is None or arg.keyword.value in ("device", "other"):
                value = self._value(arg.value)
                if value.kind is Kind.DTYPE:
                    continue
                return self.device(value)
        return Device.UNKNOWN

    def device(self, value: Value) -> Device:
        """Return the place that a value names when it is used as a device."""
        if value.kind in (Kind.STRING, Kind.DEVICE, Kind.TENSOR, Kind.BATCH):
            return value.device
        if value.kind is Kind.NUMBER:
            return Device.ACCELERATOR
        return Device.UNKNOWN

    def instance_of(self, callee: Value, node: cst.Call | None) -> Value:
        """Return what a class makes, of the file or of a library; ``node`` is the call, if there is one."""
        if isinstance(callee.definition, cst.ClassDef):
            bar = self.evaluator.classes.info(callee.definition).inherits(*PROGRESS_BARS)
            if bar and node is not None and node.args and not node.args[0].star:
                return self.iterator(self._value(node.args[0].value))
            wrapped = self._wrapped_by(callee.definition, node) if node is not None else None
            if wrapped is not None:
                return wrapped
            value = self.evaluator.instance(callee.definition)
            return value._replace(origin=node) if node is not None else value
        if callee.cls is not None:
            kind = kind_of_class(callee.cls)
            if callee.cls in TENSOR_TYPES:
                return TENSOR_TYPES[callee.cls]
            if kind is Kind.TENSOR:
                return TENSOR
            if kind is not Kind.UNKNOWN:
                return Value(kind, cls=callee.cls, origin=node)
        return UNKNOWN

    def _wrapped_by(self, owner: cst.ClassDef, node: cst.Call) -> Value | None:
        """Return the model that an heir of ``DistributedDataParallel`` wraps, as that itself hands it on."""
        info = self.evaluator.classes.info(owner)
        if not info.inherits(*WRAPPERS_OF_MODELS) or info.method("forward") is not None:
            return None
        given = self._value(node.args[0].value) if node.args and not node.args[0].star else UNKNOWN
        return given if given is BOTTOM or given.kind is Kind.MODULE else None

    def _module_method(self, base: Value, name: str, node: cst.Call) -> Value:
        moved = self._moved_to(base, name, node)
        if moved is not None:
            return base.on(moved if moved is not Device.UNKNOWN else base.device)
        if name == "requires_grad_":
            frozen = bool(node.args) and self._value(node.args[0].value).constant is False
            return base._replace(graph=Graph.DETACHED if frozen else Graph.UNKNOWN)
        if name in ("parameters", "named_parameters", "buffers", "named_buffers"):
            return self._parameters(base, name)
        if name in ("modules", "children"):
            return Value(Kind.ITERATOR, item=MODULE.on(base.device))
        if name in ("named_modules", "named_children", "items"):
            pair = (STRING, base.item or MODULE.on(base.device))
            return Value(Kind.ITERATOR, item=Value(Kind.TUPLE, elements=pair))
        if name == "values":
            return Value(Kind.ITERATOR, item=base.item or MODULE.on(base.device))
        if name == "state_dict":
            return Value(Kind.DICT, item=Value(Kind.TENSOR, device=base.device, graph=Graph.DETACHED))
        if name == "forward":
            return self.module_call(base, node)
        if name == "generate":
            return Value(Kind.BATCH, device=base.device, graph=Graph.DETACHED)
        fact = results.METHODS["module"].get(name)
        if fact == "same":
            return base
        return self.from_fact(fact, (base,)) if fact is not None else self.unknown_call(node)

    @staticmethod
    def _parameters(base: Value, name: str) -> Value:
        leaf = name.endswith("parameters")
        graph = Graph.ATTACHED if leaf else Graph.DETACHED
        tensor = Value(Kind.TENSOR, device=base.device, graph=graph, leaf=leaf)
        if name.startswith("named"):
            return Value(
                Kind.PARAMETERS, item=Value(Kind.TUPLE, elements=(STRING, tensor)), origin=base.origin
            )
        return Value(Kind.PARAMETERS, item=tensor, origin=base.origin)

    def module_call(self, module: Value, node: cst.Call) -> Value:
        """Return the result of calling a module."""
        args = [self._value(a.value) for a in node.args]
        if isinstance(module.definition, cst.ClassDef):
            forward = self.evaluator.classes.info(module.definition).method("forward")
            if forward is not None:
                result = self.evaluator.returned(forward)
                if result is BOTTOM:
                    return result
                return self._placed(result, module, args, node)
        if module.cls is not None:
            fact = results.module_result(module.cls)
            if fact == "same":
                return args[0] if args else UNKNOWN
            if module.cls == "torch.nn.Sequential":
                fact = "tensor"
            if fact is not None and fact != "unknown":
                tensors = [self._tensor_result(args, node, module)]
                return self.from_fact(fact, tensors, node=node)
            if module.cls.startswith("torchvision.models."):
                return self._tensor_result(args, node, module)
        spelt = dotted_text(node.func) or ""
        if names_criterion(spelt.rpartition(".")[2]):
            return self._tensor_result(args, node)
        tensor = self._tensor_result(args, node, module)
        return tensor._replace(kind=Kind.BATCH)

    def _tensor_result(self, args: Sequence[Value], node: cst.CSTNode, module: Value | None = None) -> Value:
        """Return a tensor that a module computes from its arguments and its parameters."""
        tensors: list[Value] = []
        for value in args:
            if value.tensorlike:
                tensors.append(value)
            elif value.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
                item = item_of(value)
                if item is not None and item.tensorlike:
                    tensors.append(item)
        placed = module is not None and module.device is not Device.UNKNOWN
        device = module.device if module is not None and placed else join_devices(v.device for v in tensors)
        if module is not None and not placed and device is Device.CPU and module in (MODULE, UNKNOWN):
            # A model of which nothing is known may move its input by itself.
            device = Device.UNKNOWN
        criterion = (module.cls or "") if module is not None else ""
        if criterion in results.NN_LOSSES and _beside_host_target(criterion, args):
            device = Device.CPU
        graph = Graph.ATTACHED
        if module is None or (module.cls or "") in results.NN_LOSSES:
            known = [v.graph for v in tensors]
            # What is not known, such as what a scaler or a data set turns an output into, may have a graph.
            hidden = any(value.kind is Kind.UNKNOWN for value in args)
            if known and not hidden and all(g is Graph.DETACHED for g in known):
                graph = Graph.DETACHED
        if module is not None and module.graph is Graph.DETACHED:
            # Its parameters are frozen, unless a part of it is trained after all.
            graph = Graph.UNKNOWN
        if graph is not Graph.DETACHED and self.evaluator.grad_off(node):
            graph = Graph.DETACHED
        return Value(Kind.TENSOR, device=device, graph=graph)

    def _placed(self, result: Value, module: Value, args: Sequence[Value], node: cst.CSTNode) -> Value:
        """Return what a forward of this file returns, seen at the place where this file calls it."""
        device = result.device
        if result.tensorlike:
            outside = self._tensor_result(args, node, module)
            if device is Device.UNKNOWN:
                device = outside.device
            graph = Graph.DETACHED if self.evaluator.grad_off(node) else result.graph
            if graph is Graph.UNKNOWN:
                graph = outside.graph
            return result._replace(device=device, graph=graph)
        if result.elements is not None:
            return result._replace(
                elements=tuple(self._placed(e, module, args, node) for e in result.elements)
            )
        if result.item is not None and result.kind in (Kind.LIST, Kind.TUPLE, Kind.DICT):
            return result._replace(item=self._placed(result.item, module, args, node))
        if result.kind is Kind.UNKNOWN:
            outside = self._tensor_result(args, node, module)
            return outside._replace(kind=Kind.BATCH)
        return result


def _beside_host_target(criterion: str, args: Sequence[Value]) -> bool:
    """Return whether the target of a loss is in host memory, so that what it is compared with is there, too.

    Only the targets of CTC may be elsewhere.
    """
    if "ctc" in criterion.lower() or len(args) < 2 or args[0].device is not Device.UNKNOWN:
        return False
    return args[1].kind is Kind.TENSOR and args[1].device is Device.CPU


def _cast(memory: Memory) -> Memory:
    """Return which memory a tensor is in after a cast, or another step that copies it only if it has to."""
    return Memory.EITHER if memory is Memory.PINNED else memory


def _of_view(base: Value, name: str) -> Memory:
    """Return which memory the result of a function or method of a tensor in host memory is in."""
    if name in _VIEWS:
        return base.memory
    copies = name not in _RESHAPING and name not in _CASTS
    return _new_beside((base,), Memory.PAGEABLE) if copies else _cast(base.memory)


def _new_beside(operands: Sequence[Value], memory: Memory) -> Memory:
    """Return the memory that a new tensor is in, if that of what it is computed from is known,
    or is on the host.

    Where it is not, such as that of a batch, the operand may as well be on the device.
    """
    unknown = (v for v in operands if v.memory is Memory.UNKNOWN)
    if any(v.kind is not Kind.TENSOR or v.part or v.device is not Device.CPU for v in unknown):
        return Memory.UNKNOWN
    return memory


def _operands(values: Sequence[Value]) -> list[Value]:
    """Return what a function computes with: of a list of tensors, each of them."""
    operands: list[Value] = []
    for value in values:
        item = item_of(value) if value.kind in (Kind.LIST, Kind.TUPLE) else None
        operands += [value] if item is None else value.elements or [item]
    return operands


def _all_on_host(parts: Sequence[Value]) -> bool:
    return bool(parts) and all(part.device is Device.CPU for part in parts)


def _dtype_of_data(dotted: str, data: Value) -> str | None:
    """Return the dtype of a tensor made without one: that of the data that it is made of or like."""
    if dotted in results.LEGACY_CONSTRUCTORS:
        return results.LEGACY_CONSTRUCTORS[dotted]
    if dotted in ("torch.randint", "torch.randperm"):
        return "torch.int64"
    if data.kind is Kind.TENSOR:
        return data.dtype if dotted in results.LIKE_FACTORIES | _OF_DATA else None
    if data.kind is not Kind.NDARRAY or dotted not in _OF_DATA:
        return None
    # Of what may be a scalar, ``from_numpy`` makes no tensor at all.
    return dtypes.for_tensor(data.dtype) if dotted == "torch.from_numpy" or not data.part else None


def _divides(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide)


def _is_of_tensors(kinds: Set[Kind], operands: Iterable[Value], node: cst.CSTNode | None) -> bool:
    """Return whether a batch is a tensor, by what is computed of it: lists can be added and multiplied."""
    if kinds <= {Kind.BATCH, Kind.NUMBER}:
        return True
    if not kinds <= {Kind.BATCH, Kind.UNKNOWN}:
        return False
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _OF_TENSORS):
        return True
    return any(each.kind is Kind.UNKNOWN and each.device is Device.ACCELERATOR for each in operands)


_OF_TENSORS = (cst.Subtract, cst.Divide, cst.MatrixMultiply, cst.Power)


def _differentiates_twice(call: cst.Call) -> bool:
    """Return whether gradients are asked for that have a graph of their own."""
    asked = keywords(call).get("create_graph")
    return asked is not None and not (isinstance(asked, cst.Name) and asked.value == "False")


def _encodes(call: cst.Call) -> bool:
    """Return whether data is made tensors, in host memory: ``tokenizer(texts, return_tensors="pt")``."""
    given = keywords(call)
    wanted = given.get("return_tensors")
    pt = isinstance(wanted, cst.SimpleString) and wanted.raw_value == "pt"
    return pt and "device" not in given

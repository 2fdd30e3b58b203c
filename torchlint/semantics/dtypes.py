"""Which dtype the arrays of NumPy have, by the calls and operators that make them.

Dtypes go by NumPy's names here (``float64``). Nothing is said of what depends on the data: None. All of it
was compared with NumPy 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchlint.semantics.api.families import listed
from torchlint.semantics.values import MISSING, Kind, Value, item_of

DOUBLE_MAKERS = listed(
    "numpy.", "empty eye fromfile hamming hanning identity linspace loadtxt logspace ones zeros"
)
"""Functions whose arrays are of double precision unless another dtype is asked for."""

DTYPE_SECOND = listed("numpy.", "array asarray ascontiguousarray empty frombuffer identity ones zeros")
"""Functions that take the dtype as their second argument."""

DRAWS: Mapping[str, int] = {
    **dict.fromkeys(listed("numpy.random.", "random random_sample standard_normal"), 0),
    **dict.fromkeys(listed("numpy.random.", "choice exponential poisson"), 1),
    **dict.fromkeys(listed("numpy.random.", "beta binomial gamma laplace normal randint uniform"), 2),
}
"""Functions that draw numbers: one by default, an array if they are asked for a size, which is this
argument."""

OTHER_DRAWS = listed("numpy.random.", "binomial choice poisson randint")
"""Those that do not draw numbers of double precision."""

# Functions whose arrays have the dtype of what they are given first: an array, a list of arrays or numbers.
_KEEPING = listed(
    "numpy.",
    """
    array asarray ascontiguousarray asfortranarray atleast_1d atleast_2d atleast_3d broadcast_to column_stack
    concatenate copy delete diag diff dstack expand_dims flip fliplr flipud hstack insert moveaxis pad
    random.permutation ravel repeat reshape resize roll rollaxis rot90 sort squeeze stack swapaxes tile
    transpose tril triu vstack empty_like ones_like zeros_like full_like nan_to_num
    """,
)
# Functions of each element that give floating-point numbers, of double precision for integers ...
_FLOATING = listed(
    "numpy.",
    "arccos arcsin arctan cos cosh exp expm1 log log10 log1p log2 sin sinh sqrt tan tanh",
)
# ... and those that promote what they are given.
_PROMOTING = listed("numpy.", "add clip maximum minimum mod multiply subtract")
_ROUNDING = listed("numpy.", "abs absolute ceil floor negative rint round square")

_ACCUMULATING = listed("numpy.", "cumprod cumsum outer power")

_KEEPING_METHODS = listed(
    "", "clip copy diagonal flatten ravel repeat reshape round squeeze swapaxes take transpose"
)
_AVERAGING_METHODS = frozenset({"mean", "std", "var"})
_CHOOSING_METHODS = frozenset({"max", "min"})

_DTYPES = {
    **{name: name for name in listed("", "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 bool")},
    "float": "float64",
    "double": "float64",
    "single": "float32",
    "half": "float16",
    "int": "int64",
    "int_": "int64",
    "long": "int64",
    "longlong": "int64",
    "intc": "int32",
    "short": "int16",
    "byte": "int8",
    "ubyte": "uint8",
    "bool_": "bool",
    "float_": "float64",
}
_OF_TENSORS = {
    "torch.float": "float32",
    "torch.double": "float64",
    "torch.half": "float16",
    "torch.long": "int64",
    "torch.int": "int32",
    "torch.short": "int16",
}
RANGES = {
    "bool": (0, 1),
    "uint8": (0, 2**8 - 1),
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
"""The numbers that each dtype of whole numbers can hold."""

FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})
"""The dtypes of floating-point numbers."""


def of_tensor(dtype: str | None) -> str | None:
    """Return what NumPy calls a dtype of torch."""
    name = _OF_TENSORS.get(dtype or "", (dtype or "").rpartition(".")[2])
    return name if name in RANGES or name in FLOATS else None


def for_tensor(dtype: str | None) -> str | None:
    """Return the dtype of torch for one of NumPy's."""
    return None if dtype is None else f"torch.{dtype}"


def named(value: Value) -> str | None:
    """Return the dtype that ``np.float32``, ``"float32"``, ``float`` or ``torch.float32`` stands for."""
    if isinstance(value.constant, str):
        return _DTYPES.get(value.constant)
    name = value.cls or ""
    if value.kind is Kind.DTYPE:
        return of_tensor(name)
    return _DTYPES.get(name.rpartition(".")[2]) if name.startswith(("numpy.", "builtins.")) else None


def of_call(dotted: str, given: Sequence[Value], keywords: Mapping[str, Value]) -> str | None:
    """Return the dtype of the array that a function of NumPy returns, where the arguments show it.

    Args:
        dotted: the function.
        given: its positional arguments.
        keywords: its other arguments by name.
    """
    asked = keywords.get("dtype")
    if asked is None and dotted in DTYPE_SECOND and len(given) > 1:
        asked = given[1]
    if asked is not None and asked.kind is not Kind.NONE:
        return named(asked)
    if dotted in DOUBLE_MAKERS:
        return "float64"
    if dotted in ("numpy.random.rand", "numpy.random.randn"):
        return "float64" if given else None
    if dotted in DRAWS:
        sized = "size" in keywords or len(given) > DRAWS[dotted]
        if dotted in OTHER_DRAWS:
            return "int64" if sized and dotted != "numpy.random.choice" else None
        return "float64" if sized else None
    if dotted == "numpy.arange":
        return _of_numbers(given)
    if not given:
        return None
    first = given[0]
    if dotted == "numpy.append":
        doubles = any(v.kind is Kind.NDARRAY and v.dtype == "float64" for v in given[:2])
        return "float64" if doubles and all(v.known for v in given[:2]) else None
    if dotted in _KEEPING:
        return _of_data(first)
    if dotted in _FLOATING:
        return (
            first.dtype if first.dtype in FLOATS else "float64" if first.dtype in ("int32", "int64") else None
        )
    if dotted in _ROUNDING:
        return first.dtype
    if dotted in _ACCUMULATING:
        return first.dtype if first.dtype in FLOATS else None
    if dotted in _PROMOTING:
        dtype = first.dtype
        for other in given[1:]:
            dtype = of_operation(_array(first, dtype), other)
        return dtype
    return None


def _array(value: Value, dtype: str | None) -> Value:
    return Value(value.kind, dtype=dtype, constant=value.constant)


def _of_data(data: Value) -> str | None:
    """Return the dtype of ``np.array(data)``."""
    if data.kind is Kind.NDARRAY:
        return data.dtype
    if data.kind is Kind.TENSOR:
        return of_tensor(data.dtype)
    if data.kind not in (Kind.LIST, Kind.TUPLE):
        return None
    if data.elements is not None and all(v.kind in (Kind.NUMBER, Kind.BOOL) for v in data.elements):
        return _of_numbers(data.elements)
    if data.elements is not None and all(v.kind in (Kind.LIST, Kind.TUPLE) for v in data.elements):
        rows = {_of_data(row) for row in data.elements}
        return "float64" if rows == {"float64"} else None
    item = item_of(data)
    return _of_data(item) if item is not None and item.kind is not Kind.NUMBER else None


def _of_numbers(numbers: Sequence[Value]) -> str | None:
    """Return the dtype of an array of numbers, one of which is certainly a float of Python."""
    if not all(v.kind in (Kind.NUMBER, Kind.BOOL) for v in numbers):
        return None
    return "float64" if any(isinstance(v.constant, float) for v in numbers) else None


def of_operation(left: Value, right: Value, *, division: bool = False) -> str | None:
    """Return the dtype of an operation of arithmetic, of which at least one side is an array."""
    sides = (left, right)
    arrays = [v for v in sides if v.kind is Kind.NDARRAY]
    others = [v for v in sides if v.kind is not Kind.NDARRAY]
    dtypes = [v.dtype for v in arrays]
    if any(v.kind not in (Kind.NUMBER, Kind.BOOL, Kind.NDARRAY, Kind.SHAPE) for v in sides):
        return None
    if "float64" in dtypes:
        return "float64"
    if None in dtypes or not dtypes:
        return None
    if all(dtype in RANGES for dtype in dtypes):
        fractional = division or any(isinstance(v.constant, float) for v in others)
        if fractional:
            return "float64"
        certain = all(v.constant is not MISSING for v in others)
        return dtypes[0] if len(set(dtypes)) == 1 and certain else None
    if len(arrays) == 1:
        return dtypes[0]  # a number of Python takes the dtype of the array
    return dtypes[0] if len(set(dtypes)) == 1 else None


def of_method(array: Value, name: str, given: Sequence[Value]) -> str | None:
    """Return the dtype of what a method of an array returns."""
    if name == "astype":
        return named(given[0]) if given else None
    if name == "argsort":
        return "int64"
    if name in _KEEPING_METHODS or name in _CHOOSING_METHODS:
        return array.dtype
    if name in _AVERAGING_METHODS:
        return array.dtype if array.dtype in FLOATS else "float64" if array.dtype in RANGES else None
    return None


def reduces(name: str) -> bool:
    """Return whether a method of an array may return a scalar."""
    return name in _AVERAGING_METHODS | _CHOOSING_METHODS

"""Which dtype tensors have, by the functions, methods and operators that make them.

Dtypes go by torch's names (``torch.int64``). Nothing is said of what depends on the data: None. All of it
was compared with torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from torchlint.semantics.api.families import listed
from torchlint.semantics.api.results import GRAPHLESS_ELEMENTS, LAYOUT_METHODS
from torchlint.semantics.values import MISSING, Kind, Value

DEFAULT: Final = "torch.get_default_dtype()"
"""The dtype of floating-point numbers for which none is asked; ``torch.set_default_dtype`` changes it."""

FLOATING: Final = listed("torch.", "float16 bfloat16 float32 float64") | {DEFAULT}
"""The dtypes of floating-point numbers."""

NARROW: Final = listed("torch.", "uint8 int8 uint16 int16 uint32 int32")
"""The dtypes of whole numbers that overflow early."""

WHOLE: Final = NARROW | listed("torch.", "uint64 int64")
"""The dtypes of whole numbers."""

NOT_FLOATING: Final = WHOLE | {"torch.bool"}
"""The dtypes of numbers that have no gradient."""

_ALIASES: Final = {
    "torch.half": "torch.float16",
    "torch.float": "torch.float32",
    "torch.double": "torch.float64",
    "torch.short": "torch.int16",
    "torch.int": "torch.int32",
    "torch.long": "torch.int64",
    "builtins.bool": "torch.bool",
    "builtins.int": "torch.int64",
    "builtins.float": "torch.float64",
}

# Factories of floating-point numbers, whatever they are given ...
_FLOATS: Final = listed(
    "torch.",
    """
    bartlett_window blackman_window empty eye hamming_window hann_window kaiser_window linspace logspace
    ones rand randn zeros fft.fftfreq fft.rfftfreq
    """,
)
# ... and of whole ones.
_INTEGERS: Final = listed("torch.", "randint randperm tril_indices triu_indices")

_OF_NUMBERS: Final = listed("torch.", "arange range full scalar_tensor tensor as_tensor asarray")

# Functions and methods by name. The result has the dtype of the operand ...
_KEEPING: Final = LAYOUT_METHODS | listed(
    "",
    """
    abs absolute amax amin ceil cummax cummin diag diag_embed diagonal diff fliplr flipud floor index_add
    index_copy index_fill kthvalue masked_fill max median min mode moveaxis msort nan_to_num neg negative
    positive relu roll rot90 round scatter scatter_add sgn sign sort square take_along_dim topk tril triu
    trunc unfold unique broadcast_to atleast_1d atleast_2d atleast_3d chunk split tensor_split unbind
    new_empty new_full new_ones new_tensor new_zeros cat concat concatenate stack hstack vstack dstack pad
    """,
)
# ... of all operands, promoted ...
_PROMOTING: Final = listed(
    "",
    """
    add clamp clamp_max clamp_min clip fmax fmin fmod maximum minimum mul multiply pow remainder sub subtract
    """,
)
# ... the same, but 64 bits of whole numbers ...
_SUMMING: Final = listed("", "cumprod cumsum nansum prod sum trace")
# ... or of floating-point numbers in any case.
_FLOATING_RESULT: Final = listed(
    "",
    """
    acos acosh asin asinh atan atanh cos cosh deg2rad digamma div divide erf erfc erfinv exp exp2 expm1 lgamma
    log log10 log1p log2 logit rad2deg reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh true_divide
    """,
)
# These take nothing but floating-point numbers.
_OF_FLOATS: Final = listed(
    "",
    """
    dropout elu gelu hardsigmoid hardswish leaky_relu log_softmax logsigmoid mean mish silu softmax softplus
    std var
    """,
)
_INDICES: Final = listed("", "bincount bucketize one_hot searchsorted")

# Under autocast some functions compute with more digits than these have.
_HALVES: Final = listed("torch.", "float16 bfloat16")


def named(value: Value) -> str | None:
    """Return the dtype that ``torch.long``, ``torch.int64`` or ``int`` stands for."""
    return _ALIASES.get(value.cls or "", value.cls if value.kind is Kind.DTYPE else None)


def of_factory(dotted: str, given: Sequence[Value], keywords: Mapping[str, Value]) -> str | None:
    """Return the dtype of what a factory makes that is asked for none, and given no tensor or array."""
    if dotted in _FLOATS:
        return DEFAULT
    if dotted in _INTEGERS:
        return "torch.int64"
    if dotted not in _OF_NUMBERS:
        return None
    if dotted == "torch.full":
        filled = keywords.get("fill_value") or (given[1] if len(given) > 1 else None)
        return None if filled is None else _of_numbers([filled])
    if dotted in ("torch.arange", "torch.range"):
        bounds = [*given, *(keywords[name] for name in ("start", "end", "step") if name in keywords)]
        found = _of_numbers(bounds)
        return DEFAULT if found is not None and dotted == "torch.range" else found
    return _of_numbers(given[:1])


def _of_numbers(numbers: Sequence[Value]) -> str | None:
    """Return the dtype of a tensor of some numbers, or of lists of them."""
    flat: list[Value] = []
    waiting = list(numbers)
    while waiting:
        value = waiting.pop()
        if value.kind in (Kind.LIST, Kind.TUPLE) and value.elements:
            waiting += value.elements
        else:
            flat.append(value)
    constants = [value.constant for value in flat]
    if not flat or any(value.kind not in (Kind.NUMBER, Kind.BOOL) for value in flat):
        return None
    if any(isinstance(constant, float) for constant in constants):
        return DEFAULT
    if all(value.kind is Kind.BOOL or isinstance(value.constant, bool) for value in flat):
        return "torch.bool"
    return "torch.int64" if all(isinstance(constant, int) for constant in constants) else None


def of_operation(operands: Sequence[Value], *, division: bool = False) -> str | None:
    """Return the dtype to which tensors and numbers are promoted by an operation of arithmetic."""
    tensors = [value.dtype for value in operands if value.tensorlike]
    numbers = [value for value in operands if not value.tensorlike]
    if None in tensors or not tensors:
        return None
    if any(value.kind not in (Kind.NUMBER, Kind.BOOL) for value in numbers):
        return None
    floating = {dtype for dtype in tensors if dtype in FLOATING}
    if floating:
        return floating.pop() if len(floating) == 1 else None
    if division or any(isinstance(value.constant, float) for value in numbers):
        return DEFAULT
    if any(value.kind is Kind.NUMBER and value.constant is MISSING for value in numbers):
        return None
    whole = {dtype for dtype in tensors if dtype in WHOLE}
    if not whole:
        counted = any(not isinstance(value.constant, bool) and value.kind is Kind.NUMBER for value in numbers)
        return "torch.int64" if counted else "torch.bool"
    return whole.pop() if len(whole) == 1 else None


def of_call(name: str, operands: Sequence[Value]) -> str | None:
    """Return the dtype of what a function or method returns, of several tensors that of the first one.

    Args:
        name: the last word of its name.
        operands: what it is given, the receiver of a method first.
    """
    tensors = [value for value in operands if value.tensorlike]
    if name in _INDICES:
        return "torch.int64"
    if name == "where":
        condition, chosen = operands[:1], operands[1:]
        if not any(value.tensorlike for value in chosen):
            return _of_numbers(chosen)
        masked = bool(condition) and condition[0].dtype == "torch.bool"
        return of_operation(chosen) if masked and len(chosen) == 2 else None
    if not tensors:
        return None
    first = tensors[0].dtype
    if name.endswith("_") and not name.endswith("__"):
        return first  # the tensor itself
    if name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack"):
        return of_operation(tensors)
    if name in _KEEPING:
        return first
    if name in _PROMOTING:
        return of_operation(operands)
    if name in _SUMMING:
        return "torch.int64" if first in NOT_FLOATING else first
    if name in _FLOATING_RESULT or name in _OF_FLOATS:
        if name in ("div", "divide", "true_divide"):
            return of_operation(operands, division=True)
        return None if first in _HALVES else DEFAULT if first in NOT_FLOATING else first
    return None


def keeps(name: str) -> bool:
    """Return whether a function or method of this name leaves whole numbers whole, and others as they are."""
    return name in _KEEPING or name in _SUMMING


def of_element(name: str, index: int) -> str | None:
    """Return the dtype of one of the tensors that a function returns, if it is always the same."""
    return "torch.int64" if name != "frexp" and index in GRAPHLESS_ELEMENTS.get(name, ()) else None

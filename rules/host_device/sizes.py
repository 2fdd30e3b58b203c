"""How large tensors in host memory are, as far as the program shows: what decides whether a copy waits.

The driver stages small copies from pageable memory in a buffer of its own, without a wait. CUDA promises it
up to 64 KB; on an H200 with CUDA 13 the host went on for 1 MB and waited for 4 MB (``benchmarks/waits.py``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.sources import Path, Source, Through, onward, traced
from torchlint.semantics.tensordtypes import DEFAULT
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_STAGED = 1 << 20
"""Bytes that were seen to be staged."""
_LARGEST_ITEM = 8
_ITEM_SIZES = {
    **dict.fromkeys(("bool", "uint8", "int8"), 1),
    **dict.fromkeys(("float16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("float32", "int32", DEFAULT.removeprefix("torch.")), 4),
}
_OF_SIZES = frozenset({"zeros", "ones", "empty", "rand", "randn", "full"})
_JOINING = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack"})
_ALIKE = frozenset(
    {"from_numpy", "numpy", "as_tensor", "asarray", "contiguous", "view", "reshape", "flatten", "unsqueeze"}
    | {
        "squeeze",
        "pin_memory",
        "clone",
        "detach",
        "copy_",
        "t",
        "transpose",
        "permute",
        "T",
        "fill_",
        "zero_",
    }
)
_UNKNOWN = -1
_MOST_DIMENSIONS = 64
"""A tensor of a shape has no more numbers than torch lets a tensor have dimensions."""


def exceeds_staging(module: Module, source: cst.BaseExpression) -> bool | None:
    """Return whether a tensor in host memory is larger than what the driver takes over without a wait.

    None where the program does not show the size.
    """
    size = _known(module, source)
    return None if size is None else size > _STAGED


def holds_nothing(module: Module, source: cst.BaseExpression) -> bool:
    """Return whether a tensor certainly has no elements, so that nothing is copied."""
    return _known(module, source) == 0


@traced(Through.ITEMS | Through.OPERANDS | Through.RETURNS | Through.PARAMETERS)
def of_data(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a size is read from a tensor, as that of a batch is."""
    match node:
        case cst.Attribute(value=owner, attr=cst.Name("shape")):
            pass
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("size" | "numel"))):
            pass
        case cst.Call(func=cst.Name("len"), args=[cst.Arg(value=cst.Name() as owner)]):
            pass
        case _:
            return None
    return module.value(owner).kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN) or None


@traced(Through.RETURNS | Through.PARAMETERS)
def _bytes(module: Module, node: cst.CSTNode, path: Path) -> int | list[Source] | None:
    """Return at most how many bytes a tensor or array takes up."""
    if path:
        return None
    match node:
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=first), *_]):
            stop = (
                module.value(first.upper).constant if isinstance(first, cst.Slice) and first.upper else None
            )
            made = module.value(owner)
            if isinstance(stop, int) and stop >= 0 and isinstance(made.origin, cst.Call):
                sizes = _sizes(module, made.origin)
                if sizes is not None and sizes:
                    return math.prod((min(stop, sizes[0]), *sizes[1:])) * _item(module, owner)
            return onward(owner)
        case cst.Call():
            return _of_call(module, node)
    return None


def _of_call(module: Module, call: cst.Call) -> int | list[Source] | None:
    name = module.qualified(call.func)
    package, _, word = (name or "").rpartition(".")
    if name is None:
        if not isinstance(call.func, cst.Attribute) or not module.value(call.func.value).tensorlike:
            return None
        return onward(call.func.value) if call.func.attr.value in _ALIKE else _UNKNOWN
    if package not in ("torch", "numpy") or not call.args or any(arg.star for arg in call.args):
        return _UNKNOWN
    first = call.args[0].value
    given = module.value(first)
    if word in _JOINING:
        parts = [part.value for part in getattr(first, "elements", ())]
        sizes = [_known(module, part) for part in parts]
        return sum(size for size in sizes if size is not None) if sizes and None not in sizes else _UNKNOWN
    if given.kind in (Kind.TENSOR, Kind.NDARRAY) and word in _ALIKE:
        return onward(first)
    shape = _sizes(module, call)
    return _UNKNOWN if shape is None else math.prod(shape) * _item(module, call)


def _known(module: Module, node: cst.BaseExpression) -> int | None:
    ends = _bytes(module, node)
    found = [end for end in ends if end is not None]
    return None if not found or None in ends or _UNKNOWN in found else max(found)


def _sizes(module: Module, call: cst.Call) -> list[int] | None:
    """Return the sizes of what a factory makes, where they are constants."""
    word = (module.qualified(call.func) or "").rpartition(".")[2]
    sizes = [module.value(arg.value) for arg in call.args if arg.keyword is None]
    if word in ("tensor", "as_tensor", "asarray", "array"):
        items = sizes[0] if sizes else None
        if items is None or items.kind in (Kind.NUMBER, Kind.BOOL):
            return None if items is None else []
        if items.kind is Kind.SHAPE:
            return [_MOST_DIMENSIONS]
        flat = items.elements is not None and all(one.kind is Kind.NUMBER for one in items.elements)
        return [len(items.elements or ())] if flat else None
    if word not in _OF_SIZES and not (word in ("arange", "randperm") and len(sizes) == 1):
        return None
    sizes = sizes[:1] if word == "full" else sizes
    if len(sizes) == 1 and sizes[0].elements is not None:
        sizes = list(sizes[0].elements)
    numbers = [size.constant for size in sizes if isinstance(size.constant, int)]
    return numbers if len(numbers) == len(sizes) > 0 else None


def _item(module: Module, node: cst.BaseExpression) -> int:
    """Return at most how many bytes one of the numbers takes up."""
    value = module.value(node)
    if value.dtype is not None:
        return _ITEM_SIZES.get(value.dtype.removeprefix("torch."), _LARGEST_ITEM)
    return _LARGEST_ITEM

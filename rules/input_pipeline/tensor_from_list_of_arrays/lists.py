"""Tensors that are made of lists of arrays, one element at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import dtypes
from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS
from torchlint.semantics.arrays import Arrays, list_of_arrays, named_dtype
from torchlint.semantics.spellings import last_words

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# Their parameter for the data.
_FROM_DATA = {"torch.tensor": "data", "torch.as_tensor": "data", "torch.asarray": "obj"}
FROM_LISTS = last_words(_FROM_DATA) | last_words(LEGACY_CONSTRUCTORS) | {"Tensor"}
"""What the calls are named that may be a ``tensor_from_list``."""
# Arrays of the other byte order: only from a list of them is a tensor made.
_FOREIGN = re.compile(r"""["']>[iuf]\d""")


def tensor_from_list(module: Module, call: cst.Call) -> tuple[cst.BaseExpression, Arrays] | None:
    """Return the list of arrays that a call makes a tensor of, and what it holds; None for any other call."""
    name = module.qualified(call.func)
    if name is None:
        return None
    node: cst.BaseExpression | None = None
    if name in _FROM_DATA:
        for position, arg in enumerate(call.args):
            if not arg.star and (
                arg.keyword.value == _FROM_DATA[name] if arg.keyword is not None else position == 0
            ):
                node = arg.value
    elif _legacy_dtype(name) is not None and len(call.args) == 1:
        (arg,) = call.args
        node = arg.value if not arg.star and arg.keyword is None else None
    held = list_of_arrays(module, node) if node is not None else None
    return (node, held) if node is not None and held is not None else None


def _legacy_dtype(name: str) -> str | None:
    """Return the dtype of ``torch.FloatTensor`` and the like; "float" for that of ``torch.Tensor``."""
    if name == "torch.Tensor":
        return "float"
    return LEGACY_CONSTRUCTORS.get(name.replace("torch.cuda.", "torch."))


def same_through_one_array(module: Module, call: cst.Call, arrays: Arrays) -> bool:
    """Return whether a tensor made of a list of arrays is certainly the same
    if they become one array first.
    """
    name = module.qualified(call.func) or ""
    if name.startswith("torch.cuda.") or module.tree.matches(_FOREIGN):
        return False
    if name in _FROM_DATA:
        asked = module.argument(call, "dtype")
        if asked.unknown:
            return False
        if asked.node is None or asked.constant is None:
            return arrays.filled and arrays.alike
        dtype = named_dtype(module, asked.node)
    else:
        legacy = _legacy_dtype(name) or ""
        dtype = "float32" if legacy == "float" else dtypes.of_tensor(legacy)
    if dtype in dtypes.FLOATS or dtype == "bool":
        return all(one.numeric for one in arrays.items.values())
    if dtype not in dtypes.RANGES:
        return False
    lowest, highest = dtypes.RANGES[dtype]
    held = [dtypes.RANGES.get(one.dtype or "") for one in arrays.items.values()]
    return all(h is not None and lowest <= h[0] and h[1] <= highest for h in held)

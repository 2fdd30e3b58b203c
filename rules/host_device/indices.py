"""Indices that are copied to where the tensor is: lists of numbers, and tensors and arrays of the host.

``x[[2, 1, 0]]`` makes a tensor of the list in host memory and copies it to where ``x`` is. So does ``x[p]``
with a tensor of the host. The memory is pageable, so the host waits (benchmarks/results/syncs.json).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.arrays import array
from torchlint.semantics.dimensions import has_dimensions
from torchlint.semantics.sources import Through, onward, traced
from torchlint.semantics.values import Device, Kind

from .sending import in_host_memory, on_accelerator
from .stores import written_indices

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path, Source


def listed_indices(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """Return the list of numbers that a tensor on the device is indexed by, if there is one."""
    for index in _indices(node):
        if _is_list_of_numbers(module, index):
            return index if _takes_indices(module, node.value) else None
    return None


def slice_of(module: Module, indices: cst.BaseExpression) -> str | None:
    """Return the slice that picks what a written-out list of indices picks; None if there is none.

    ``-1:`` for ``[-1]``, ``0:3`` for ``[0, 1, 2]``, ``5:12:6`` for ``[5, 11]``.
    """
    items = module.value(indices).elements
    numbers = [item.constant for item in items or () if item is not None]
    if not isinstance(indices, (cst.List, cst.Tuple)) or len(numbers) != len(indices.elements):
        return None
    whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
    if not whole or len(whole) != len(numbers):
        return None
    first, last = whole[0], whole[-1]
    if len(whole) == 1:
        return "-1:" if first == -1 else f"{first}:{first + 1}"
    step = whole[1] - first
    if step < 1 or first < 0 or whole != list(range(first, last + 1, step)):
        return None
    return f"{first}:{last + 1}" + (f":{step}" if step > 1 else "")


def host_index(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """Return the tensor or array in host memory that a tensor on the device is indexed by,
    if there is one.
    """
    for index in _indices(node):
        value = module.value(index)
        # A tensor without dimensions is read, on the host, and nothing is copied.
        held = value.kind is Kind.TENSOR and value.device is Device.CPU and has_dimensions(module, index)
        if held or (value.kind is Kind.NDARRAY and array(module, index) is not None):
            return index if _takes_indices(module, node.value) else None
    return None


def _takes_indices(module: Module, owner: cst.BaseExpression) -> bool:
    """Return whether what has a list or an array for an index is a tensor on the device.

    What has been moved to an accelerator is no container that has other indices.
    """
    value = module.value(owner)
    if value.kind is Kind.UNKNOWN and value.device is Device.ACCELERATOR:
        return True
    return on_accelerator(module, owner)


def sent_before(module: Module, index: cst.BaseExpression) -> bool:
    """Return whether a variable has been an index before in the same function:
    what helps there helps here too.
    """
    bindings = module.bindings(index)
    if len(bindings) != 1:
        return False
    order, tree = module.tree.order, module.tree
    for use in module.uses(bindings[0]):
        if order[use] >= order[index] or module.function(use) is not module.function(index):
            continue
        subscript = next((outer for outer in tree.ancestors(use) if isinstance(outer, cst.Subscript)), None)
        if subscript is not None and use in (
            host_index(module, subscript),
            listed_indices(module, subscript),
        ):
            return True
    return False


def stored_tensor(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """Return the tensor in host memory that is assigned to a slice, or an item, of a tensor on the device."""
    target = module.tree.parent(node)
    statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
    if not isinstance(statement, cst.Assign) or not in_host_memory(module, statement.value):
        return None
    if any(module.value(index).kind not in (Kind.NUMBER, Kind.NONE) for index in _indices(node)):
        return None
    return statement.value if on_accelerator(module, node.value) else None


def is_mask(module: Module, index: cst.BaseExpression) -> bool:
    """Return whether an index in host memory is a mask, or, kept as an attribute, may be one."""
    value = module.value(index)
    if value.dtype is None:
        return isinstance(index, cst.Attribute)
    return value.dtype in ("torch.bool", "bool")


@traced(Through.OPERANDS)
def of_numbers(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a tensor of at most one element is computed by functions from literal numbers alone."""
    match node:
        case cst.Integer() | cst.Float():
            return not path
        case cst.List(elements=[cst.Element(value=only)]):
            return onward(only)
        case cst.Call(func=func, args=[cst.Arg(keyword=None, value=only)]):
            return (module.qualified(func) or "").startswith("torch.") and onward(only)
    return None


def _indices(node: cst.Subscript) -> Iterator[cst.BaseExpression]:
    return (index for index in written_indices(node) if index is not None)


def _is_list_of_numbers(module: Module, index: cst.BaseExpression) -> bool:
    """Return whether an index is a list of numbers that the program has written out,
    or an attribute holds.
    """
    if isinstance(index, cst.Name):
        lists = [binding.value for binding in module.bindings(index)]
        if any(isinstance(value, cst.List) and not value.elements for value in lists):
            return False  # What is appended one by one may be another list at each step.
    value = module.value(index)
    items = value.elements if value.elements is not None else (value.item,)
    return (
        # A tuple among others is a list: ``x[:, (0, 2)]``.
        (value.kind is Kind.LIST or isinstance(index, cst.Tuple))
        and bool(items)
        and all(item is not None and item.kind is Kind.NUMBER for item in items)
    )

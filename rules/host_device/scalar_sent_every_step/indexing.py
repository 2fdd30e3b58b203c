"""What indexing and choosing copy to the device: lists of indices, tensors of the host, and numbers.

``x[[2, 1, 0]]`` makes a tensor of the list in host memory and copies it to where ``x`` is. So does ``x[p]``
with a tensor of the host, and ``x[rows] = 1.0`` with the number, unless it fills a slice or what a mask
selects; ``torch.where`` copies a tensor that is made of a number. The memory is pageable, so the host waits.
All of it was measured (benchmarks/results/syncs.json).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dimensions import has_no_dimension, is_row
from torchlint.semantics.identifiers import imports
from torchlint.semantics.names import BindingKind
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.synchronisation import may_be_on_device
from torchlint.semantics.transfers import transferred
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_WHOLE = frozenset({"torch.int64", "torch.int32"})
_PICTURES = ("PIL", "torchvision.transforms")
# What counts or draws whole numbers; of other numbers no index is made.
_COUNTING = frozenset({"torch.arange", "torch.randint", "torch.randperm"})


def listed_indices(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """The list of numbers that a tensor on the device is indexed by, if there is one."""
    for index in _indices(node):
        if _is_list_of_numbers(module, index):
            return index if _on_accelerator(module, node.value) else None
    return None


def host_index(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """The tensor in host memory that a tensor on the device is indexed by, if there is one."""
    for index in _indices(node):
        value = module.value(index)
        # A tensor without dimensions is read, on the host, and nothing is copied.
        if value.kind is Kind.TENSOR and value.device is Device.CPU and is_row(module, index):
            return index if _on_accelerator(module, node.value) else None
    return None


def sent_by_assignment(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """The number in ``x[rows] = 1.0``, where ``rows`` are whole numbers on the device.

    Where an item without dimensions is assigned to (``row[0] = 1.0``), the number is sent as well.
    """
    target = module.tree.parent(node)
    statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
    if not isinstance(statement, cst.Assign):
        return None
    indices = list(_indices(node))
    if not any(_are_whole(module, index) for index in indices) and not _takes_item(module, node, indices):
        return None
    number = module.value(statement.value).kind in (Kind.NUMBER, Kind.BOOL)
    return statement.value if number and _on_accelerator(module, node.value) else None


def chosen_number(module: Module, call: cst.Call) -> bool:
    """Whether a number becomes a tensor of the host for ``torch.where(mask, x, torch.tensor(0.0))``."""
    argument = module.tree.parent(call)
    chooses = module.tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(chooses, cst.Call) or len(chooses.args) != 3 or argument is chooses.args[0]:
        return False
    if module.qualified(call.func) != "torch.tensor" or module.qualified(chooses.func) != "torch.where":
        return False
    number = bool(call.args) and module.value(call.args[0].value).kind in (Kind.NUMBER, Kind.BOOL)
    made = module.value(call).device if number else None
    return made is Device.CPU and _on_accelerator(module, chooses.args[0].value)


def _indices(node: cst.Subscript) -> Iterator[cst.BaseExpression]:
    return (element.slice.value for element in node.slice if isinstance(element.slice, cst.Index))


def _on_accelerator(module: Module, node: cst.BaseExpression) -> bool:
    """Whether an expression is a tensor that, as far as the file shows, is on an accelerator.

    Data is indexed in host memory and moved then: outside of modules the file has to show where a tensor is,
    and so it does beside transforms of pictures, which are modules as well.
    """
    if not may_be_on_device(module, node) or _moved_then(module, node):
        return False
    if module.value(node).device is Device.ACCELERATOR:
        return True
    return phase(module, node) is Phase.FORWARD and not imports(module, _PICTURES)


def _moved_then(module: Module, node: cst.BaseExpression) -> bool:
    """``data[rows].to(device)``: what is moved afterwards, was in host memory."""
    taken = module.tree.parent(node)
    while isinstance(taken, cst.Subscript):
        attribute = module.tree.parent(taken)
        call = module.tree.parent(attribute) if isinstance(attribute, cst.Attribute) else None
        if isinstance(call, cst.Call) and call.func is attribute:
            return transferred(module, call) is not None
        taken = attribute
    return False


def _is_list_of_numbers(module: Module, index: cst.BaseExpression) -> bool:
    match index:
        case cst.List():
            return bool(index.elements) and all(
                isinstance(element, cst.Element) and module.value(element.value).kind is Kind.NUMBER
                for element in index.elements
            )
        case cst.Name():
            bindings = module.bindings(index)
            return bool(bindings) and all(
                binding.kind is BindingKind.ASSIGN
                and not binding.path
                and isinstance(binding.value, cst.List)
                and _is_list_of_numbers(module, binding.value)
                for binding in bindings
            )
    return False


def _takes_item(module: Module, node: cst.Subscript, indices: list[cst.BaseExpression]) -> bool:
    """Whether one number is taken out of a tensor of one dimension."""
    single = len(node.slice) == 1 and len(indices) == 1
    return single and module.value(indices[0]).kind is Kind.NUMBER and is_row(module, node.value)


def _are_whole(module: Module, index: cst.BaseExpression) -> bool:
    """Whether an index is a tensor of whole numbers on the device, of one dimension at least, and no mask."""
    value = module.value(index)
    if not _on_accelerator(module, index):
        return False
    counted = isinstance(value.origin, cst.Call) and module.qualified(value.origin.func) in _COUNTING
    return (counted or value.dtype in _WHOLE) and has_no_dimension(module, index) is False

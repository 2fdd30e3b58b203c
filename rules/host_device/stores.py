"""Python numbers that are stored in tensors of the device, and how to fill them in on the device.

``x[i] = n`` makes a tensor of the number in host memory. A part with dimensions is filled, and nothing
waits. A single element is copied to, and what lists and indices of whole numbers select is written by way of
a tensor on the device: for both the host waits. All of it was measured (benchmarks/results/syncs.json).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import graded
from torchlint.semantics.dimensions import has_dimensions, has_no_dimension, rank
from torchlint.semantics.lexicon import Role, begins, denotes, ends
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Device, Kind, Value

from .sending import on_accelerator

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_WHOLE = frozenset({"torch.int64", "torch.int32", "torch.int16", "torch.int8", "torch.uint8"})
# What counts or draws whole numbers; of other numbers no index is made.
_COUNTING = frozenset({"torch.arange", "torch.randint", "torch.randperm"})
_NUMBERS = frozenset({Kind.NUMBER, Kind.BOOL})
_LARGEST = 127


@dataclass(frozen=True, slots=True)
class Store:
    """``target[…] = number``, for which the host waits.

    ``element``: one element is stored to, named by numbers only. ``selector`` is the only index beside whole
    dimensions, and ``dimension`` its place.
    """

    statement: cst.Assign
    number: cst.BaseExpression
    element: bool
    selector: cst.BaseExpression | None = None
    dimension: int = 0


def stored_number(module: Module, node: cst.Subscript) -> Store | None:
    """Return the store of a number in a tensor of the device that makes the host wait;
    None if there is none.
    """
    target = module.tree.parent(node)
    statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
    if not isinstance(statement, cst.Assign) or module.value(statement.value).kind not in _NUMBERS:
        return None
    indices = written_indices(node)
    if any(isinstance(index, cst.SimpleString) for index in indices):
        return None
    spread = next((at for at, index in enumerate(indices) if isinstance(index, cst.Ellipsis)), None)
    if spread is not None:
        indices[spread] = None
    given = [module.value(index) if index is not None else None for index in indices]
    if any(one is not None and one.dtype in ("torch.bool", "bool") for one in given):
        return None  # a mask
    pairs = [(i, v) for i, v in zip(indices, given, strict=True) if i is not None and v is not None]
    numbers = len(pairs) == len(given) and all(_is_number(index, value) for index, value in pairs)
    element = numbers and rank(module, node.value) == len(indices)
    if not element and not any(_selects(module, index, value) for index, value in pairs):
        return None
    if not on_accelerator(module, node.value):
        return None
    selectors = [(index, place) for place, index in enumerate(indices) if index is not None]
    whole = all(e.slice.__class__ is cst.Index or _is_whole(e.slice) for e in node.slice)
    selector, dimension = selectors[0] if len(selectors) == 1 and whole else (None, 0)
    if spread is not None and spread < dimension:
        dimension -= len(indices)
    return Store(statement, statement.value, element, selector, dimension)


def written_indices(node: cst.Subscript) -> list[cst.BaseExpression | None]:
    """Return what is written between the brackets, in a tuple or not; None for a slice."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Tuple(elements=elements)))]:
            return [element.value for element in elements]
    return [part.slice.value if isinstance(part.slice, cst.Index) else None for part in node.slice]


def _is_number(index: cst.BaseExpression, value: Value) -> bool:
    """Return whether an index is a number, going by its name where nothing else is known of it."""
    if value.kind is not Kind.UNKNOWN or value.device is not Device.UNKNOWN:
        return value.kind is Kind.NUMBER
    name = last_name(index)
    return denotes(name, Role.INDEX) or begins(name, Role.NUMBER)


def _is_whole(part: cst.BaseSlice) -> bool:
    return isinstance(part, cst.Slice) and part.lower is part.upper is part.step is None


def _selects(module: Module, index: cst.BaseExpression, value: Value) -> bool:
    """Return whether an index certainly is a list, or a tensor of whole numbers of one dimension at least."""
    if value.kind is Kind.LIST:
        # What a list holds that is filled elsewhere, may be open; tensors and slices in it are no numbers.
        items = value.elements if value.elements is not None else (value.item,)
        return all(item is None or item.kind in (Kind.NUMBER, Kind.UNKNOWN) for item in items)
    if value.kind is not Kind.TENSOR:
        return False
    if value.device is Device.CPU:
        # Of a mask in host memory the indices are computed there and copied as well.
        return has_dimensions(module, index)
    return has_no_dimension(module, index) is False and _counts(module, index, value)


def _counts(module: Module, index: cst.BaseExpression, value: Value) -> bool:
    """Return whether a tensor holds whole numbers, by its dtype, by what makes it, or by its name last."""
    if value.dtype is not None:
        return value.dtype in _WHOLE
    made = module.qualified(value.origin.func) if isinstance(value.origin, cst.Call) else None
    return made in _COUNTING or ends(last_name(index), Role.INDICES)


# --- filling it in on the device ----------------------------------------------------------------------------


def filled_in_place(module: Module, node: cst.Subscript, store: Store) -> Fix | None:
    """Return the fix that writes ``x[i].fill_(number)``, where one element is stored to."""
    statement = store.statement
    if not store.element or len(statement.targets) != 1:
        return None
    start, end = module.tree.span(node).end, module.tree.outer_span(store.number).end
    if "#" in module.tree.text[start:end] or module.tree.text[start:end].count("\n"):
        return None
    edits = (Edit(Span(start, end), f".fill_({module.source(store.number)})"),)
    constant = module.value(store.number).constant
    certain = isinstance(constant, (int, float)) and (abs(constant) <= _LARGEST or constant == float("-inf"))
    # What is selected by a list or a mask is a copy.
    numbers = (
        module.value(index).kind is Kind.NUMBER for index in written_indices(node) if index is not None
    )
    risk = None
    if not certain:
        risk = "a number that the dtype of the tensor does not hold, or a tensor in its place, fails here"
    elif not all(numbers):
        risk = "what a list or a mask selects is a copy, so that filling it changes nothing"
    return graded(module, "Fill on the device", edits, risk=risk)

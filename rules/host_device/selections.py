"""What becomes of a selection, by a mask or of the positions where a condition holds.

A sum, a count, and what is written back to where it was selected are the same without a selection. A mean, a
shape, indices and what is collected are not: there the selection is the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import ELEMENTWISE, MASKS_OF_NODES
from torchlint.semantics.dimensions import has_no_dimension, rank
from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.evidence import on_device
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.names import BindingKind
from torchlint.semantics.sharing import writes_to
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, is_target, sinks
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.spellings import is_none, last_name
from torchlint.semantics.synchronisation import mask_of
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

IGNORING = frozenset({"torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss"})
"""Losses that can be told which labels to leave out."""


class Fate(IdentityEnum):
    """What one use of a selection makes of it."""

    COUNTED = "how many there are"
    SUMMED = "a sum, to which what is not selected may add nothing; a loss that can leave it out"
    WRITTEN_BACK = "what is assigned by the same mask or positions"
    KEPT = "anything else"


def fates(module: Module, selection: cst.BaseExpression) -> frozenset[Fate]:
    """Return what uses make of a selection, up to the first that is `KEPT`;
    a target of stores is written back.
    """
    if is_target(module, selection):
        return frozenset({Fate.WRITTEN_BACK})
    found = set()
    masked = isinstance(selection, cst.Subscript)
    for fate in sinks(module, selection, _fate_of_values if masked else _fate):
        found.add(fate)
        if fate is Fate.KEPT:
            break
    return frozenset(found)


_COUNTING = frozenset({"numel", "nelement", "size", "shape", "builtins.len", "torch.numel"})
_SUMMING = frozenset({"sum", "nansum", "any", "count_nonzero"})
_GOING_ON = ELEMENTWISE | {
    *("bool", "contiguous", "detach", "double", "flatten", "float", "half", "int", "long", "reshape"),
    *("squeeze", "to", "type", "unbind", "unsqueeze", "view"),
}


def _fate_of_values(module: Module, use: Use) -> Verdict[Fate]:
    """Return the ``_fate`` of what a mask selects: what picks from another tensor is no place of the mask."""
    return Fate.KEPT if use.kind is UseKind.INDEX else _fate(module, use)


def _fate(module: Module, use: Use) -> Verdict[Fate]:
    match use.kind:
        case UseKind.ASSIGNED | UseKind.UNPACKED:
            return ONWARD
        case UseKind.ATTRIBUTE if use.name in _COUNTING:
            return Fate.COUNTED
        case UseKind.ATTRIBUTE | UseKind.ITEM | UseKind.OPERAND | UseKind.COMPARED:
            return Standing(use.by) if isinstance(use.by, cst.BaseExpression) else Fate.KEPT
        case UseKind.INDEX if isinstance(use.by, cst.Subscript):
            return Fate.WRITTEN_BACK if is_target(module, use.by) else Standing(use.by)
        case UseKind.STORED if isinstance(use.by, cst.Subscript):
            indices = [each.slice.value for each in use.by.slice if isinstance(each.slice, cst.Index)]
            selects = any(on_device(module, index) for index in indices)
            return Fate.WRITTEN_BACK if selects else Fate.KEPT
        case UseKind.METHOD:
            return Standing(use.call) if _goes_by_rows(module, use.call) else _called(use.call, use.name)
        case UseKind.ARGUMENT:
            qualified = module.qualified(use.call.func) or ""
            if qualified in IGNORING:
                return Fate.SUMMED
            if qualified in _COUNTING:
                return Fate.COUNTED
            if _goes_by_rows(module, use.call):
                return Standing(use.call)
            known = qualified.startswith("torch.") or _is_compared_with(module, use.call)
            return _called(use.call, last_name(use.call.func) if known else None)
        case UseKind.DISCARDED:
            return ()
    return Fate.KEPT


def _is_compared_with(module: Module, call: cst.Call) -> bool:
    """Return whether it is ``x.eq(…)``, element by element."""
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    return owner is not None and last_name(call.func) in ELEMENTWISE and module.value(owner).tensorlike


_BY_ROWS = frozenset({"argmax", "argmin", "log_softmax", "max", "mean", "min", "norm", "softmax"})


def _goes_by_rows(module: Module, call: cst.Call) -> bool:
    """Return whether a call makes something of each row by itself: ``logits.argmax(dim=1)``."""
    if last_name(call.func) not in _BY_ROWS:
        return False
    dim = module.argument(call, "dim").node
    number = module.value(dim).constant if dim is not None else None
    return isinstance(number, int) and not isinstance(number, bool) and number != 0


def _called(call: cst.Call, name: str | None) -> Verdict[Fate]:
    if name in _COUNTING:
        return Fate.COUNTED
    if name in _SUMMING:
        return Fate.SUMMED
    return Standing(call) if name in _GOING_ON else Fate.KEPT


# What makes the same pattern whenever it is given the same sizes, and what keeps a pattern one.
_PATTERNS = frozenset(
    f"torch.{name}" for name in ("arange", "eye", "full", "ones", "ones_like", "zeros", "zeros_like")
)
_OF_PATTERNS = frozenset({"torch.block_diag", "torch.logical_not", "torch.tril", "torch.triu"})
_KEEPING = frozenset(
    {"bool", "byte", "contiguous", "cuda", "expand", "flatten", "float", "long", "repeat", "reshape", "t"}
    | {"to", "transpose", "tril", "triu", "type", "unsqueeze", "view"}
)


def is_pattern(module: Module, mask: cst.BaseExpression) -> bool:
    """Return whether a mask depends on sizes alone, such as ``~torch.eye(n)``:
    it selects the same in every step.
    """
    return every(_is_pattern(module, mask))


def is_mask_of_nodes(module: Module, mask: cst.BaseExpression) -> bool:
    """Return whether a mask says which nodes of the only graph belong to a split: `data.train_mask`."""
    return module.mentions(*MASKS_OF_NODES) and every(_is_mask_of_nodes(module, mask))


@traced(Through.PARAMETERS | Through.OPERANDS | Through.ITEMS)
def _is_mask_of_nodes(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(name)):
            return name in MASKS_OF_NODES and _is_whole(module, owner)
        case cst.Subscript(
            value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]
        ):
            graph = owner.value if isinstance(owner, cst.Attribute) else owner
            return key.raw_value in MASKS_OF_NODES and _is_whole(module, graph)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if name in _KEEPING:
            return onward(owner, path=path)
        case cst.Call():
            return False
    return None


def _is_whole(module: Module, graph: cst.BaseExpression) -> bool:
    """Return whether it is no part of a graph that a loader draws."""
    if module.value(graph).kind is Kind.BATCH:
        return False
    looped = isinstance(graph, cst.Name) and any(
        each.kind is BindingKind.LOOP for each in module.bindings(graph)
    )
    return not looped


@traced(Through.OPERANDS)
def _is_pattern(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    match node:
        case cst.Integer() | cst.Float():
            return True
        case cst.Name():
            return None if not any(writes_to(module, each) for each in module.bindings(node)) else False
        case cst.Comparison(left=left, comparisons=others):
            return onward(left, *(each.comparator for each in others), path=path)
        case cst.Subscript(value=owner, slice=parts) if all(map(_is_fixed, parts)):
            return onward(owner, path=path)
        case cst.Call(func=func, args=args):
            name = module.qualified(func)
            if name in _PATTERNS:
                return True
            if name in _OF_PATTERNS:
                return onward(*(each.value for each in args), path=path)
            if name is None and isinstance(func, cst.Attribute) and func.attr.value in _KEEPING:
                return onward(func.value, path=path)
            return False
    return None


def _is_fixed(part: cst.SubscriptElement) -> bool:
    """Return whether an index is none that is computed: ``[:, None]``."""
    if isinstance(part.slice, cst.Slice):
        return part.slice.lower is part.slice.upper is part.slice.step is None
    index = part.slice.value if isinstance(part.slice, cst.Index) else part.slice
    return isinstance(index, (cst.Integer, cst.Ellipsis)) or is_none(index)


def looped_over(module: Module, use: Use) -> Verdict[bool]:
    """Return whether a use goes through the values one by one, on the host."""
    if use.kind is UseKind.ITERATED:
        return True
    return ONWARD if use.kind in (UseKind.ASSIGNED, UseKind.UNPACKED) else False


def computes_on_selection(module: Module, assigned: cst.BaseExpression) -> bool:
    """Return whether what is assigned is computed from as many elements
    as it has: ``y[mask] = encode(x[mask])``.

    What is not element by element could not be computed on all of the tensor, for ``torch.where`` to choose.
    Nor does that choose from what a function makes of tensors that were selected before.
    """
    parts = [*module.tree.descendants(assigned)]
    given = [
        binding.value
        for call in parts
        if isinstance(call, cst.Call)
        for arg in call.args
        for binding in module.bindings(arg.value)
        if not binding.path
    ]
    return any(_is_selection(module, value) for value in given) or any(
        _is_selection(module, part) and Fate.KEPT in fates(module, part)
        for part in parts
        if isinstance(part, cst.Subscript)
    )


def _is_selection(module: Module, node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Subscript) and mask_of(module, node) is not None


def selected_by_another(module: Module, target: cst.Subscript, assigned: cst.BaseExpression) -> bool:
    """Return whether what one mask selects goes where another one holds:
    ``kept = x[mask]``, ``y[other] = kept``.
    """
    if isinstance(assigned, cst.Name):
        bindings = module.bindings(assigned)
        given = bindings[0].value if len(bindings) == 1 and not bindings[0].path else None
    else:
        given = assigned
    if not isinstance(given, cst.Subscript):
        return False
    indices = [each.slice.value for each in given.slice if isinstance(each.slice, cst.Index)]
    gathers = any(module.value(each).kind in (Kind.TENSOR, Kind.BATCH, Kind.UNKNOWN) for each in indices)
    return gathers and _indices(module, given).isdisjoint(_indices(module, target))


def has_rows(module: Module, target: cst.Subscript, assigned: cst.BaseExpression) -> bool:
    """Return whether what is assigned through a mask has a row for each element that the mask selects.

    Not one value for all of them, nor what is computed from what the same mask selects, which could be
    computed for all of the tensor.
    """
    if isinstance(assigned, cst.Attribute) or rank(module, assigned) == 1:
        return False
    if has_no_dimension(module, assigned) is not False:
        return False
    bindings = module.bindings(assigned)
    given = [assigned, *(binding.value for binding in bindings if binding.value is not None)]
    masks = _indices(module, target)
    return not any(
        isinstance(part, cst.Subscript) and masks & _indices(module, part)
        for each in given
        for part in module.tree.descendants(each)
    )


def guards(module: Module, target: cst.Subscript, assigned: cst.BaseExpression) -> bool:
    """Return whether an assignment by a mask divides by what the mask selects,
    or takes its logarithm or root.

    ``torch.where`` would do so everywhere, and the gradient of what is infinite there is not a number.
    """
    if grad(module, assigned) is Grad.OFF:
        return False
    masks = _indices(module, target)

    def selected(node: cst.CSTNode) -> bool:
        return any(
            isinstance(part, cst.Subscript) and masks & _indices(module, part)
            for part in module.tree.descendants(node)
        )

    for part in module.tree.descendants(assigned):
        match part:
            case cst.BinaryOperation(operator=cst.Divide(), right=divisor) if selected(divisor):
                return True
            case cst.Call(func=func) if last_name(func) in _SINGULAR and selected(part):
                return True
    return False


def _indices(module: Module, node: cst.Subscript) -> set[str]:
    return {module.source(each.slice.value) for each in node.slice if isinstance(each.slice, cst.Index)}


_SINGULAR = frozenset({"acos", "asin", "div", "log", "log10", "log2", "pow", "reciprocal", "rsqrt", "sqrt"})

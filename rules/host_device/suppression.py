"""Non-maximum suppression written as a loop, which waits several times for each box that it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.synchronisation import conversion, shape_wait

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

SUPPRESSION = "Replace the loop with `torchvision.ops.nms(…)`"
"""What to do with a loop that `suppresses`."""

_COMPARING = frozenset({"lt", "le", "gt", "ge"})
_SELECTING = frozenset({"torch.nonzero", "torch.where", "torch.logical_not", "torch.logical_and"})
_OVERLAPS = frozenset({"torchvision.ops.box_iou", "torchvision.ops.boxes.box_iou"})


def suppression(module: Module, node: cst.CSTNode) -> cst.While | None:
    """Return the loop around a place that suppresses all but the best of boxes which overlap."""
    loops = (loop for loop in module.flow.loops(node) if isinstance(loop, cst.While))
    return next((loop for loop in loops if suppresses(module, loop)), None)


@remembered
def suppresses(module: Module, loop: cst.While) -> bool:
    """Return whether a loop takes one box after the other from a tensor until that is empty,
    and drops those that overlap with it.

    A loop that lowers scores, or averages boxes, does something else.
    """
    asked = module.tree.names_in(loop.test)
    drops = False
    for node in module.tree.descendants(loop.body):
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))], value=cst.Subscript() as rest):
                if name in asked and _taken_from(rest) == name and _takes_best(module, loop, name):
                    drops = drops or any(some(_by_overlap(module, part)) for part in _indices(rest))
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript())], value=value):
                if any(isinstance(part, cst.Multiply) for part in module.tree.descendants(value)):
                    return False
            case cst.AugAssign(operator=cst.MultiplyAssign()):
                return False
    return drops


@remembered
def first_wait(module: Module, loop: cst.While) -> cst.BaseExpression | None:
    """Return the first place at which each round of a loop waits for a number, or the size of a selection."""
    for line in loop.body.body:
        if isinstance(line, cst.BaseCompoundStatement):
            continue
        for node in module.tree.descendants(line):
            if isinstance(node, cst.Call) and conversion(module, node) is not None:
                return node
            if isinstance(node, (cst.Call, cst.Subscript)) and shape_wait(module, node):
                return node
    return None


def _takes_best(module: Module, loop: cst.While, name: str) -> bool:
    """Return whether a loop takes the first or the last element of a variable: ``order[0]``, ``order[-1]``.

    Sampling with rejection goes on with a part as well, and takes none before the others.
    """
    parts = (part for part in module.tree.descendants(loop.body) if isinstance(part, cst.Subscript))
    return any(
        isinstance(part.value, cst.Name)
        and part.value.value == name
        and isinstance(part.slice[0].slice, cst.Index)
        and module.value(part.slice[0].slice.value).constant in (0, -1)
        for part in parts
    )


def _taken_from(node: cst.BaseExpression) -> str | None:
    """Return the variable of which ``order[1:][mask]`` takes a part."""
    start = start_of(node, cst.Subscript)
    return start.value if isinstance(start, cst.Name) else None


def _indices(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """Return what ``order[1:][mask]`` is indexed with, slices aside."""
    found: list[cst.BaseExpression] = []
    while isinstance(node, cst.Subscript):
        found += [part.slice.value for part in node.slice if isinstance(part.slice, cst.Index)]
        node = node.value
    return found


@traced(Through.NOTHING)
def _by_overlap(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether an index selects by how an overlap compares with a threshold."""
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(comparator=right)]):
            return some(_is_overlap(module, left)) or some(_is_overlap(module, right))
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if name in _COMPARING:
            return some(_is_overlap(module, owner))
        case cst.Call(args=[first, *_]) if module.qualified(node.func) in _SELECTING:
            return onward(first.value)
        case cst.Call(func=cst.Attribute(value=owner)) if module.qualified(node.func) is None:
            return onward(owner)
        case cst.BinaryOperation(left=left, right=right):
            return onward(left, right)
        case cst.UnaryOperation(expression=inner):
            return onward(inner)
        case cst.Subscript(value=owner):
            return onward(owner)
    return None


@traced(Through.RETURNS)
def _is_overlap(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a value is a share, such as that of an intersection in a union."""
    match node:
        case cst.BinaryOperation(operator=cst.Divide()):
            return True
        case cst.Call() if module.qualified(node.func) in _OVERLAPS:
            return True
        case cst.Call() if last_name(node.func) == "div":
            return True
        case cst.Call(func=cst.Attribute(value=owner)) if not module.callees(node):
            return onward(owner)
        case cst.Subscript(value=owner):
            return onward(owner)
    return None

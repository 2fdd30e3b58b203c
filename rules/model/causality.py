"""Masks that hide from each query the keys behind it, and nothing else: what ``is_causal=True`` does.

``scaled_dot_product_attention`` aligns its mask with the first query and the first key, whatever their
numbers are: it is ``torch.ones(L, S).tril()``. So a mask counts only if it is a triangle of a matrix of ones,
or of minus infinities, with the diagonal of the definition, cut off at the end of rows and columns at most.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import libcst as cst

from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.operations import operations_of
from torchlint.semantics.sharing import Fate, fate
from torchlint.semantics.sources import Through, every, onward, sole, traced
from torchlint.semantics.spellings import keywords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.semantics.module import Module
    from torchlint.semantics.sources import Path, Source


class Triangle(IdentityEnum):
    """What a causal mask holds."""

    KEPT = "kept"
    """Something true for the keys that a query may see."""
    HIDDEN = "hidden"
    """Something true for the keys that it may not see."""
    BIAS = "bias"
    """Minus infinity for the keys that it may not see, zero for the others."""


_INVERTED = {Triangle.KEPT: Triangle.HIDDEN, Triangle.HIDDEN: Triangle.KEPT}
# What a matrix is filled with before a triangle of it is cut out.
_ONES, _INFINITIES = "ones", "infinities"
# These keep every element where it is, as far as it is true or not, or infinite.
_CASTS = frozenset(
    {"bool", "byte", "clone", "contiguous", "cpu", "cuda", "detach", "double", "float", "half", "int", "long"}
    | {"to", "type", "type_as", "unsqueeze"}
)
_EQUAL_ONE, _EQUAL_ZERO = {"1", "True"}, {"0", "False"}


def causal(module: Module, node: cst.BaseExpression) -> Triangle | None:
    """Return the causal mask that an expression is for certain; None for anything else."""
    found = sole(_masks(module, node))
    return found if isinstance(found, Triangle) else None


@traced(Through.NOTHING)
def _masks(module: Module, node: cst.CSTNode, path: Path) -> Triangle | Literal[False] | list[Source] | None:
    if path or _is_changed(module, node):
        return False
    inverse = _inverse(module, node)
    if inverse is not None:
        operand, kept = inverse
        found = causal(module, operand)
        if found is None:
            return False
        return found if kept and found is not Triangle.BIAS else _INVERTED.get(found, False)
    match node:
        case cst.Subscript():
            return onward(node.value) if _cuts_off_ends(node) else False
        case cst.Call():
            return _called(module, node)
    return None


def _inverse(module: Module, node: cst.CSTNode) -> tuple[cst.BaseExpression, bool] | None:
    """Return the mask of which another one is the negation, or, if that is so, the same: ``mask == 1``."""
    match node:
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=operand):
            return (operand, False) if every(_is_bool(module, operand)) else None
        case cst.Comparison(
            left=left,
            comparisons=[
                cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual() as operator, comparator=to)
            ],
        ):
            return _compared(module, left, to, equal=isinstance(operator, cst.Equal))
        case cst.BinaryOperation(
            left=cst.Integer("1") | cst.Float("1.0"), operator=cst.Subtract(), right=right
        ):
            return right, False
        case cst.Call(args=[cst.Arg(value=operand, keyword=None, star="")]) if (
            module.qualified(node.func) == "torch.logical_not"
        ):
            return operand, False
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("logical_not"))):
            return (owner, False) if module.qualified(node.func) is None else None
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name("eq")), args=[cst.Arg(value=to)]):
            return _compared(module, owner, to, equal=True)
    return None


def _compared(
    module: Module, mask: cst.BaseExpression, number: cst.BaseExpression, *, equal: bool
) -> tuple[cst.BaseExpression, bool] | None:
    """Return the mask of ``mask == 0`` or ``mask != 1``, and whether that is true where the mask is one."""
    spelt = module.source(number)
    return (mask, (spelt in _EQUAL_ONE) is equal) if spelt in _EQUAL_ONE | _EQUAL_ZERO else None


def _cuts_off_ends(node: cst.Subscript) -> bool:
    """Return whether it is ``mask[:, :, :n, :n]``, ``mask[None]``: the first rows and columns,
    and more dimensions of one.
    """
    for element in node.slice:
        match element.slice:
            case cst.Slice(lower=None, step=None) | cst.Index(value=cst.Name("None") | cst.Ellipsis()):
                continue
            case _:
                return False
    return True


def _called(module: Module, call: cst.Call) -> Triangle | Literal[False] | list[Source]:
    name = module.qualified(call.func)
    arguments = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    named = keywords(call)
    if any(arg.star for arg in call.args):
        return False
    if name in ("torch.tril", "torch.triu") and arguments:
        return _cut(module, name[-4:], arguments[0], arguments[1:], named)
    if name == "torch.nn.Transformer.generate_square_subsequent_mask":
        return Triangle.BIAS
    if name is not None or not isinstance(call.func, cst.Attribute):
        return False
    method, owner = call.func.attr.value, call.func.value
    if method in ("tril", "triu"):
        return _cut(module, method, owner, arguments, named)
    if method in ("view", "reshape"):
        return onward(owner) if _adds_dimensions(arguments) else False
    return onward(owner) if method in _CASTS else False


def _adds_dimensions(arguments: Sequence[cst.BaseExpression]) -> bool:
    """Return whether it is ``view(1, 1, n, n)``: dimensions of the size one in front of rows and columns."""
    if len(arguments) == 1 and isinstance(arguments[0], (cst.Tuple, cst.List)):
        arguments = [element.value for element in arguments[0].elements]
    return len(arguments) > 2 and all(isinstance(a, cst.Integer) and a.value == "1" for a in arguments[:-2])


def _cut(
    module: Module,
    half: str,
    matrix: cst.BaseExpression,
    arguments: Sequence[cst.BaseExpression],
    named: dict[str, cst.BaseExpression],
) -> Triangle | Literal[False]:
    """Return what is left of a matrix: ``tril`` what a query may see, ``triu`` from the next on the rest."""
    diagonal = named.get("diagonal", arguments[0] if arguments else None)
    offset = 0 if diagonal is None else operations_of(module).integer(diagonal)
    filled = sole(_filled(module, matrix))
    if half == "tril":
        return Triangle.KEPT if offset == 0 and filled == _ONES else False
    if offset != 1 or filled not in (_ONES, _INFINITIES):
        return False
    return Triangle.HIDDEN if filled == _ONES else Triangle.BIAS


def _is_changed(module: Module, node: cst.CSTNode) -> bool:
    """Return whether what a name or an attribute stands for is written to."""
    if isinstance(node, cst.Name):
        return any(fate(module, binding) is Fate.WRITTEN for binding in module.bindings(node))
    return isinstance(node, cst.Attribute) and _is_written(module, node)


@traced(Through.NOTHING)
def _filled(module: Module, node: cst.CSTNode, path: Path) -> str | list[Source] | None:
    """Return what a matrix is full of; empty if it is written to."""
    if _is_changed(module, node):
        return ""
    number = operations_of(module).number
    match node:
        case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
            for ones, factor in ((left, right), (right, left)):
                if number(factor) == -math.inf and sole(_filled(module, ones)) == _ONES:
                    return _INFINITIES
        case cst.Call():
            name = module.qualified(node.func)
            if name == "torch.ones":
                return _ONES
            if name == "torch.full":
                filling = number(module.argument(node, "fill_value").node)
                return _ONES if filling == 1 else _INFINITIES if filling == -math.inf else None
            if name is None and isinstance(node.func, cst.Attribute) and node.func.attr.value in _CASTS:
                return onward(node.func.value)
    return None


@traced(Through.NOTHING)
def _is_bool(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a mask has the dtype ``bool``, so that ``~`` turns it round."""
    match node:
        case cst.Comparison():
            return True
        case cst.Subscript(value=inner) | cst.UnaryOperation(expression=inner):
            return onward(inner)
        case cst.Call():
            name, given = module.qualified(node.func), [arg.value for arg in node.args]
            if any(module.qualified(value) in ("torch.bool", "builtins.bool") for value in given):
                return True
            if name in ("torch.tril", "torch.triu") and given:
                return onward(given[0])
            if not isinstance(node.func, cst.Attribute):
                return False
            method = node.func.attr.value
            if method in ("bool", "logical_not", "eq"):
                return True
            keeps = method in ("cuda", "contiguous", "tril", "triu", "unsqueeze", "view")
            moves = method == "to" and len(given) == 1
            return onward(node.func.value) if name is None and (keeps or moves) else False
    return None


def _is_written(module: Module, attribute: cst.Attribute) -> bool:
    """Return whether the file writes to what an attribute of this name holds: ``self.mask[:n] = 1``."""
    for other in module.tree.nodes(cst.Attribute):
        if other.attr.value != attribute.attr.value:
            continue
        parent = module.tree.parent(other)
        while isinstance(parent, cst.Subscript):
            parent = module.tree.parent(parent)
        if isinstance(parent, (cst.AugAssign, cst.Del)):
            return True
        if isinstance(parent, cst.AssignTarget) and parent.target is not other:
            return True
        if isinstance(parent, cst.Attribute) and parent.attr.value.endswith("_"):
            return True
    return False

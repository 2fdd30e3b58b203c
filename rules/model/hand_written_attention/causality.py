"""Masks that hide from each query the keys behind it, and nothing else: what ``is_causal=True`` does.

``scaled_dot_product_attention`` aligns its mask with the first query and the first key, whatever their
numbers are: it is ``torch.ones(L, S).tril()``. So a mask counts only if it is a triangle of a matrix of ones,
or of minus infinities, with the diagonal of the definition, cut off at the end of rows and columns at most.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.enums import IdentityEnum
from torchlint.semantics.sharing import Fate, fate
from torchlint.semantics.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.semantics.module import Module

_HOPS = 12


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


def causal(module: Module, node: cst.BaseExpression, hops: int = _HOPS) -> Triangle | None:
    """The causal mask that an expression is for certain; None for anything else."""
    if hops <= 0:
        return None
    match node:
        case cst.Name():
            value = _assigned(module, node)
            return None if value is None else causal(module, value, hops - 1)
        case cst.Attribute():
            values = Wiring.of(module).attributes.attribute_values(node, node.attr.value)
            if len(values) != 1 or _is_written(module, node):
                return None
            return causal(module, values[0], hops - 1)
        case cst.Subscript():
            return causal(module, node.value, hops - 1) if _cuts_off_ends(node) else None
        case cst.UnaryOperation(operator=cst.BitInvert()):
            found = causal(module, node.expression, hops - 1)
            return _INVERTED.get(found) if found is not None and _is_bool(module, node.expression) else None
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal() | cst.NotEqual() as operator)]
        ):
            return _compared(
                causal(module, left, hops - 1), module.source(node.comparisons[0].comparator), operator
            )
        case cst.BinaryOperation(
            left=cst.Integer("1") | cst.Float("1.0"), operator=cst.Subtract(), right=right
        ):
            found = causal(module, right, hops - 1)
            return _INVERTED.get(found) if found is not None else None
        case cst.Call():
            return _called(module, node, hops)
        case _:
            return None


def _compared(found: Triangle | None, number: str, operator: cst.BaseCompOp) -> Triangle | None:
    """``mask == 0``, ``mask != 1``."""
    if found is None or number not in _EQUAL_ONE | _EQUAL_ZERO:
        return None
    keeps = (number in _EQUAL_ONE) is isinstance(operator, cst.Equal)
    return found if keeps and found is not Triangle.BIAS else _INVERTED.get(found)


def _cuts_off_ends(node: cst.Subscript) -> bool:
    """``mask[:, :, :n, :n]``, ``mask[None]``: the first rows and columns, and more dimensions of one."""
    for element in node.slice:
        match element.slice:
            case cst.Slice(lower=None, step=None) | cst.Index(value=cst.Name("None") | cst.Ellipsis()):
                continue
            case _:
                return False
    return True


def _called(module: Module, call: cst.Call, hops: int) -> Triangle | None:
    name = module.qualified(call.func)
    arguments = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    keywords = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    if any(arg.star for arg in call.args):
        return None
    if name in ("torch.tril", "torch.triu") and arguments:
        return _cut(module, name[-4:], arguments[0], arguments[1:], keywords)
    if name == "torch.nn.Transformer.generate_square_subsequent_mask":
        return Triangle.BIAS
    if name == "torch.logical_not" and len(arguments) == 1:
        found = causal(module, arguments[0], hops - 1)
        return _INVERTED.get(found) if found is not None else None
    if name is not None or not isinstance(call.func, cst.Attribute):
        return None
    method, owner = call.func.attr.value, call.func.value
    if method in ("tril", "triu"):
        return _cut(module, method, owner, arguments, keywords)
    if method == "logical_not":
        found = causal(module, owner, hops - 1)
        return _INVERTED.get(found) if found is not None else None
    if method == "eq" and len(arguments) == 1:
        return _compared(causal(module, owner, hops - 1), module.source(arguments[0]), cst.Equal())
    if method in ("view", "reshape"):
        return causal(module, owner, hops - 1) if _adds_dimensions(arguments) else None
    return causal(module, owner, hops - 1) if method in _CASTS else None


def _adds_dimensions(arguments: Sequence[cst.BaseExpression]) -> bool:
    """``view(1, 1, n, n)``: dimensions of the size one in front of rows and columns."""
    if len(arguments) == 1 and isinstance(arguments[0], (cst.Tuple, cst.List)):
        arguments = [element.value for element in arguments[0].elements]
    return len(arguments) > 2 and all(isinstance(a, cst.Integer) and a.value == "1" for a in arguments[:-2])


def _cut(
    module: Module,
    half: str,
    matrix: cst.BaseExpression,
    arguments: Sequence[cst.BaseExpression],
    keywords: dict[str, cst.BaseExpression],
) -> Triangle | None:
    """What is left of a matrix: ``tril`` what a query may see, ``triu`` from the next on the rest."""
    diagonal = keywords.get("diagonal", arguments[0] if arguments else None)
    offset = 0 if diagonal is None else Wiring.of(module).operations.integer(diagonal)
    filled = _filled(module, matrix)
    if half == "tril":
        return Triangle.KEPT if offset == 0 and filled == _ONES else None
    if offset != 1 or filled is None:
        return None
    return Triangle.HIDDEN if filled == _ONES else Triangle.BIAS


def _assigned(module: Module, name: cst.Name) -> cst.BaseExpression | None:
    """What a variable holds that is assigned once and never written to."""
    binding = module.names.assignment(name)
    return None if binding is None or fate(module, binding) is Fate.WRITTEN else binding.value


def _filled(module: Module, node: cst.BaseExpression, hops: int = 4) -> str | None:
    """What a matrix is full of."""
    if hops <= 0:
        return None
    match node:
        case cst.Name():
            value = _assigned(module, node)
            return None if value is None else _filled(module, value, hops - 1)
        case cst.BinaryOperation(operator=cst.Multiply(), left=left, right=right):
            pairs = ((left, right), (right, left))
            infinite = any(
                _filled(module, ones, hops - 1) == _ONES
                and Wiring.of(module).operations.number(factor) == -math.inf
                for ones, factor in pairs
            )
            return _INFINITIES if infinite else None
        case cst.Call():
            name = module.qualified(node.func)
            if name == "torch.ones":
                return _ONES
            if name == "torch.full":
                number = Wiring.of(module).operations.number(module.argument(node, "fill_value").node)
                return _ONES if number == 1 else _INFINITIES if number == -math.inf else None
            if name is None and isinstance(node.func, cst.Attribute) and node.func.attr.value in _CASTS:
                return _filled(module, node.func.value, hops - 1)
    return None


def _is_bool(module: Module, node: cst.BaseExpression, hops: int = _HOPS) -> bool:
    """Whether a mask has the dtype ``bool``, so that ``~`` turns it round."""
    if hops <= 0:
        return False
    match node:
        case cst.Name():
            bindings = module.bindings(node)
            value = bindings[0].value if len(bindings) == 1 else None
            return value is not None and _is_bool(module, value, hops - 1)
        case cst.Attribute():
            values = Wiring.of(module).attributes.attribute_values(node, node.attr.value)
            return len(values) == 1 and _is_bool(module, values[0], hops - 1)
        case cst.Subscript():
            return _is_bool(module, node.value, hops - 1)
        case cst.Comparison():
            return True
        case cst.UnaryOperation():
            return _is_bool(module, node.expression, hops - 1)
        case cst.Call():
            given = [arg.value for arg in node.args]
            if any(module.qualified(value) in ("torch.bool", "builtins.bool") for value in given):
                return True
            if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("bool", "logical_not", "eq"):
                return True
            if module.qualified(node.func) in ("torch.tril", "torch.triu") and given:
                return _is_bool(module, given[0], hops - 1)
            if module.qualified(node.func) is None and isinstance(node.func, cst.Attribute):
                keeps = node.func.attr.value in ("cuda", "contiguous", "tril", "triu", "unsqueeze", "view")
                moves = node.func.attr.value == "to" and len(given) == 1
                return (keeps or moves) and _is_bool(module, node.func.value, hops - 1)
    return False


def _is_written(module: Module, attribute: cst.Attribute) -> bool:
    """Whether the file writes to what an attribute of this name holds: ``self.mask[:n] = 1``."""
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

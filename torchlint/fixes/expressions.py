"""Edits of expressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.fixes.layout import Edits, deletion
from torchlint.syntax import SyntaxTree

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_IDENTIFIER = re.compile(r"\w")
# Expressions that bind tighter than any operator beside them.
_ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.Float,
    cst.Imaginary,
    cst.Integer,
    cst.SimpleString,
    cst.FormattedString,
    cst.List,
    cst.Set,
    cst.Dict,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.Ellipsis,
)
_PRODUCTS = (cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.MatrixMultiply)
# Places in which any expression but an unparenthesised tuple, walrus or yield stands without parentheses.
_OPEN_PLACES = (
    cst.Arg,
    cst.Annotation,
    cst.AnnAssign,
    cst.Assert,
    cst.Assign,
    cst.AugAssign,
    cst.DictElement,
    cst.Element,
    cst.Expr,
    cst.For,
    cst.If,
    cst.Index,
    cst.NamedExpr,
    cst.Param,
    cst.Return,
    cst.While,
)
_NEEDS_PARENTHESES_IN_OPEN_PLACES = (cst.Tuple, cst.NamedExpr, cst.Yield, cst.GeneratorExp)


def replace(module: Module, node: cst.CSTNode, code: str) -> Edits | None:
    """Put ``code`` where ``node`` stands; None if a comment in ``node`` would be lost.

    The parentheses that an expression owns go with it; new ones are added where an operator beside it
    would otherwise take ``code`` apart, and a space where two words would otherwise grow together.
    """
    tree = module.tree
    span = tree.outer_span(node)
    if _loses_comment(tree, span, code):
        return None
    if isinstance(node, cst.BaseExpression) and _needs_parentheses(tree, node, code):
        code = f"({code})"
    text = tree.text
    if code:
        if span.start and _joins(text[span.start - 1], code[0]):
            code = " " + code
        if span.end < len(text) and _joins(code[-1], text[span.end]):
            code += " "
    return (Edit(span, code),)


def _loses_comment(tree: SyntaxTree, span: Span, code: str) -> bool:
    if "#" not in tree.text[span.start : span.end]:
        return False
    inside = (c for c in tree.comments_between(span.start, span.end) if c.end <= span.end)
    return any(tree.text[c.start : c.end] not in code for c in inside)


def _joins(left: str, right: str) -> bool:
    return bool(_IDENTIFIER.match(left) and _IDENTIFIER.match(right))


def _needs_parentheses(tree: SyntaxTree, node: cst.BaseExpression, code: str) -> bool:
    try:
        new = cst.parse_expression(code)
    except cst.ParserSyntaxError:
        # Several lines that only brackets hold together, or no expression at all (an edit of a target).
        return "\n" in code and (not code.startswith("(") or _is_expression(f"({code})"))
    if new.lpar:
        return False
    parent = tree.parent(node)
    if isinstance(new, _ATOMS):
        # Two that bind tightly are read as something else: ``5.real``, and ``{{`` in an f-string.
        return (isinstance(new, cst.Integer) and isinstance(parent, cst.Attribute)) or (
            code.startswith("{") and isinstance(parent, cst.FormattedStringExpression)
        )
    if isinstance(parent, _OPEN_PLACES):
        return isinstance(new, _NEEDS_PARENTHESES_IN_OPEN_PLACES)
    if isinstance(node, cst.BinaryOperation) and isinstance(new, cst.BinaryOperation):
        # A product stands wherever another one stood without parentheses.
        products = all(isinstance(each.operator, _PRODUCTS) for each in (node, new))
        return not products or tree.parentheses(node) > 0
    return True


def _is_expression(code: str) -> bool:
    try:
        cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return False
    return True


def cut_off(module: Module, kept: cst.BaseExpression, whole: cst.BaseExpression) -> Edits | None:
    """Return the edit that leaves ``kept`` of an expression that begins with it: ``x`` of ``x.to(device)``.

    None if a comment would go, or a bracket of what lies between: ``(x.to)(device)``.
    """
    tree = module.tree
    for around in tree.ancestors(kept):
        if around is whole:
            break
        if isinstance(around, cst.BaseExpression) and tree.parentheses(around):
            return None
    start, end = tree.outer_span(kept).end, tree.span(whole).end
    return None if "#" in tree.text[start:end] else deletion(start, end)

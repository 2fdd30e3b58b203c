"""Edits that add or remove a statement, or a decorator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.fixes.layout import (
    Edits,
    deletion,
    end_of_line,
    end_with_comments,
    first_decorator,
    indent_at,
    insertion,
    newline_near,
    next_line,
    reindented,
    shares_line,
)
from torchlint.source import NEWLINE, blank_lines_before, line_above, line_start, past_blank_lines
from torchlint.syntax import SyntaxTree

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def remove_statement(module: Module, node: cst.CSTNode) -> Edits | None:
    """Take out the statement that holds ``node``: its whole line, or its part of a line shared by semicolons.

    A block that would be left empty gets ``pass``. Comments on lines of their own above the statement stay;
    a comment at the end of its line goes with it, and so do blank lines below it where some stand above.
    None for an ``elif``, which is no statement of its own.
    """
    tree = module.tree
    statement = tree.statement(node)
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) > 1:
        statement = next((small for small in statement.body if tree.contains(small, node)), statement)
    holder = tree.parent(statement)
    if isinstance(statement, cst.BaseSmallStatement):
        if not isinstance(holder, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            return None
        if len(holder.body) > 1:
            return _remove_beside_semicolon(tree, holder.body, statement)
        if isinstance(holder, cst.SimpleStatementSuite):
            return (Edit(tree.span(statement), "pass"),)
        statement, holder = holder, tree.parent(holder)
    if not isinstance(holder, (cst.IndentedBlock, cst.Module)):
        return None
    source = tree.text
    start = first_decorator(tree, statement)
    line_end = end_with_comments(source, tree.span(statement).end, indent_at(source, start))
    if isinstance(holder, cst.IndentedBlock) and len(holder.body) == 1:
        return (Edit(Span(start, line_end), "pass"),)
    first, behind = line_start(source, start), next_line(source, line_end)
    # Nothing stands apart from the beginning of a file or of a block.
    begins = first == 0 or (isinstance(holder, cst.IndentedBlock) and _opens_block(tree, holder, statement))
    above = len(source) if begins else blank_lines_before(source, first)
    return deletion(first, past_blank_lines(source, behind, above))


def _opens_block(tree: SyntaxTree, block: cst.IndentedBlock, statement: cst.CSTNode) -> bool:
    """Return whether a statement stands right below the header of its block, without a line between."""
    if block.body[0] is not statement:
        return False
    above = line_above(tree.text, line_start(tree.text, first_decorator(tree, statement)))
    line = tree.text[above : end_of_line(tree.text, above)].strip()
    return bool(line) and not line.startswith("#")


def _remove_beside_semicolon(
    tree: SyntaxTree, body: Sequence[cst.BaseSmallStatement], statement: cst.BaseSmallStatement
) -> Edits:
    index = next(i for i, other in enumerate(body) if other is statement)
    if index + 1 < len(body):
        return deletion(tree.span(statement).start, tree.span(body[index + 1]).start)
    return deletion(tree.span(body[index - 1]).end, tree.span(statement).end)


def add_decorator(module: Module, function: cst.FunctionDef, code: str) -> Edits:
    """Put ``@code`` on a line of its own directly above ``def``, below the decorators that are there.

    The innermost place is the right one beside ``@staticmethod``, ``@classmethod`` and ``@property``, which
    want a function to wrap and do not give one back.

    Raises:
        ValueError: ``code`` has the ``@`` sign already.
    """
    tree = module.tree
    if code.startswith("@"):
        raise ValueError("the code of a decorator is given without its sign")
    start = tree.span(function).start
    newline = newline_near(tree, start)
    return insertion(start, f"@{code}{newline}{indent_at(tree.text, start)}")


def insert_before(module: Module, statement: cst.CSTNode, code: str) -> Edits | None:
    """Put the lines of ``code`` above ``statement``, its decorators and the comments attached to it.

    Beside other statements on one line, ``code`` of one line goes before it with a semicolon; more than
    that is refused with None, as is an ``elif``.
    """
    tree = module.tree
    if shares_line(tree, statement, first=True):
        return None if NEWLINE.search(code) else insertion(tree.span(statement).start, f"{code}; ")
    line = _block_statement(tree, statement)
    if line is None:
        return None
    text = tree.text
    start = first_decorator(tree, line)
    indent = indent_at(text, start)
    at = line_start(text, start)
    while at and text.startswith(f"{indent}#", line_above(text, at)):
        at = line_above(text, at)
    if at == 0:
        # Comments at the top (``#!``, encoding, licence) belong to the file.
        at = line_start(text, start)
    newline = newline_near(tree, start)
    return insertion(at, reindented(code, indent, newline) + newline)


def insert_after(module: Module, statement: cst.CSTNode, code: str) -> Edits | None:
    """Put the lines of ``code`` below ``statement`` and the comments inside its block.

    Beside other statements on one line, ``code`` of one line goes after it with a semicolon; more than
    that is refused with None, as is an ``elif``.
    """
    tree = module.tree
    if shares_line(tree, statement, first=False):
        return None if NEWLINE.search(code) else insertion(tree.span(statement).end, f"; {code}")
    line = _block_statement(tree, statement)
    if line is None:
        return None
    text = tree.text
    indent = indent_at(text, first_decorator(tree, line))
    end = end_with_comments(text, tree.span(line).end, indent)
    newline = newline_near(tree, tree.span(line).start)
    return insertion(end, newline + reindented(code, indent, newline))


def _block_statement(tree: SyntaxTree, statement: cst.CSTNode) -> cst.CSTNode | None:
    line = tree.statement(statement)
    return line if isinstance(tree.parent(line), (cst.IndentedBlock, cst.Module)) else None

"""Edits that put statements into blocks, or take them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.fixes.layout import (
    Edits,
    code_lines,
    deletion,
    end_of_line,
    end_of_logical_line,
    end_with_comments,
    first_decorator,
    indent_at,
    indent_unit,
    insertion,
    newline_near,
    next_line,
    shares_line,
)
from torchlint.source import line_above, line_start
from torchlint.syntax import SyntaxTree

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def wrap(module: Module, statements: Sequence[cst.CSTNode], header: str) -> Edits | None:
    """Indent a run of neighbouring statements under ``header`` (``with torch.no_grad():``).

    Comments between them move along; lines inside a string over several lines stay as they are. None where
    the statements are not neighbours in one block of lines.
    """
    tree = module.tree
    lines = list(dict.fromkeys(tree.statement(statement) for statement in statements))
    block = tree.parent(lines[0]) if lines else None
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    siblings: list[cst.CSTNode] = list(block.body)
    first = siblings.index(lines[0])
    if siblings[first : first + len(lines)] != lines:
        return None

    text = tree.text
    start = first_decorator(tree, lines[0])
    indent = indent_at(text, start)
    unit = indent_unit(tree, block)
    end = end_with_comments(text, tree.span(lines[-1]).end, indent)
    newline = newline_near(tree, start)
    edits = [Edit(Span(start, start), f"{header}{newline}{indent}{unit}")]
    for at in code_lines(tree, next_line(text, end_of_line(text, start)), end):
        edits += insertion(at + len(indent) if text.startswith(indent, at) else at, unit)
    return tuple(edits)


def _dissolve(tree: SyntaxTree, block: cst.With) -> Edits | None:
    """Take a ``with`` statement away and leave what it holds in its place.

    None where a comment would go with the header, or where the block stands on its line.
    """
    header = _header(tree, block)
    if header is None:
        return None
    text = tree.text
    outer, inner = indent_at(text, tree.span(block).start), _body_indent(tree, block)
    end = end_with_comments(text, tree.span(block.body.body[-1]).end, inner)
    edits = [Edit(header, "")]
    for at in code_lines(tree, header.end, end):
        # What goes on in brackets may stand further to the left.
        if text.startswith(inner, at):
            edits += deletion(at + len(outer), at + len(inner))
    return tuple(edits)


def wrap_with(
    module: Module, statements: Sequence[cst.CSTNode], header: str, alike: Callable[[cst.With], bool]
) -> Edits | None:
    """Return the same as `wrap`, but with one block instead of several next to or inside of each other.

    Blocks that are ``alike`` take the statements in if they stand right before or behind them in the same
    cell, and are dissolved if they stand inside of them. None where that cannot be done.
    """
    tree = module.tree
    made = wrap(module, statements, header)
    if made is None:
        return None
    first, last = tree.statement(statements[0]), tree.statement(statements[-1])
    block = tree.parent(first)
    assert isinstance(block, (cst.IndentedBlock, cst.Module))
    siblings: list[cst.CSTNode] = list(block.body)
    before, behind = siblings.index(first) - 1, siblings.index(last) + 1
    indent = indent_at(tree.text, first_decorator(tree, first)) + indent_unit(tree, block)
    edits = list(made)
    if before >= 0 and _joined(module, siblings[before], first, indent, alike) is not None:
        unit = indent_unit(tree, block)
        edits[0] = Edit(edits[0].span, unit)
        outer = indent.removesuffix(unit)
        at = line_start(tree.text, edits[0].span.start)
        while at and tree.text.startswith(f"{outer}#", line_above(tree.text, at)):
            at = line_above(tree.text, at)
            edits += insertion(at + len(outer), unit)
    below = _joined(module, siblings[behind], last, indent, alike) if behind < len(siblings) else None
    if below is not None:
        edits.append(Edit(below, ""))
    inside = dissolve_in(module, statements, alike)
    if inside is None:
        return None
    gone = [edit.span for edit in inside]
    edits = [edit for edit in edits if not any(s.start < edit.span.start < s.end for s in gone)]
    return (*edits, *inside)


def dissolve_in(
    module: Module, nodes: Iterable[cst.CSTNode], alike: Callable[[cst.With], bool]
) -> Edits | None:
    """Return the edits that dissolve all blocks inside of ``nodes`` that are ``alike``;
    None if one cannot be.
    """
    tree = module.tree
    edits: list[Edit] = []
    found = [i for node in nodes for i in tree.descendants(node) if isinstance(i, cst.With) and alike(i)]
    for inner in found:
        if any(other is not inner and tree.contains(other, inner) for other in found):
            continue
        taken = _dissolve(tree, inner)
        if taken is None:
            return None
        edits += taken
    return tuple(edits)


def _joined(
    module: Module,
    sibling: cst.CSTNode,
    statement: cst.CSTNode,
    indent: str,
    alike: Callable[[cst.With], bool],
) -> Span | None:
    """Return the lines of the header of a block next to a statement that it may become part of
    with ``indent``.
    """
    if not isinstance(sibling, cst.With) or not alike(sibling):
        return None
    if module.position(sibling).cell != module.position(statement).cell:
        return None
    header = _header(module.tree, sibling)
    return header if header is not None and _body_indent(module.tree, sibling) == indent else None


def _body_indent(tree: SyntaxTree, block: cst.With) -> str:
    return indent_at(tree.text, first_decorator(tree, block.body.body[0]))


def _header(tree: SyntaxTree, block: cst.With) -> Span | None:
    """Return the lines of the header of a block; None if they hold a comment, or something else."""
    text = tree.text
    if not isinstance(block.body, cst.IndentedBlock):
        return None
    start, item = line_start(text, tree.span(block).start), tree.span(block.items[-1].item).end
    line_end = end_of_line(text, item)
    if text[item:line_end].replace(")", "").strip() != ":" or "#" in text[start:item]:
        return None
    return Span(start, next_line(text, line_end))


def end_block_before(module: Module, statement: cst.CSTNode) -> Edits | None:
    """Take ``statement`` and all that follows it in its block out of the block, to the level of its header.

    Comments among them move along; lines inside a string over several lines stay as they are. None where
    the block would be left empty, stands on the line of its header, or where the statement shares its line.
    """
    tree = module.tree
    line = tree.statement(statement)
    block = tree.parent(line)
    if not isinstance(block, cst.IndentedBlock) or line is block.body[0]:
        return None
    if shares_line(tree, statement, first=True):
        return None
    header = tree.parent(block)
    assert header is not None
    text = tree.text
    outer = indent_at(text, first_decorator(tree, header))
    inner = indent_at(text, first_decorator(tree, line))
    if not inner.startswith(outer):
        return None
    before = next(first for first, second in pairwise(block.body) if second is line)
    start = next_line(text, end_of_logical_line(text, tree.span(before).end))
    end = end_with_comments(text, tree.span(block.body[-1]).end, outer)
    edits: list[Edit] = []
    for at in code_lines(tree, start, end):
        # What goes on in brackets may stand further to the left.
        if text.startswith(inner, at):
            edits += deletion(at + len(outer), at + len(inner))
    return tuple(edits)

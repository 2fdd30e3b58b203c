"""Places in the text of a program, and lines that take the layout of their neighbours."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.source import NEWLINE, apply, line_start
from torchlint.syntax import SyntaxTree

Edits = tuple[Edit, ...]

_STRINGS: tuple[type[cst.CSTNode], ...] = (cst.SimpleString, cst.FormattedString, cst.TemplatedString)


def insertion(at: int, content: str) -> Edits:
    return (Edit(Span(at, at), content),)


def deletion(start: int, end: int) -> Edits:
    return (Edit(Span(start, end), ""),)


def end_of_line(text: str, at: int) -> int:
    """Return the offset at which the line of ``at`` ends, before its line-end characters."""
    found = NEWLINE.search(text, at)
    return found.start() if found else len(text)


def next_line(text: str, line_end: int) -> int:
    found = NEWLINE.match(text, line_end)
    return found.end() if found else line_end


def starts_line(text: str, at: int) -> bool:
    return not text[line_start(text, at) : at].strip()


def indent_at(text: str, at: int) -> str:
    """Return the white space that the line of ``at`` begins with, form feeds aside."""
    line = text[line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip())].replace("\x0c", "")


def newline_near(tree: SyntaxTree, at: int) -> str:
    """Return the line-end characters of the line of ``at``; those of the file if it is the last."""
    found = NEWLINE.search(tree.text, at)
    return found.group() if found else tree.root.default_newline


def after_comma(text: str, start: int, limit: int) -> int | None:
    """Return the offset behind the comma between two arguments;
    comments are skipped. None if there is none.
    """
    at = start
    while at < limit:
        if text[at] == ",":
            return at + 1
        at = end_of_line(text, at) if text[at] == "#" else at + 1
    return None


def after_comment(text: str, at: int) -> int:
    """Return the end of the comment that follows ``at`` on its line; ``at`` itself where none does."""
    end = end_of_line(text, at)
    return end if text[at:end].lstrip().startswith("#") else at


def first_decorator(tree: SyntaxTree, statement: cst.CSTNode) -> int:
    decorators = getattr(statement, "decorators", ())
    return tree.span(decorators[0] if decorators else statement).start


def indent_unit(tree: SyntaxTree, block: cst.CSTNode) -> str:
    """Return the white space by which the lines of a block stand further to the right than what holds it."""
    if not isinstance(block, cst.IndentedBlock):
        return tree.root.default_indent
    around = tree.enclosing(block, cst.IndentedBlock)
    outer = indent_at(tree.text, first_decorator(tree, around.body[0])) if around is not None else ""
    return indent_at(tree.text, first_decorator(tree, block.body[0])).removeprefix(outer)


def end_with_comments(text: str, end: int, indent: str) -> int:
    """Return the end of the last line of a statement, with the comments indented deeper that follow it."""
    last = end_of_logical_line(text, end)
    at = last
    while True:
        start = next_line(text, at)
        if start == at:
            return last
        at = end_of_line(text, start)
        line = text[start:at]
        if not line.strip():
            continue
        content = line.lstrip()
        if not content.startswith("#") or len(line) - len(content) <= len(indent):
            return last
        last = at


def end_of_logical_line(text: str, end: int) -> int:
    """Return where the line ends on which a statement does: behind a backslash that is the next one."""
    last = end_of_line(text, end)
    while text.endswith("\\", end, last) and "#" not in text[end:last]:
        following = next_line(text, last)
        if following == last:
            break
        last = end_of_line(text, following)
    return last


def code_lines(tree: SyntaxTree, start: int, end: int) -> list[int]:
    """Return the starts of the lines from ``start`` to ``end`` that are neither blank nor inside a string."""
    text = tree.text
    strings = [tree.span(node) for node in tree.nodes(*_STRINGS)]
    strings = [span for span in strings if span.end > start and NEWLINE.search(text, span.start, span.end)]
    starts = []
    at = start
    while at < end:
        line_end = end_of_line(text, at)
        if text[at:line_end].strip() and not any(span.start < at < span.end for span in strings):
            starts.append(at + len(text[at:line_end]) - len(text[at:line_end].lstrip("\x0c")))
        following = next_line(text, line_end)
        if following == line_end:
            break
        at = following
    return starts


def reindented(code: str, indent: str, newline: str) -> str:
    """Return ``code``, written at the left margin with ``\\n``, as lines of a block; strings stay as is."""
    if not NEWLINE.search(code):
        return indent + code
    tree = SyntaxTree(code)
    edits = [Edit(Span(at, at), indent) for at in code_lines(tree, 0, len(code))]
    # Lines that are taken from the file have its line ends already.
    return re.sub(r"(?<!\r)\n", newline, apply(code, edits))


def shares_line(tree: SyntaxTree, statement: cst.CSTNode, *, first: bool) -> bool:
    """Return whether a small statement stands in a suite, or has a neighbour on the side given."""
    holder = tree.parent(statement)
    if not isinstance(statement, cst.BaseSmallStatement):
        return False
    if isinstance(holder, cst.SimpleStatementSuite):
        return True
    assert isinstance(holder, cst.SimpleStatementLine)
    return statement is not holder.body[0 if first else -1]

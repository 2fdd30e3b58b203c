"""Parses the next version of a text that is being typed: statements that are as they were keep their nodes.

LibCST has no memory, and reading a thousand lines takes it longer than a keystroke may. The statements of a
module do not depend on each other's syntax. So a text is kept in pieces of whole statements, and of the next
version only that is parsed which does not begin or end with pieces that are known. The tree is the one that
parsing the whole text gives; wherever that is not sure, the whole text is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import Any

import libcst as cst

from torchlint import parsing
from torchlint.diagnostics import Span
from torchlint.nodes import unchecked
from torchlint.syntax import SyntaxTree, record, walk

# Lines between statements that belong to the statement below them, and to no block above.
_GAP = re.compile(r"(?:(?:#[^\n]*)?\n)*")


class Reparser:
    """Remembers the last version of one text.

    The trees share their nodes: once the next is made, the last is not to be used any more.
    """

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []

    def parse(self, text: str) -> SyntaxTree:
        """Return the syntax tree of the next version; to be called on a deep stack.

        Raises:
            UnreadableError: ``text`` is no Python, or LibCST cannot read it.
        """
        pieces = self._patched(text)
        if pieces is not None:
            self._pieces = pieces
            return _Patchwork(text, pieces)
        tree = parsing.parse(text)
        try:
            self._pieces = _split(tree, first=True, last=True) or []
        except ValueError:
            # LibCST does not give the text again, and so no place of it either.
            self._pieces = []
        return tree

    def _patched(self, text: str) -> list[_Piece] | None:
        """Return the pieces of a text, of which only those are parsed that are new;
        None if that cannot be sure.
        """
        known = self._pieces
        if not known or not _is_plain(text):
            return None
        first, start = 0, 0
        # The last piece may end without a newline.
        while first < len(known) - 1 and text.startswith(known[first].text, start):
            start += len(known[first].text)
            first += 1
        last, end = len(known), len(text)
        # The first piece has what stands above the module's first statement.
        while last > max(first, 1) and text.endswith(known[last - 1].text, start, end):
            last -= 1
            end -= len(known[last].text)
        while True:
            middle = self._parsed(text[start:end], first=first == 0, last=last == len(known))
            if middle is not None:
                pieces = [*known[:first], *middle, *known[last:]]
                return pieces if pieces and _agree(pieces) else None
            if last == len(known):
                return None
            # What stands at the end of the middle may belong to the statement behind it.
            end += len(known[last].text)
            last += 1

    def _parsed(self, text: str, *, first: bool, last: bool) -> list[_Piece] | None:
        if not text:
            return None if first or last else []
        if (not last and not text.endswith("\n")) or text.rstrip("\n").endswith("\\"):
            return None
        try:
            return _split(parsing.parse(text), first=first, last=last)
        except (parsing.UnreadableError, ValueError):
            return None


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some statements and the lines above them, with all that is known of their nodes.

    ``spans`` count from the beginning of the piece. ``indent`` is the indentation of its blocks, None
    without any; ``header`` and ``footer`` are filled in the first and in the last piece only.
    """

    text: str
    statements: tuple[Any, ...]
    nodes: list[cst.CSTNode]
    parents: dict[cst.CSTNode, cst.CSTNode]
    by_type: dict[type, list[cst.CSTNode]]
    spans: dict[cst.CSTNode, Span]
    indent: str | None
    header: Sequence[cst.EmptyLine] = ()
    footer: Sequence[cst.EmptyLine] = ()


def _is_plain(text: str) -> bool:
    """Return whether a text is without what LibCST does not keep as it is."""
    return "\r" not in text and "\f" not in text


def _agree(pieces: Sequence[_Piece]) -> bool:
    return len({piece.indent for piece in pieces if piece.indent is not None}) <= 1


def _split(tree: SyntaxTree, *, first: bool, last: bool) -> list[_Piece] | None:
    """Return the pieces of a tree; None if they would not be those of a larger text that it is a part of.

    ``first`` and ``last`` say whether it is the beginning, or the end, of that text.
    """
    root, text = tree.root, tree.text
    if not root.body or not _is_plain(text) or (root.footer and not last):
        return None
    blocks = tree.nodes(cst.IndentedBlock)
    if any(block.indent is not None for block in blocks):
        return None
    statements: list[Any] = list(root.body)
    if not first:
        statements[0] = statements[0].with_changes(leading_lines=[*root.header, *statements[0].leading_lines])
    header = root.header if first else ()
    pieces: list[_Piece] = []
    held: list[Any] = []
    start = 0
    ends = _ends(tree)
    for number, statement in enumerate(statements):
        held.append(statement)
        if number + 1 < len(statements):
            end = ends[number]
            if not _GAP.fullmatch(text, end, _start(tree, root.body[number + 1])):
                continue
        else:
            end = len(text)
        footer = root.footer if number + 1 == len(statements) else ()
        piece = _piece(text[start:end], held, header, footer, root)
        if piece is None:
            return None
        pieces.append(piece)
        held, header, start = [], (), end
    if not first and not _GAP.fullmatch(text, 0, _start(tree, root.body[0])):
        return None
    if not last and ends[-1] != len(text):
        return None
    return pieces


def _ends(tree: SyntaxTree) -> list[int]:
    """Return where the last line of each statement of a module ends, its newline included."""
    found = []
    for statement in tree.root.body:
        newline = tree.text.find("\n", tree.span(statement).end)
        found.append(newline + 1 if newline >= 0 else len(tree.text))
    return found


def _start(tree: SyntaxTree, statement: cst.CSTNode) -> int:
    """Return where a statement begins, its decorators included."""
    decorators: Sequence[cst.Decorator] = getattr(statement, "decorators", ())
    return tree.span(decorators[0] if decorators else statement).start


def _piece(
    text: str,
    statements: Sequence[Any],
    header: Sequence[cst.EmptyLine],
    footer: Sequence[cst.EmptyLine],
    root: cst.Module,
) -> _Piece | None:
    """Return the piece of these statements; None if they do not give the text again."""
    code, spans = record([*header, *statements, *footer], root.default_indent, root.default_newline)
    if code != text and code != f"{text}\n":
        return None
    parents: dict[cst.CSTNode, cst.CSTNode] = {}
    nodes, by_type = walk(statements, parents)
    indent = root.default_indent if cst.IndentedBlock in by_type else None
    return _Piece(text, tuple(statements), nodes, parents, by_type, spans, indent, header, footer)


class _Patchwork(SyntaxTree):
    """The syntax tree of a text that is known in pieces."""

    def __init__(self, text: str, pieces: Sequence[_Piece]) -> None:
        self._pieces = pieces
        indents = [piece.indent for piece in pieces if piece.indent is not None]
        with unchecked():
            root = cst.Module(
                body=[statement for piece in pieces for statement in piece.statements],
                header=pieces[0].header,
                footer=pieces[-1].footer,
                default_indent=indents[0] if indents else " " * 4,
                has_trailing_newline=text.endswith("\n"),
            )
        super().__init__(text, root)
        vars(self)["_spans"] = _Spans(text, root, pieces)

    def _walk(self) -> None:
        root = self.root
        self.order.update(zip(chain([root], *(piece.nodes for piece in self._pieces)), count(), strict=False))
        self._by_type[cst.Module] = [root]
        for piece in self._pieces:
            self.parents.update(piece.parents)
            self.parents.update(dict.fromkeys(piece.statements, root))
            for kind, nodes in piece.by_type.items():
                self._by_type.setdefault(kind, []).extend(nodes)

    @cached_property
    def comments(self) -> list[Span]:
        """Where the comments are, in source order."""
        spans = self._spans
        return sorted(
            spans[node] for piece in self._pieces for node in piece.spans if isinstance(node, cst.Comment)
        )


class _Spans(dict[cst.CSTNode, Span]):
    """Where nodes are, computed when asked for."""

    def __init__(self, text: str, root: cst.Module, pieces: Sequence[_Piece]) -> None:
        super().__init__({root: Span(0, len(text))})
        self._placed: list[tuple[int, _Piece]] = []
        start = 0
        for piece in pieces:
            self._placed.append((start, piece))
            start += len(piece.text)
        self._hint = 0

    def __missing__(self, node: cst.CSTNode) -> Span:
        # The next one asked for is often in the same piece.
        for number in chain((self._hint,), range(len(self._placed))):
            start, piece = self._placed[number]
            span = piece.spans.get(node)
            if span is not None:
                self._hint = number
                self[node] = placed = Span(start + span.start, start + span.end)
                return placed
        raise KeyError(node)

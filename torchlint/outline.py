"""A syntax tree without its layout, made from the tree of the interpreter's own parser.

LibCST takes ten times as long as the interpreter to read a file, most of it for white space, commas and
comments, of which findings and their edits need little. An outline has the nodes that ``SyntaxTree`` has, of
the same classes and in the same order, but their layout is left out. The rules run on it unchanged; where
things stand, it knows from the interpreter, and comments and parentheses from the text. Whatever an outline
cannot tell raises :class:`NotOutlinedError` or, for a field that holds layout, ``AttributeError``: either
means the same, that the file has to be read in full.
"""

from __future__ import annotations

import ast
import re
import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter
from types import SimpleNamespace

import libcst as cst

from torchlint.conversion import (
    Converter,
    Lines,
    NotOutlinedError,
    before_gap,
    behind_gap,
    is_parenthesized,
)
from torchlint.diagnostics import Span
from torchlint.nodes import unchecked
from torchlint.source import NEWLINE, with_line_feeds
from torchlint.syntax import Ground, SyntaxTree, record

# What stands in front of the name of a function or class.
_SIGN = re.compile(r"[\s\\]*([^\w\s\\]+=)")
_FROM = re.compile(r"from[\s\\.]*")
_DEFINITION = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+")
# The place of a node of the interpreter's tree; rows are counted from 1.
_place = attrgetter("lineno", "col_offset", "end_lineno", "end_col_offset")
_NOWHERE = SimpleNamespace(lineno=0, col_offset=0, end_lineno=0, end_col_offset=0)


class Outline(SyntaxTree):
    """The code of a file as LibCST nodes without layout.

    ``source`` and ``span`` are known where the interpreter tells them, or the nodes around.

    Raises:
        NotOutlinedError: the interpreter refuses the text, or it holds syntax that is not outlined.
    """

    def __init__(self, text: str, ground: Ground | None = None) -> None:
        self._lines = Lines(text)
        try:
            with warnings.catch_warnings(), unchecked():
                warnings.simplefilter("ignore")
                converter = Converter(text, self._lines)
                root = converter.module(ast.parse(with_line_feeds(text)))
        except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as error:
            raise NotOutlinedError(type(error).__name__) from error
        self._cases = converter.cases
        self._read: dict[cst.CSTNode, dict[cst.CSTNode, Span]] = {}
        self._origins = converter.origins
        super().__init__(text, root, ground)

    def _numbered(self, nodes: Sequence[cst.CSTNode]) -> None:
        super()._numbered(nodes)
        # Only the places are kept: the interpreter's tree takes as much memory as this one.
        origins = map(self._origins.get, nodes, repeat(_NOWHERE))
        self._places = array("i", chain.from_iterable(map(_place, origins)))
        """Rows and columns of the start and the end of each node by its number; rows are 0 if unknown."""
        del self._origins

    def _told(self, node: cst.CSTNode) -> tuple[int, int] | None:
        """Return from where to where a node reaches as the interpreter tells it; None if it does not."""
        number = self.order.get(node)
        if number is None:
            return None
        at = 4 * (number - self.first)
        row, column, end_row, end_column = self._places[at : at + 4]
        if not row:
            return None
        return self._lines.offset(row, column), self._lines.offset(end_row, end_column)

    @cached_property
    def _spans(self) -> dict[cst.CSTNode, Span]:
        raise NotOutlinedError("positions of punctuation")

    @cached_property
    def _comments(self) -> list[Span]:
        """Where the comments are, in source order: from a sign outside of all strings to the end of its line.

        Raises:
            NotOutlinedError: a string of several parts may hold one.
        """
        text = self.text
        found: list[Span] = []
        if "#" not in text:
            return found
        strings = iter(sorted(self._strings()))
        string = next(strings, None)
        at = text.find("#")
        while at >= 0:
            while string is not None and string.end <= at:
                string = next(strings, None)
            if string is not None and string.start <= at:
                at = text.find("#", string.end)
                continue
            line_end = NEWLINE.search(text, at)
            end = line_end.start() if line_end else len(text)
            found.append(Span(at, end))
            at = text.find("#", end)
        return found

    def _strings(self) -> Iterator[Span]:
        for node in self.nodes(cst.SimpleString, cst.ConcatenatedString, cst.FormattedString):
            told = self._told(node)
            if told is None:
                continue
            start, end = told
            if not isinstance(node, cst.SimpleString) and "#" in self.text[start:end]:
                raise NotOutlinedError("a comment among strings")
            yield Span(start, end)

    def span(self, node: cst.CSTNode) -> Span:
        """Return where an expression, an argument, a statement or a block stands, without its parentheses.

        Raises:
            NotOutlinedError: the place of any other node, or one that only LibCST can tell.
        """
        self._here(node)
        self.note_place()
        told = self._told(node)
        if told is None:
            return self._derived(node)
        start, end = told
        if isinstance(node, cst.GeneratorExp) or (
            isinstance(node, cst.Tuple) and self._has_own_pair(node, start)
        ):
            return self._within(start, end)
        if not isinstance(node, cst.BaseCompoundStatement) or self.text[end - 1] != ";":
            return Span(start, end)
        # To the interpreter, ``if a: b;`` ends behind the semicolon.
        raise NotOutlinedError("a semicolon")

    def _derived(self, node: cst.CSTNode) -> Span:
        """Return the place of a node that the interpreter has none for, from those beside it."""
        match node:
            case cst.SimpleStatementLine(body=[first, *_]):
                return Span(self.span(first).start, self.span(node.body[-1]).end)
            case cst.IndentedBlock(body=[first, *_]) | cst.SimpleStatementSuite(body=[first, *_]):
                return Span(self.span(first).start, self.span(node.body[-1]).end)
            case cst.Arg(keyword=None, star="") | cst.Element():
                return self.outer_span(node.value)
            case cst.BooleanOperation():
                return Span(self.outer_span(node.left).start, self.outer_span(node.right).end)
            case cst.Decorator():
                sign = before_gap(self.text, self.outer_span(node.decorator).start) - 1
                return Span(sign, self.outer_span(node.decorator).end)
            case cst.BaseAugOp():
                holder = self.parents[node]
                assert isinstance(holder, cst.AugAssign)
                found = _SIGN.match(self.text, self.outer_span(holder.target).end)
                if found is not None:
                    return Span(*found.span(1))
            case cst.MatchCase():
                return Span(self._cases[node], self.span(node.body).end)
            case cst.Module():
                return Span(0, len(self.text))
            case cst.Name() | cst.Attribute() if (importing := self._importing(node)) is not None:
                return self._of_imported(node, importing)
            case cst.Name():
                return self._of_name(node)
        return self._read_places(node)[node]

    def _importing(self, node: cst.CSTNode) -> cst.ImportFrom | cst.ImportAlias | None:
        """Return what imports the name, dotted or not, that a node is or is part of;
        None for any other node.
        """
        whole, holder = node, self.parents.get(node)
        while isinstance(holder, cst.Attribute) and self._told(holder) is None:
            whole, holder = holder, self.parents.get(holder)
        match holder:
            case cst.ImportFrom(module=named) | cst.ImportAlias(name=named) if named is whole:
                return holder
            case _:
                return None

    def _of_imported(self, node: cst.Name | cst.Attribute, holder: cst.ImportFrom | cst.ImportAlias) -> Span:
        """Return the place of the name behind ``from`` or ``import``, or of a part of it."""
        start = at = self.span(holder).start
        if isinstance(holder, cst.ImportFrom) and (found := _FROM.match(self.text, at)) is not None:
            start = at = found.end()
        places: dict[cst.CSTNode, Span] = {}
        parts: list[cst.CSTNode] = []
        part: cst.CSTNode | None = holder.module if isinstance(holder, cst.ImportFrom) else holder.name
        while part is not None:
            parts.append(part)
            part = part.value if isinstance(part, cst.Attribute) else None
        for part in reversed(parts):
            if isinstance(part, cst.Attribute):
                at = behind_gap(self.text, behind_gap(self.text, at) + 1)
            name = part.attr if isinstance(part, cst.Attribute) else part
            if not isinstance(name, cst.Name) or not self.text.startswith(name.value, at):
                # The interpreter normalises names.
                raise NotOutlinedError("the place of a name")
            places[name] = Span(at, at + len(name.value))
            at += len(name.value)
            places[part] = Span(start, at)
        return places[node]

    def _of_name(self, node: cst.Name) -> Span:
        """Return the place of a name that is part of something longer: an attribute, an argument,
        a definition.
        """
        match self.parents.get(node):
            case cst.Attribute(attr=attribute) as holder if attribute is node and self._told(holder):
                end = self.span(holder).end
                start = end - len(node.value)
            case cst.Arg(keyword=keyword) as holder if keyword is node:
                start = self.span(holder).start
                end = start + len(node.value)
            case cst.FunctionDef(name=name) | cst.ClassDef(name=name) as holder if name is node:
                head = _DEFINITION.match(self.text, self.span(holder).start)
                start = head.end() if head else 0
                end = start + len(node.value)
            case _:
                return self._read_places(node)[node]
        # The interpreter normalises names.
        if self.text[start:end] != node.value:
            raise NotOutlinedError("the place of a name")
        return Span(start, end)

    def _read_places(self, node: cst.CSTNode) -> Mapping[cst.CSTNode, Span]:
        """Return the places in the string that holds ``node``, which LibCST has read with its layout."""
        root: cst.CSTNode | None = node
        told = None
        while root is not None and (told := self._told(root)) is None:
            root = self.parents.get(root)
        if told is None or not isinstance(root, (cst.FormattedString, cst.ConcatenatedString)):
            raise NotOutlinedError(f"the place of a {type(node).__name__}")
        if root not in self._read:
            code, spans = record([root], self.root.default_indent, self.root.default_newline)
            start, end = told
            if code != self.text[start:end]:
                raise NotOutlinedError("the layout of a string")
            self._read[root] = {
                part: Span(start + span.start, start + span.end) for part, span in spans.items()
            }
        return self._read[root]

    def outer_span(self, node: cst.CSTNode) -> Span:
        """Return the ``span``, with the parentheses that the expression itself owns.

        Raises:
            NotOutlinedError: the place of any other node.
        """
        self._here(node)
        self.note_place()
        if not isinstance(node, cst.BaseExpression):
            return self.span(node)
        pairs = self._pairs(node)
        return pairs[-1] if pairs else self.span(node)

    def parentheses(self, node: cst.BaseExpression) -> int:
        """Return how many pairs of parentheses an expression owns.

        Raises:
            NotOutlinedError: it has no place.
        """
        return len(self._pairs(node))

    def _pairs(self, node: cst.BaseExpression) -> list[Span]:
        """Return the parentheses that an expression owns, the innermost pair first."""
        text = self.text
        told = self._told(node)
        if told is None and not isinstance(node, cst.BooleanOperation):
            return self._pairs_read(node)
        if told is None:
            inner = self.span(node)
            start, end = inner.start, inner.end
        else:
            start, end = told
        pairs = []
        if isinstance(node, (cst.GeneratorExp, cst.Tuple)):
            if self._has_own_pair(node, start):
                pairs.append(Span(start, end))
            elif isinstance(node, cst.GeneratorExp):
                return []
        while True:
            behind = behind_gap(text, end)
            if behind == len(text) or text[behind] != ")":
                break
            before = before_gap(text, start)
            if not before or text[before - 1] != "(":
                break
            start, end = before - 1, behind + 1
            pairs.append(Span(start, end))
        if pairs and self._is_enclosed(node):
            pairs.pop()
        return pairs

    def _pairs_read(self, node: cst.BaseExpression) -> list[Span]:
        if isinstance(node, cst.Name) and isinstance(
            self.parents.get(node), (cst.Attribute, cst.Arg, cst.FunctionDef, cst.ClassDef)
        ):
            return []
        if self._importing(node) is not None:
            return []
        places = self._read_places(node)
        return [
            Span(places[left].start, places[right].end)
            for left, right in zip(reversed(node.lpar), node.rpar, strict=True)
        ]

    def _has_own_pair(self, node: cst.GeneratorExp | cst.Tuple, start: int) -> bool:
        """Return whether the parentheses at the ends of what the interpreter takes
        for ``node`` are its own.
        """
        if isinstance(node, cst.Tuple):
            told = self._told(node)
            assert told is not None
            first = node.elements[0] if node.elements else None
            begun = first if first is None or isinstance(first, cst.StarredElement) else first.value
            return is_parenthesized(self.text, told, None if begun is None else self._told(begun))
        # To the interpreter, the parentheses of a call belong to a generator that it is given alone.
        alone = isinstance(self.parents.get(node), cst.Arg) and self._is_enclosed(node)
        return not alone or self.text[before_gap(self.text, start) - 1] == "("

    def _within(self, start: int, end: int) -> Span:
        """Return what is between two parentheses; a comma at the end may have white space of its own."""
        inner, last = behind_gap(self.text, start + 1), before_gap(self.text, end - 1)
        if inner > last or (self.text[last - 1] == "," and last < end - 1):
            raise NotOutlinedError("the white space behind a comma")
        return Span(inner, last)

    def _is_enclosed(self, node: cst.CSTNode) -> bool:
        """Return whether the outermost parentheses around ``node`` may belong to what holds it."""
        holder = self.parents.get(node)
        if isinstance(holder, (cst.MatchValue, cst.MatchSingleton)):
            return self._is_alone_in_class(holder)
        if isinstance(holder, cst.WithItem):
            return holder.asname is None and len(self.parents[holder].items) == 1  # type: ignore[attr-defined]
        if isinstance(holder, cst.Arg):
            around = self.parents[holder]
            arguments = around.args if isinstance(around, cst.Call) else ()
            if isinstance(around, cst.ClassDef):
                arguments = [*around.bases, *around.keywords]
            return len(arguments) == 1 and holder.keyword is None and not holder.star
        return False

    def _is_alone_in_class(self, pattern: cst.MatchPattern) -> bool:
        """Return whether a pattern is all that is asked of a class: ``case Point(0)``."""
        element = self.parents[pattern]
        around = self.parents[element]
        alone = isinstance(around, cst.MatchClass) and len(around.patterns) + len(around.kwds) == 1
        return alone and isinstance(element, cst.MatchSequenceElement)

    def _source(self, node: cst.CSTNode) -> str:
        """Return the text of ``node``.

        Raises:
            NotOutlinedError: only LibCST can tell.
        """
        if isinstance(node, cst.Name) and self._told(node) is None:
            return node.value
        if isinstance(node, (cst.IndentedBlock, cst.SimpleStatementSuite)):
            first, last = self.outer_span(node.body[0]), self.outer_span(node.body[-1])
            return self.text[first.start : last.end]
        named = isinstance(node, cst.Attribute)  # a module, in an import
        if isinstance(node, cst.BaseExpression) and not named and self._told(node) is None:
            try:
                # The parts of f-strings and of joined ones, which LibCST has read.
                return self.root.code_for_node(node)
            except AttributeError as error:
                raise NotOutlinedError(f"the text of a {type(node).__name__}") from error
        span = self.outer_span(node)
        return self.text[span.start : span.end]

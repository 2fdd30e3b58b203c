"""A syntax tree without its layout, made from the tree of the interpreter's own parser.

LibCST takes ten times as long as the interpreter to read a file, most of it for white space, commas and
comments, which only findings and their edits need. An outline has the nodes that ``SyntaxTree`` has, of the
same classes and in the same order, but their layout is left out. The rules run on it unchanged, and only a
file in which one of them finds something is read again in full. Whatever an outline cannot tell raises
:class:`NotOutlinedError` or, for a field that holds layout, ``AttributeError``: either means the same, that
the file has to be read in full.
"""

from __future__ import annotations

import ast
import warnings
from functools import cached_property
from typing import Any

import libcst as cst

from torchlint.conversion import Converter, Lines, NotOutlinedError, before_gap, behind_gap
from torchlint.diagnostics import Span
from torchlint.nodes import unchecked
from torchlint.syntax import SyntaxTree


class Outline(SyntaxTree):
    """The code of a file as LibCST nodes without layout.

    ``source`` and ``span`` are known for expressions and simple statements only.

    Raises:
        NotOutlinedError: the interpreter refuses the text, or it holds syntax that is not outlined.
    """

    def __init__(self, text: str) -> None:
        self._lines = Lines(text)
        try:
            with warnings.catch_warnings(), unchecked():
                warnings.simplefilter("ignore")
                converter = Converter(text, self._lines)
                root = converter.module(ast.parse(text))
        except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as error:
            raise NotOutlinedError(type(error).__name__) from error
        self._origins = converter.origins
        super().__init__(text, root)

    @cached_property
    def _spans(self) -> dict[cst.CSTNode, Span]:
        raise NotOutlinedError("positions of punctuation")

    @cached_property
    def comments(self) -> list[Span]:
        """The places of the comments are not in an outline.

        Raises:
            NotOutlinedError: always, unless the text cannot hold any.
        """
        if "#" not in self.text:
            return []
        raise NotOutlinedError("comments")

    def span(self, node: cst.CSTNode) -> Span:
        """Where an expression or a simple statement stands, without its parentheses.

        Raises:
            NotOutlinedError: the place of any other node.
        """
        origin = self._origin(node)
        start, end = self._lines.span(origin)
        return Span(start, end)

    def outer_span(self, node: cst.CSTNode) -> Span:
        """As ``span``, with the parentheses around an expression that are not those of a call.

        Raises:
            NotOutlinedError: the place of any other node.
        """
        inner = self.span(node)
        start, end = inner.start, inner.end
        text = self.text
        if not isinstance(node, cst.BaseExpression):
            return inner
        if isinstance(node, cst.GeneratorExp) and self._is_enclosed(node):
            # To the interpreter, the parentheses of a call belong to what it is given alone.
            if text[before_gap(text, start) - 1] == "(":
                return inner
            return Span(behind_gap(text, start + 1), before_gap(text, end - 1))
        pairs = []
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
        return pairs[-1] if pairs else inner

    def _is_enclosed(self, node: cst.CSTNode) -> bool:
        """Whether the outermost parentheses around ``node`` may belong to what holds it."""
        holder = self.parents.get(node)
        if isinstance(holder, cst.WithItem):
            return holder.asname is None and len(self.parents[holder].items) == 1  # type: ignore[attr-defined]
        if isinstance(holder, cst.Arg):
            around = self.parents[holder]
            arguments = around.args if isinstance(around, cst.Call) else ()
            if isinstance(around, cst.ClassDef):
                arguments = [*around.bases, *around.keywords]
            return len(arguments) == 1 and holder.keyword is None and not holder.star
        return False

    def source(self, node: cst.CSTNode) -> str:
        """The text of ``node``.

        Raises:
            NotOutlinedError: only LibCST can tell.
        """
        if isinstance(node, cst.Name) and node not in self._origins:
            return node.value
        if isinstance(node, (cst.IndentedBlock, cst.SimpleStatementSuite)):
            first, last = self.outer_span(node.body[0]), self.outer_span(node.body[-1])
            return self.text[first.start : last.end]
        if isinstance(node, cst.BaseExpression) and node not in self._origins:
            if isinstance(node, cst.Attribute):  # the name of a module
                return f"{self.source(node.value)}.{node.attr.value}"
            try:
                # The parts of f-strings and of joined ones, which LibCST has read.
                return self.root.code_for_node(node)
            except AttributeError as error:
                raise NotOutlinedError(f"the text of a {type(node).__name__}") from error
        span = self.outer_span(node)
        return self.text[span.start : span.end]

    def _origin(self, node: cst.CSTNode) -> Any:
        origin = self._origins.get(node)
        if origin is None:
            if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                return self._origin(node.body[0])
            raise NotOutlinedError(f"the place of a {type(node).__name__}")
        return origin

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
import re
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, TypeVar, cast

import libcst as cst

from torchlint.diagnostics import Span
from torchlint.nodes import unchecked
from torchlint.source import NEWLINE
from torchlint.syntax import SyntaxTree

_Made = TypeVar("_Made", bound=cst.CSTNode)

_ABSENT = cst.MaybeSentinel.DEFAULT
# One literal and no more: what stands beside it would make a concatenation.
_ONE_STRING = re.compile(
    r"""[rRbBuU]{0,2}(?:'''(?:[^\\]|\\.)*?'''|\"""(?:[^\\]|\\.)*?\"""|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""",
    re.DOTALL,
)
_GAP = re.compile(r"(?:[ \t\f\r\n]|\\(?=[\r\n])|#[^\r\n]*)*")
_GAP_BEFORE: Final = " \t\f\r\n\\"

_BINARY: dict[type, tuple[type[cst.CSTNode], type[cst.CSTNode]]] = {
    ast.Add: (cst.Add, cst.AddAssign),
    ast.Sub: (cst.Subtract, cst.SubtractAssign),
    ast.Mult: (cst.Multiply, cst.MultiplyAssign),
    ast.MatMult: (cst.MatrixMultiply, cst.MatrixMultiplyAssign),
    ast.Div: (cst.Divide, cst.DivideAssign),
    ast.FloorDiv: (cst.FloorDivide, cst.FloorDivideAssign),
    ast.Mod: (cst.Modulo, cst.ModuloAssign),
    ast.Pow: (cst.Power, cst.PowerAssign),
    ast.LShift: (cst.LeftShift, cst.LeftShiftAssign),
    ast.RShift: (cst.RightShift, cst.RightShiftAssign),
    ast.BitAnd: (cst.BitAnd, cst.BitAndAssign),
    ast.BitOr: (cst.BitOr, cst.BitOrAssign),
    ast.BitXor: (cst.BitXor, cst.BitXorAssign),
}
_UNARY: dict[type, type[cst.CSTNode]] = {
    ast.UAdd: cst.Plus,
    ast.USub: cst.Minus,
    ast.Not: cst.Not,
    ast.Invert: cst.BitInvert,
}
_COMPARISONS: dict[type, type[cst.CSTNode]] = {
    ast.Eq: cst.Equal,
    ast.NotEq: cst.NotEqual,
    ast.Lt: cst.LessThan,
    ast.LtE: cst.LessThanEqual,
    ast.Gt: cst.GreaterThan,
    ast.GtE: cst.GreaterThanEqual,
    ast.Is: cst.Is,
    ast.IsNot: cst.IsNot,
    ast.In: cst.In,
    ast.NotIn: cst.NotIn,
}
_SIMPLE = (
    *(ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Delete, ast.Raise, ast.Assert),
    *(ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue),
)


class NotOutlinedError(Exception):
    """Something that an outline cannot tell; the file has to be read in full."""


class Outline(SyntaxTree):
    """The code of a file as LibCST nodes without layout.

    ``source`` and ``span`` are known for expressions and simple statements only.

    Raises:
        NotOutlinedError: the interpreter refuses the text, or it holds syntax that is not outlined.
    """

    def __init__(self, text: str) -> None:
        self._lines = _Lines(text)
        try:
            with warnings.catch_warnings(), unchecked():
                warnings.simplefilter("ignore")
                converter = _Converter(text, self._lines)
                root = converter.module(ast.parse(text))
        except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as error:
            raise NotOutlinedError(type(error).__name__) from error
        self._origins = converter.origins
        super().__init__(text, root)

    @cached_property
    def _spans(self) -> dict[cst.CSTNode, Span]:
        raise NotOutlinedError("positions of punctuation")

    @property
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
            before = text[:start].rstrip(_GAP_BEFORE)
            return inner if before.endswith("(") else Span(start + 1, end - 1)
        pairs = []
        while True:
            behind = cast("re.Match[str]", _GAP.match(text, end)).end()
            if behind == len(text) or text[behind] != ")":
                break
            before = start
            while before and text[before - 1] in _GAP_BEFORE:
                before -= 1
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
            # The parts of f-strings and of joined ones, which LibCST has read.
            return self.root.code_for_node(node)
        span = self.outer_span(node)
        return self.text[span.start : span.end]

    def _origin(self, node: cst.CSTNode) -> Any:
        origin = self._origins.get(node)
        if origin is None:
            if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
                return self._origin(node.body[0])
            raise NotOutlinedError(f"the place of a {type(node).__name__}")
        return origin


class _Lines:
    """From the rows and byte columns of the interpreter to offsets in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(found.end() for found in NEWLINE.finditer(text))]
        self._ascii = text.isascii()

    def offset(self, row: int, column: int) -> int:
        """The offset of the character at a row, from 1, and a column in bytes of UTF-8, from 0."""
        start = self.starts[row - 1]
        if self._ascii:
            return start + column
        end = self.starts[row] if row < len(self.starts) else len(self.text)
        line = self.text[start:end]
        if line.isascii():
            return start + column
        return start + len(line.encode()[:column].decode())

    def row(self, offset: int) -> int:
        """The row, from 1, of the character at an offset."""
        return bisect_left(self.starts, offset + 1)

    def start(self, node: Any) -> int:
        """Where a node of the interpreter's tree starts."""
        return self.offset(node.lineno, node.col_offset)

    def span(self, node: Any) -> tuple[int, int]:
        """Where a node of the interpreter's tree starts and ends."""
        start = self.offset(node.lineno, node.col_offset)
        return start, self.offset(node.end_lineno, node.end_col_offset)


def _new(kind: type[_Made]) -> _Made:
    """A node of a class with no field set."""
    return object.__new__(kind)


class _Converter:
    """Turns the interpreter's tree of one text into nodes of LibCST, and keeps which came from which."""

    def __init__(self, text: str, lines: _Lines) -> None:
        self.text, self.lines = text, lines
        self.origins: dict[cst.CSTNode, ast.AST] = {}
        self._semicolons = ";" in text
        self._continued = "\\\n" in text or "\\\r" in text
        self._expressions: dict[type, Callable[[Any], cst.CSTNode]] = {
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Constant: self._constant,
            ast.Call: self._call,
            ast.BinOp: self._binary,
            ast.BoolOp: self._boolean,
            ast.UnaryOp: self._unary,
            ast.Compare: self._comparison,
            ast.Subscript: self._subscript,
            ast.Tuple: lambda node: self._sequence(node, cst.Tuple),
            ast.List: lambda node: self._sequence(node, cst.List),
            ast.Set: lambda node: self._sequence(node, cst.Set),
            ast.Dict: self._dict,
            ast.JoinedStr: self._written,
            ast.IfExp: self._conditional,
            ast.Lambda: self._lambda,
            ast.ListComp: lambda node: self._comprehension(node, cst.ListComp),
            ast.SetComp: lambda node: self._comprehension(node, cst.SetComp),
            ast.GeneratorExp: lambda node: self._comprehension(node, cst.GeneratorExp),
            ast.DictComp: self._dict_comprehension,
            ast.NamedExpr: self._named,
            ast.Await: self._await,
            ast.Yield: self._yield,
            ast.YieldFrom: self._yield_from,
        }
        self._statements: dict[type, Callable[[Any], cst.CSTNode]] = {
            ast.Expr: self._expression_statement,
            ast.Assign: self._assign,
            ast.AugAssign: self._augmented,
            ast.AnnAssign: self._annotated,
            ast.Return: self._return,
            ast.Delete: self._delete,
            ast.Raise: self._raise,
            ast.Assert: self._assert,
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Global: lambda node: self._scope(node, cst.Global),
            ast.Nonlocal: lambda node: self._scope(node, cst.Nonlocal),
            ast.Pass: lambda node: _new(cst.Pass),
            ast.Break: lambda node: _new(cst.Break),
            ast.Continue: lambda node: _new(cst.Continue),
            ast.If: self._if,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.Try: lambda node: self._try(node, cst.Try, cst.ExceptHandler),
            ast.FunctionDef: self._function,
            ast.AsyncFunctionDef: self._function,
            ast.ClassDef: self._class,
        }
        if hasattr(ast, "TryStar"):
            self._statements[ast.TryStar] = lambda node: self._try(node, cst.TryStar, cst.ExceptStarHandler)

    def module(self, node: ast.Module) -> cst.Module:
        """The whole file."""
        return cst.Module(cast("Sequence[Any]", self._body(node.body)))

    # --- statements ------------------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> list[cst.CSTNode]:
        made: list[cst.CSTNode] = []
        line: cst.SimpleStatementLine | None = None
        behind: ast.stmt | None = None
        for statement in statements:
            kind = statement.__class__
            node = self._statements[kind](statement)
            self.origins[node] = statement
            if kind not in _SIMPLE_KINDS:
                made.append(node)
                line = None
                continue
            if line is not None and behind is not None and self._shares_line(behind, statement):
                cast("list[Any]", line.body).append(node)
            else:
                line = _new(cst.SimpleStatementLine)
                line.body = [node]  # type: ignore[misc,list-item]
                made.append(line)
            behind = statement
        return made

    def _shares_line(self, one: ast.stmt, other: ast.stmt) -> bool:
        if not self._semicolons:
            return False
        return (
            self.text[self.lines.span(one)[1] : self.lines.start(other)].lstrip(_GAP_BEFORE).startswith(";")
        )

    def _block(self, statements: Sequence[ast.stmt]) -> cst.CSTNode:
        first = statements[0]
        body = self._body(statements)
        if first.__class__ in _SIMPLE_KINDS and self._follows_colon(first):
            if len(body) != 1:
                raise NotOutlinedError("statements behind a colon")
            suite = _new(cst.SimpleStatementSuite)
            suite.leading_whitespace = _ABSENT  # type: ignore[misc,assignment]
            suite.body = cast("cst.SimpleStatementLine", body[0]).body  # type: ignore[misc]
            return suite
        block = _new(cst.IndentedBlock)
        block.body = body  # type: ignore[misc,assignment]
        return block

    def _follows_colon(self, first: ast.stmt) -> bool:
        row = first.lineno
        start = self.lines.starts[row - 1]
        before = self.text[start : start + first.col_offset]
        if before and not before.isspace():
            return True
        if self._continued and self.text[:start].rstrip("\r\n").endswith("\\"):
            raise NotOutlinedError("a continued line")
        return False

    def _expression_statement(self, node: ast.Expr) -> cst.Expr:
        made = _new(cst.Expr)
        made.value = self._expression(node.value)  # type: ignore[misc]
        return made

    def _assign(self, node: ast.Assign) -> cst.Assign:
        made = _new(cst.Assign)
        targets = []
        for target in node.targets:
            holder = _new(cst.AssignTarget)
            holder.target = self._expression(target)  # type: ignore[misc,assignment]
            targets.append(holder)
        made.targets = targets  # type: ignore[misc]
        made.value = self._expression(node.value)  # type: ignore[misc]
        return made

    def _augmented(self, node: ast.AugAssign) -> cst.AugAssign:
        made = _new(cst.AugAssign)
        made.target = self._expression(node.target)  # type: ignore[misc,assignment]
        made.operator = _new(_BINARY[node.op.__class__][1])  # type: ignore[misc,assignment]
        made.value = self._expression(node.value)  # type: ignore[misc]
        return made

    def _annotated(self, node: ast.AnnAssign) -> cst.AnnAssign:
        made = _new(cst.AnnAssign)
        made.target = self._expression(node.target)  # type: ignore[misc,assignment]
        made.annotation = self._annotation(node.annotation)  # type: ignore[misc]
        made.value = self._optional(node.value)  # type: ignore[misc]
        return made

    def _annotation(self, node: ast.expr) -> cst.Annotation:
        made = _new(cst.Annotation)
        made.annotation = self._expression(node)  # type: ignore[misc]
        return made

    def _return(self, node: ast.Return) -> cst.Return:
        made = _new(cst.Return)
        made.value = self._optional(node.value)  # type: ignore[misc]
        return made

    def _delete(self, node: ast.Delete) -> cst.Del:
        made = _new(cst.Del)
        if len(node.targets) == 1:
            made.target = self._expression(node.targets[0])  # type: ignore[misc,assignment]
            return made
        several = _new(cst.Tuple)
        several.elements = [self._element(target) for target in node.targets]  # type: ignore[misc]
        made.target = several  # type: ignore[misc]
        return made

    def _raise(self, node: ast.Raise) -> cst.Raise:
        made = _new(cst.Raise)
        made.exc = self._optional(node.exc)  # type: ignore[misc]
        made.cause = None if node.cause is None else self._from(node.cause)  # type: ignore[misc]
        return made

    def _from(self, node: ast.expr) -> cst.From:
        made = _new(cst.From)
        made.item = self._expression(node)  # type: ignore[misc]
        return made

    def _assert(self, node: ast.Assert) -> cst.Assert:
        made = _new(cst.Assert)
        made.test = self._expression(node.test)  # type: ignore[misc]
        made.msg = self._optional(node.msg)  # type: ignore[misc]
        return made

    def _import(self, node: ast.Import) -> cst.Import:
        made = _new(cst.Import)
        made.names = [self._alias(alias) for alias in node.names]  # type: ignore[misc]
        return made

    def _import_from(self, node: ast.ImportFrom) -> cst.ImportFrom:
        made = _new(cst.ImportFrom)
        made.module = _dotted(node.module) if node.module else None  # type: ignore[misc]
        made.relative = [_new(cst.Dot) for _ in range(node.level)]  # type: ignore[misc]
        if node.names[0].name == "*":
            made.names = _new(cst.ImportStar)  # type: ignore[misc]
        else:
            made.names = [self._alias(alias) for alias in node.names]  # type: ignore[misc]
        return made

    def _alias(self, alias: ast.alias) -> cst.ImportAlias:
        made = _new(cst.ImportAlias)
        made.name = _dotted(alias.name)  # type: ignore[misc]
        made.asname = None if alias.asname is None else _as(_named(alias.asname))  # type: ignore[misc]
        self.origins[made] = alias
        return made

    def _scope(self, node: ast.Global | ast.Nonlocal, kind: type[cst.Global | cst.Nonlocal]) -> cst.CSTNode:
        made = _new(kind)
        items = []
        for name in node.names:
            item = _new(cst.NameItem)
            item.name = _named(name)  # type: ignore[misc]
            items.append(item)
        made.names = items  # type: ignore[misc]
        return made

    def _if(self, node: ast.If) -> cst.If:
        made = _new(cst.If)
        made.test = self._expression(node.test)  # type: ignore[misc]
        made.body = self._block(node.body)  # type: ignore[misc,assignment]
        made.orelse = None  # type: ignore[misc]
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            start = self.lines.start(node.orelse[0])
            if self.text.startswith("elif", start):
                made.orelse = self._if(node.orelse[0])  # type: ignore[misc]
                self.origins[made.orelse] = node.orelse[0]
                return made
        if node.orelse:
            made.orelse = self._else(node.orelse)  # type: ignore[misc]
        return made

    def _else(self, statements: Sequence[ast.stmt]) -> cst.Else:
        made = _new(cst.Else)
        made.body = self._block(statements)  # type: ignore[misc,assignment]
        return made

    def _for(self, node: ast.For | ast.AsyncFor) -> cst.For:
        made = _new(cst.For)
        made.target = self._expression(node.target)  # type: ignore[misc,assignment]
        made.iter = self._expression(node.iter)  # type: ignore[misc]
        made.body = self._block(node.body)  # type: ignore[misc,assignment]
        made.orelse = self._else(node.orelse) if node.orelse else None  # type: ignore[misc]
        made.asynchronous = _asynchronous(isinstance(node, ast.AsyncFor))  # type: ignore[misc]
        return made

    def _while(self, node: ast.While) -> cst.While:
        made = _new(cst.While)
        made.test = self._expression(node.test)  # type: ignore[misc]
        made.body = self._block(node.body)  # type: ignore[misc,assignment]
        made.orelse = self._else(node.orelse) if node.orelse else None  # type: ignore[misc]
        return made

    def _with(self, node: ast.With | ast.AsyncWith) -> cst.With:
        made = _new(cst.With)
        items = []
        for item in node.items:
            holder = _new(cst.WithItem)
            holder.item = self._expression(item.context_expr)  # type: ignore[misc]
            target = item.optional_vars
            holder.asname = None if target is None else _as(self._expression(target))  # type: ignore[misc]
            items.append(holder)
        made.items = items  # type: ignore[misc]
        made.body = self._block(node.body)  # type: ignore[misc,assignment]
        made.asynchronous = _asynchronous(isinstance(node, ast.AsyncWith))  # type: ignore[misc]
        return made

    def _try(self, node: Any, kind: Any, handler_kind: Any) -> cst.CSTNode:
        made = _new(kind)
        made.body = self._block(node.body)
        handlers = []
        for handler in node.handlers:
            caught = _new(handler_kind)
            caught.type = self._optional(handler.type)
            caught.name = None if handler.name is None else _as(_named(handler.name))
            caught.body = self._block(handler.body)
            self.origins[caught] = handler
            handlers.append(caught)
        made.handlers = handlers
        made.orelse = self._else(node.orelse) if node.orelse else None
        made.finalbody = None
        if node.finalbody:
            made.finalbody = _new(cst.Finally)
            made.finalbody.body = self._block(node.finalbody)
        return cast("cst.CSTNode", made)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> cst.FunctionDef:
        if getattr(node, "type_params", None):
            raise NotOutlinedError("type parameters")
        made = _new(cst.FunctionDef)
        made.name = _named(node.name)  # type: ignore[misc]
        made.params = self._parameters(node.args)  # type: ignore[misc]
        made.body = self._block(node.body)  # type: ignore[misc,assignment]
        made.decorators = self._decorators(node.decorator_list)  # type: ignore[misc]
        made.returns = None if node.returns is None else self._annotation(node.returns)  # type: ignore[misc]
        made.asynchronous = _asynchronous(isinstance(node, ast.AsyncFunctionDef))  # type: ignore[misc]
        made.type_parameters = None  # type: ignore[misc]
        return made

    def _class(self, node: ast.ClassDef) -> cst.ClassDef:
        if getattr(node, "type_params", None):
            raise NotOutlinedError("type parameters")
        made = _new(cst.ClassDef)
        made.name = _named(node.name)  # type: ignore[misc]
        made.body = self._block(node.body)  # type: ignore[misc,assignment]
        given = self._arguments(node.bases, node.keywords)
        # LibCST takes all for keywords from the first one on.
        first = next((i for i, arg in enumerate(given) if arg.keyword or arg.star == "**"), len(given))
        made.bases, made.keywords = given[:first], given[first:]  # type: ignore[misc]
        made.decorators = self._decorators(node.decorator_list)  # type: ignore[misc]
        made.type_parameters = None  # type: ignore[misc]
        return made

    def _decorators(self, expressions: Sequence[ast.expr]) -> list[cst.Decorator]:
        made = []
        for expression in expressions:
            decorator = _new(cst.Decorator)
            decorator.decorator = self._expression(expression)  # type: ignore[misc]
            made.append(decorator)
        return made

    def _parameters(self, node: ast.arguments) -> cst.Parameters:
        made = _new(cst.Parameters)
        positional = [*node.posonlyargs, *node.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.defaults))
        parameters = list(map(self._parameter, positional, [*defaults, *node.defaults]))
        count = len(node.posonlyargs)
        made.posonly_params = parameters[:count]  # type: ignore[misc]
        made.params = parameters[count:]  # type: ignore[misc]
        made.kwonly_params = list(map(self._parameter, node.kwonlyargs, node.kw_defaults))  # type: ignore[misc]
        made.star_arg = _ABSENT  # type: ignore[misc]
        if node.vararg is not None:
            made.star_arg = self._parameter(node.vararg, None, "*")  # type: ignore[misc]
        elif node.kwonlyargs:
            made.star_arg = _new(cst.ParamStar)  # type: ignore[misc]
        made.star_kwarg = None  # type: ignore[misc]
        if node.kwarg is not None:
            made.star_kwarg = self._parameter(node.kwarg, None, "**")  # type: ignore[misc]
        return made

    def _parameter(self, node: ast.arg, default: ast.expr | None, star: str = "") -> cst.Param:
        made = _new(cst.Param)
        made.name = _named(node.arg)  # type: ignore[misc]
        annotation = node.annotation
        if isinstance(annotation, ast.Starred):
            raise NotOutlinedError("a starred annotation")
        made.annotation = None if annotation is None else self._annotation(annotation)  # type: ignore[misc]
        made.default = self._optional(default)  # type: ignore[misc]
        made.star = star  # type: ignore[misc]
        return made

    # --- expressions -----------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> Any:
        made = self._expressions[node.__class__](node)
        self.origins[made] = node
        return made

    def _optional(self, node: ast.expr | None) -> Any:
        return None if node is None else self._expression(node)

    def _name(self, node: ast.Name) -> cst.Name:
        made = _new(cst.Name)
        made.value = node.id  # type: ignore[misc]
        return made

    def _attribute(self, node: ast.Attribute) -> cst.Attribute:
        made = _new(cst.Attribute)
        made.value = self._expression(node.value)  # type: ignore[misc]
        made.attr = _named(node.attr)  # type: ignore[misc]
        return made

    def _constant(self, node: ast.Constant) -> cst.CSTNode:
        value = node.value
        if value is None or value is True or value is False:
            return _named(str(value))
        if value is ...:
            return _new(cst.Ellipsis)
        start, end = self.lines.span(node)
        text = self.text[start:end]
        if isinstance(value, (str, bytes)):
            if _ONE_STRING.fullmatch(text) is None:
                return self._parsed(text)
            string = _new(cst.SimpleString)
            string.value = text  # type: ignore[misc]
            return string
        kind = {int: cst.Integer, float: cst.Float, complex: cst.Imaginary}[type(value)]
        number = _new(kind)
        number.value = text  # type: ignore[misc]
        return number

    def _written(self, node: ast.expr) -> cst.CSTNode:
        start, end = self.lines.span(node)
        return self._parsed(self.text[start:end])

    def _parsed(self, text: str) -> cst.CSTNode:
        """What is read by LibCST: f-strings and concatenated ones, which may span lines in parentheses."""
        try:
            made = cst.parse_expression(f"({text})")
        except cst.ParserSyntaxError as error:
            raise NotOutlinedError("a string") from error
        made.lpar, made.rpar = (), ()  # type: ignore[misc,attr-defined]
        return made

    def _call(self, node: ast.Call) -> cst.Call:
        made = _new(cst.Call)
        made.func = self._expression(node.func)  # type: ignore[misc]
        made.args = self._arguments(node.args, node.keywords)  # type: ignore[misc]
        return made

    def _arguments(self, positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[cst.Arg]:
        made: list[cst.Arg] = []
        for value in positional:
            arg = _new(cst.Arg)
            arg.keyword = None  # type: ignore[misc]
            if value.__class__ is ast.Starred:
                arg.star = "*"  # type: ignore[misc]
                arg.value = self._expression(value.value)  # type: ignore[misc,attr-defined]
            else:
                arg.star = ""  # type: ignore[misc]
                arg.value = self._expression(value)  # type: ignore[misc]
            made.append(arg)
        for keyword in keywords:
            arg = _new(cst.Arg)
            arg.star = "" if keyword.arg else "**"  # type: ignore[misc]
            arg.keyword = _named(keyword.arg) if keyword.arg else None  # type: ignore[misc]
            arg.value = self._expression(keyword.value)  # type: ignore[misc]
            made.append(arg)
        if keywords and positional and positional[-1].__class__ is ast.Starred:
            # ``f(a=1, *b)``: the interpreter keeps the two kinds apart.
            places = [(node.lineno, node.col_offset) for node in (*positional, *keywords)]
            made = [arg for _, arg in sorted(zip(places, made, strict=True), key=lambda pair: pair[0])]
        return made

    def _binary(self, node: ast.BinOp) -> cst.BinaryOperation:
        made = _new(cst.BinaryOperation)
        made.left = self._expression(node.left)  # type: ignore[misc]
        made.operator = _new(_BINARY[node.op.__class__][0])  # type: ignore[misc,assignment]
        made.right = self._expression(node.right)  # type: ignore[misc]
        return made

    def _boolean(self, node: ast.BoolOp) -> cst.CSTNode:
        kind = cst.And if isinstance(node.op, ast.And) else cst.Or
        made = self._expression(node.values[0])
        for value in node.values[1:]:
            longer = _new(cst.BooleanOperation)
            longer.left = made  # type: ignore[misc]
            longer.operator = _new(kind)  # type: ignore[misc,assignment]
            longer.right = self._expression(value)  # type: ignore[misc]
            made = longer
            if value is not node.values[-1]:
                self.origins[made] = _Stretch(node.values[0], value)
        return cast("cst.CSTNode", made)

    def _unary(self, node: ast.UnaryOp) -> cst.UnaryOperation:
        made = _new(cst.UnaryOperation)
        made.operator = _new(_UNARY[node.op.__class__])  # type: ignore[misc,assignment]
        made.expression = self._expression(node.operand)  # type: ignore[misc]
        return made

    def _comparison(self, node: ast.Compare) -> cst.Comparison:
        made = _new(cst.Comparison)
        made.left = self._expression(node.left)  # type: ignore[misc]
        comparisons = []
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            target = _new(cst.ComparisonTarget)
            target.operator = _new(_COMPARISONS[operator.__class__])  # type: ignore[misc,assignment]
            if isinstance(target.operator, cst.NotEqual):
                target.operator.value = "!="  # type: ignore[misc]
            target.comparator = self._expression(comparator)  # type: ignore[misc]
            comparisons.append(target)
        made.comparisons = comparisons  # type: ignore[misc]
        return made

    def _subscript(self, node: ast.Subscript) -> cst.Subscript:
        made = _new(cst.Subscript)
        made.value = self._expression(node.value)  # type: ignore[misc]
        index = node.slice
        if isinstance(index, ast.Tuple) and not self._is_parenthesized(index):
            made.slice = [self._subscript_element(item) for item in index.elts]  # type: ignore[misc]
        else:
            made.slice = [self._subscript_element(index)]  # type: ignore[misc]
        return made

    def _is_parenthesized(self, node: ast.Tuple) -> bool:
        """Whether a tuple has parentheses of its own; its first element may have some, too."""
        start, end = self.lines.span(node)
        if self.text[start] != "(" or self.text[end - 1] != ")":
            return False
        if not node.elts:
            return True
        inner_start, inner_end = self.lines.span(node.elts[0])
        opened = self.text.count("(", start, inner_start)
        closed = 0
        while True:
            inner_end = cast("re.Match[str]", _GAP.match(self.text, inner_end)).end()
            if inner_end >= end or self.text[inner_end] != ")":
                return opened > closed
            closed, inner_end = closed + 1, inner_end + 1

    def _subscript_element(self, node: ast.expr) -> cst.SubscriptElement:
        made = _new(cst.SubscriptElement)
        if isinstance(node, ast.Slice):
            part = _new(cst.Slice)
            part.lower = self._optional(node.lower)  # type: ignore[misc]
            part.upper = self._optional(node.upper)  # type: ignore[misc]
            part.step = self._optional(node.step)  # type: ignore[misc]
            part.first_colon = part.second_colon = _ABSENT  # type: ignore[misc,assignment]
            made.slice = part  # type: ignore[misc]
            return made
        index = _new(cst.Index)
        starred = isinstance(node, ast.Starred)
        index.star = "*" if starred else None  # type: ignore[misc]
        index.value = self._expression(node.value if isinstance(node, ast.Starred) else node)  # type: ignore[misc]
        made.slice = index  # type: ignore[misc]
        return made

    def _sequence(self, node: Any, kind: Any) -> cst.CSTNode:
        made = _new(kind)
        made.elements = [self._element(item) for item in node.elts]
        return cast("cst.CSTNode", made)

    def _element(self, node: ast.expr) -> cst.Element | cst.StarredElement:
        if isinstance(node, ast.Starred):
            starred = _new(cst.StarredElement)
            starred.value = self._expression(node.value)  # type: ignore[misc]
            self.origins[starred] = node
            return starred
        made = _new(cst.Element)
        made.value = self._expression(node)  # type: ignore[misc]
        return made

    def _dict(self, node: ast.Dict) -> cst.Dict:
        made = _new(cst.Dict)
        elements: list[cst.BaseDictElement] = []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                starred = _new(cst.StarredDictElement)
                starred.value = self._expression(value)  # type: ignore[misc]
                elements.append(starred)
            else:
                element = _new(cst.DictElement)
                element.key = self._expression(key)  # type: ignore[misc]
                element.value = self._expression(value)  # type: ignore[misc]
                elements.append(element)
        made.elements = elements  # type: ignore[misc]
        return made

    def _conditional(self, node: ast.IfExp) -> cst.IfExp:
        made = _new(cst.IfExp)
        made.test = self._expression(node.test)  # type: ignore[misc]
        made.body = self._expression(node.body)  # type: ignore[misc]
        made.orelse = self._expression(node.orelse)  # type: ignore[misc]
        return made

    def _lambda(self, node: ast.Lambda) -> cst.Lambda:
        made = _new(cst.Lambda)
        made.params = self._parameters(node.args)  # type: ignore[misc]
        made.body = self._expression(node.body)  # type: ignore[misc]
        return made

    def _comprehension(self, node: Any, kind: Any) -> cst.CSTNode:
        made = _new(kind)
        made.elt = self._expression(node.elt)
        made.for_in = self._generators(node.generators)
        return cast("cst.CSTNode", made)

    def _dict_comprehension(self, node: ast.DictComp) -> cst.DictComp:
        made = _new(cst.DictComp)
        made.key = self._expression(node.key)  # type: ignore[misc]
        made.value = self._expression(node.value)  # type: ignore[misc]
        made.for_in = self._generators(node.generators)  # type: ignore[misc]
        return made

    def _generators(self, generators: Sequence[ast.comprehension]) -> cst.CompFor:
        inner: cst.CompFor | None = None
        for generator in reversed(generators):
            made = _new(cst.CompFor)
            made.target = self._expression(generator.target)  # type: ignore[misc]
            made.iter = self._expression(generator.iter)  # type: ignore[misc]
            conditions = []
            for test in generator.ifs:
                condition = _new(cst.CompIf)
                condition.test = self._expression(test)  # type: ignore[misc]
                conditions.append(condition)
            made.ifs = conditions  # type: ignore[misc]
            made.inner_for_in = inner  # type: ignore[misc]
            made.asynchronous = _asynchronous(bool(generator.is_async))  # type: ignore[misc]
            inner = made
        return cast("cst.CompFor", inner)

    def _named(self, node: ast.NamedExpr) -> cst.NamedExpr:
        made = _new(cst.NamedExpr)
        made.target = self._expression(node.target)  # type: ignore[misc]
        made.value = self._expression(node.value)  # type: ignore[misc]
        return made

    def _await(self, node: ast.Await) -> cst.Await:
        made = _new(cst.Await)
        made.expression = self._expression(node.value)  # type: ignore[misc]
        return made

    def _yield(self, node: ast.Yield) -> cst.Yield:
        made = _new(cst.Yield)
        made.value = self._optional(node.value)  # type: ignore[misc]
        return made

    def _yield_from(self, node: ast.YieldFrom) -> cst.Yield:
        made = _new(cst.Yield)
        made.value = self._from(node.value)  # type: ignore[misc]
        return made


class _Stretch:
    """From one node to another: ``a and b`` within ``a and b and c``, which is one node to the interpreter."""

    def __init__(self, first: ast.expr, last: ast.expr) -> None:
        self.lineno, self.col_offset = first.lineno, first.col_offset
        self.end_lineno, self.end_col_offset = last.end_lineno, last.end_col_offset


_SIMPLE_KINDS = frozenset(_SIMPLE)


def _named(name: str) -> cst.Name:
    made = _new(cst.Name)
    made.value = name  # type: ignore[misc]
    return made


def _dotted(name: str) -> Any:
    first, *rest = name.split(".")
    made: Any = _named(first)
    for part in rest:
        longer = _new(cst.Attribute)
        longer.value = made  # type: ignore[misc]
        longer.attr = _named(part)  # type: ignore[misc]
        made = longer
    return made


def _as(name: Any) -> cst.AsName:
    made = _new(cst.AsName)
    made.name = name  # type: ignore[misc]
    return made


def _asynchronous(is_so: bool) -> cst.Asynchronous | None:
    return _new(cst.Asynchronous) if is_so else None

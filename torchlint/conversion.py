"""From the nodes of the interpreter's own parser to those of LibCST, without their layout."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Final, cast

import libcst as cst

from torchlint.nodes import bare
from torchlint.source import NEWLINE, line_starts

_ABSENT = cst.MaybeSentinel.DEFAULT
# One literal and no more: what stands beside it would make a concatenation.
# Each repeats classes of characters, which the engine runs through at once; docstrings are long.
_ONE_STRING = re.compile(
    r"""[rRbBuU]{0,2}(?:"""
    r"""'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''|\"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*\"""|"""
    r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")""",
    re.DOTALL,
)
_GAP = re.compile(r"(?:[ \t\f\r\n]|\\(?=[\r\n])|#[^\r\n]*)*")
_LONGEST_LINE = 1_000
_BLANK: Final = " \t\f\r\n\\"

_BINARY: dict[type, tuple[Callable[..., cst.CSTNode], Callable[..., cst.CSTNode]]] = {
    ast.Add: (bare(cst.Add), bare(cst.AddAssign)),
    ast.Sub: (bare(cst.Subtract), bare(cst.SubtractAssign)),
    ast.Mult: (bare(cst.Multiply), bare(cst.MultiplyAssign)),
    ast.MatMult: (bare(cst.MatrixMultiply), bare(cst.MatrixMultiplyAssign)),
    ast.Div: (bare(cst.Divide), bare(cst.DivideAssign)),
    ast.FloorDiv: (bare(cst.FloorDivide), bare(cst.FloorDivideAssign)),
    ast.Mod: (bare(cst.Modulo), bare(cst.ModuloAssign)),
    ast.Pow: (bare(cst.Power), bare(cst.PowerAssign)),
    ast.LShift: (bare(cst.LeftShift), bare(cst.LeftShiftAssign)),
    ast.RShift: (bare(cst.RightShift), bare(cst.RightShiftAssign)),
    ast.BitAnd: (bare(cst.BitAnd), bare(cst.BitAndAssign)),
    ast.BitOr: (bare(cst.BitOr), bare(cst.BitOrAssign)),
    ast.BitXor: (bare(cst.BitXor), bare(cst.BitXorAssign)),
}
_UNARY: dict[type, Callable[..., cst.CSTNode]] = {
    ast.UAdd: bare(cst.Plus),
    ast.USub: bare(cst.Minus),
    ast.Not: bare(cst.Not),
    ast.Invert: bare(cst.BitInvert),
}
_COMPARISONS: dict[type, Callable[..., cst.CSTNode]] = {
    ast.Eq: bare(cst.Equal),
    ast.NotEq: partial(bare(cst.NotEqual, "value"), "!="),
    ast.Lt: bare(cst.LessThan),
    ast.LtE: bare(cst.LessThanEqual),
    ast.Gt: bare(cst.GreaterThan),
    ast.GtE: bare(cst.GreaterThanEqual),
    ast.Is: bare(cst.Is),
    ast.IsNot: bare(cst.IsNot),
    ast.In: bare(cst.In),
    ast.NotIn: bare(cst.NotIn),
}
_SIMPLE = frozenset(
    {ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Delete, ast.Raise, ast.Assert}
    | {ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Break, ast.Continue}
)

# Nodes that have their code and none of their layout.
_alias = bare(cst.ImportAlias, "name", "asname")
_annotated = bare(cst.AnnAssign, "target", "annotation", "value")
_annotation = bare(cst.Annotation, "annotation")
_argument = bare(cst.Arg, "value", "keyword", "star")
_as_name = bare(cst.AsName, "name")
_assert = bare(cst.Assert, "test", "msg")
_assign = bare(cst.Assign, "targets", "value")
_attribute = bare(cst.Attribute, "value", "attr")
_augmented = bare(cst.AugAssign, "target", "operator", "value")
_await = bare(cst.Await, "expression")
_binary = bare(cst.BinaryOperation, "left", "operator", "right")
_block = bare(cst.IndentedBlock, "body")
_boolean = bare(cst.BooleanOperation, "left", "operator", "right")
_call = bare(cst.Call, "func", "args")
_choice = bare(cst.IfExp, "test", "body", "orelse")
_class = bare(cst.ClassDef, "name", "body", "bases", "keywords", "decorators", "type_parameters")
_comparison = bare(cst.Comparison, "left", "comparisons")
_compared = bare(cst.ComparisonTarget, "operator", "comparator")
_condition = bare(cst.CompIf, "test")
_decorator = bare(cst.Decorator, "decorator")
_delete = bare(cst.Del, "target")
_dict = bare(cst.Dict, "elements")
_dict_comprehension = bare(cst.DictComp, "key", "value", "for_in")
_dict_element = bare(cst.DictElement, "key", "value")
_element = bare(cst.Element, "value")
_else = bare(cst.Else, "body")
_finally = bare(cst.Finally, "body")
_for = bare(cst.For, "target", "iter", "body", "orelse", "asynchronous")
_for_in = bare(cst.CompFor, "target", "iter", "ifs", "inner_for_in", "asynchronous")
_from = bare(cst.From, "item")
_function = bare(
    *(cst.FunctionDef, "name", "params", "body", "decorators", "returns", "asynchronous", "type_parameters")
)
_if = bare(cst.If, "test", "body", "orelse")
_import = bare(cst.Import, "names")
_import_from = bare(cst.ImportFrom, "module", "names", "relative")
_index = bare(cst.Index, "value", "star")
_lambda = bare(cst.Lambda, "params", "body")
_line = bare(cst.SimpleStatementLine, "body")
_match = bare(cst.Match, "subject", "cases")
_match_as = bare(cst.MatchAs, "pattern", "name")
_match_case = bare(cst.MatchCase, "pattern", "body", "guard")
_match_class = bare(cst.MatchClass, "cls", "patterns", "kwds")
_match_element = bare(cst.MatchSequenceElement, "value")
_match_keyword = bare(cst.MatchKeywordElement, "key", "pattern")
_match_list = bare(cst.MatchList, "patterns")
_match_mapping = bare(cst.MatchMapping, "elements", "rest")
_match_mapping_element = bare(cst.MatchMappingElement, "key", "pattern")
_match_or = bare(cst.MatchOr, "patterns")
_match_or_element = bare(cst.MatchOrElement, "pattern")
_match_singleton = bare(cst.MatchSingleton, "value")
_match_star = bare(cst.MatchStar, "name")
_match_tuple = bare(cst.MatchTuple, "patterns")
_match_value = bare(cst.MatchValue, "value")
_name = bare(cst.Name, "value")
_name_item = bare(cst.NameItem, "name")
_parameter = bare(cst.Param, "name", "annotation", "default", "star")
_parameters = bare(*(cst.Parameters, "params", "star_arg", "kwonly_params", "star_kwarg", "posonly_params"))
_raise = bare(cst.Raise, "exc", "cause")
_return = bare(cst.Return, "value")
_slice = bare(cst.Slice, "lower", "upper", "step", "first_colon", "second_colon")
_starred = bare(cst.StarredElement, "value")
_starred_dict = bare(cst.StarredDictElement, "value")
_statement = bare(cst.Expr, "value")
_string = bare(cst.SimpleString, "value")
_subscript = bare(cst.Subscript, "value", "slice")
_subscript_element = bare(cst.SubscriptElement, "slice")
_suite = bare(cst.SimpleStatementSuite, "body", "leading_whitespace")
_target = bare(cst.AssignTarget, "target")
_tuple = bare(cst.Tuple, "elements")
_unary = bare(cst.UnaryOperation, "operator", "expression")
_walrus = bare(cst.NamedExpr, "target", "value")
_while = bare(cst.While, "test", "body", "orelse")
_with = bare(cst.With, "items", "body", "asynchronous")
_with_item = bare(cst.WithItem, "item", "asname")
_yield = bare(cst.Yield, "value")
_NUMBERS = {
    int: bare(cst.Integer, "value"),
    float: bare(cst.Float, "value"),
    complex: bare(cst.Imaginary, "value"),
}
_SEQUENCES = {
    ast.Tuple: _tuple,
    ast.List: bare(cst.List, "elements"),
    ast.Set: bare(cst.Set, "elements"),
    ast.ListComp: bare(cst.ListComp, "elt", "for_in"),
    ast.SetComp: bare(cst.SetComp, "elt", "for_in"),
    ast.GeneratorExp: bare(cst.GeneratorExp, "elt", "for_in"),
}
_SCOPES = {ast.Global: bare(cst.Global, "names"), ast.Nonlocal: bare(cst.Nonlocal, "names")}
_EMPTY = {ast.Pass: bare(cst.Pass), ast.Break: bare(cst.Break), ast.Continue: bare(cst.Continue)}
_and, _or, _dot, _ellipsis = bare(cst.And), bare(cst.Or), bare(cst.Dot), bare(cst.Ellipsis)
_asynchronous, _star, _every = bare(cst.Asynchronous), bare(cst.ParamStar), bare(cst.ImportStar)


class NotOutlinedError(Exception):
    """Something that a tree without layout cannot hold or tell; the file has to be read in full."""


def behind_gap(text: str, at: int) -> int:
    """Return where the next token starts: behind white space, line ends and comments."""
    gap = _GAP.match(text, at)
    return at if gap is None else gap.end()


def before_gap(text: str, at: int) -> int:
    """Return where the token before ends: in front of white space and line ends.

    Raises:
        NotOutlinedError: it may be a comment that stands there.
    """
    end = at
    while end and text[end - 1] in _BLANK:
        end -= 1
    if NEWLINE.search(text, end, at) and "#" in NEWLINE.split(text[max(end - _LONGEST_LINE, 0) : end])[-1]:
        raise NotOutlinedError("a comment")
    return end


def is_parenthesized(text: str, whole: tuple[int, int], first: tuple[int, int] | None) -> bool:
    """Return whether a tuple has parentheses of its own.

    ``whole`` is from where to where it reaches as the interpreter tells it, and ``first`` its first part,
    which may have some, too; None if it is empty.
    """
    start, end = whole
    if text[start] != "(" or text[end - 1] != ")":
        return False
    if first is None:
        return True
    inner_start, inner_end = first
    opened = text.count("(", start, inner_start)
    closed = 0
    while True:
        inner_end = behind_gap(text, inner_end)
        if inner_end >= end or text[inner_end] != ")":
            return opened > closed
        closed, inner_end = closed + 1, inner_end + 1


class Lines:
    """From the rows and byte columns of the interpreter to offsets in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = line_starts(text)
        self._ascii = text.isascii()

    def offset(self, row: int, column: int) -> int:
        """Return the offset of the character at a row, from 1, and a column in bytes of UTF-8, from 0."""
        start = self.starts[row - 1]
        if self._ascii:
            return start + column
        end = self.starts[row] if row < len(self.starts) else len(self.text)
        line = self.text[start:end]
        if line.isascii():
            return start + column
        return start + len(line.encode()[:column].decode())

    def row(self, offset: int) -> int:
        """Return the row, from 1, of the character at an offset."""
        return bisect_left(self.starts, offset + 1)

    def start(self, node: Any) -> int:
        """Return where a node of the interpreter's tree starts."""
        return self.offset(node.lineno, node.col_offset)

    def span(self, node: Any) -> tuple[int, int]:
        """Return where a node of the interpreter's tree starts and ends."""
        start = self.offset(node.lineno, node.col_offset)
        return start, self.offset(node.end_lineno, node.end_col_offset)


class Converter:
    """Turns the interpreter's tree of one text into nodes of LibCST, and keeps which came from which."""

    def __init__(self, text: str, lines: Lines) -> None:
        self.text, self.lines = text, lines
        self.origins: dict[cst.CSTNode, Any] = {}
        self.cases: dict[cst.CSTNode, int] = {}
        """Where each case begins, of which the interpreter tells no place."""
        self._indent: str | None = None
        self._semicolons = ";" in text
        self._continued = "\\\n" in text or "\\\r" in text

    def module(self, node: ast.Module) -> cst.Module:
        """Return the whole file.

        Raises:
            KeyError: it holds syntax that is not converted.
        """
        body = self._body(node.body)
        newline = NEWLINE.search(self.text)
        return cst.Module(
            body,
            default_indent=self._indent or " " * 4,
            default_newline=newline.group() if newline else "\n",
        )

    # --- statements ------------------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> list[Any]:
        made: list[Any] = []
        behind: ast.stmt | None = None
        for statement in statements:
            kind = statement.__class__
            node = _STATEMENTS[kind](self, statement)
            self.origins[node] = statement
            if kind not in _SIMPLE:
                made.append(node)
                behind = None
            else:
                if behind is not None and self._shares_line(behind, statement):
                    made[-1].body.append(node)
                else:
                    made.append(_line([node]))
                behind = statement
        return made

    def _shares_line(self, one: ast.stmt, other: ast.stmt) -> bool:
        if not self._semicolons:
            return False
        between = self.text[self.lines.span(one)[1] : self.lines.start(other)]
        return between.lstrip(_BLANK).startswith(";")

    def _block(self, statements: Sequence[ast.stmt]) -> cst.BaseSuite:
        first = statements[0]
        if first.__class__ in _SIMPLE and self._follows_colon(first):
            return _suite(self._body(statements)[0].body, _ABSENT)
        if self._indent is None:
            self._indent = self._before(first)
        return _block(self._body(statements))

    def _follows_colon(self, first: ast.stmt) -> bool:
        before = self._before(first)
        if before and not before.isspace():
            return True
        start = self.lines.starts[first.lineno - 1]
        if self._continued and self.text[:start].rstrip("\r\n").endswith("\\"):
            raise NotOutlinedError("a continued line")
        return False

    def _before(self, statement: ast.stmt) -> str:
        """Return what stands in front of a statement on its line."""
        start = self.lines.starts[statement.lineno - 1]
        return self.text[start : start + statement.col_offset]

    def _statement(self, node: ast.Expr) -> cst.Expr:
        return _statement(self._expression(node.value))

    def _assign(self, node: ast.Assign) -> cst.Assign:
        targets = [_target(self._expression(target)) for target in node.targets]
        return _assign(targets, self._expression(node.value))

    def _augmented(self, node: ast.AugAssign) -> cst.AugAssign:
        operator = _BINARY[node.op.__class__][1]()
        return _augmented(self._expression(node.target), operator, self._expression(node.value))

    def _annotated(self, node: ast.AnnAssign) -> cst.AnnAssign:
        annotation = _annotation(self._expression(node.annotation))
        return _annotated(self._expression(node.target), annotation, self._optional(node.value))

    def _return(self, node: ast.Return) -> cst.Return:
        return _return(self._optional(node.value))

    def _delete(self, node: ast.Delete) -> cst.Del:
        if len(node.targets) == 1:
            return _delete(self._expression(node.targets[0]))
        return _delete(_tuple([self._element(target) for target in node.targets]))

    def _raise(self, node: ast.Raise) -> cst.Raise:
        cause = None if node.cause is None else _from(self._expression(node.cause))
        return _raise(self._optional(node.exc), cause)

    def _assert(self, node: ast.Assert) -> cst.Assert:
        return _assert(self._expression(node.test), self._optional(node.msg))

    def _import(self, node: ast.Import) -> cst.Import:
        return _import([self._alias(alias) for alias in node.names])

    def _import_from(self, node: ast.ImportFrom) -> cst.ImportFrom:
        every = node.names[0].name == "*"
        names = _every() if every else [self._alias(alias) for alias in node.names]
        return _import_from(
            _dotted(node.module) if node.module else None, names, [_dot() for _ in range(node.level)]
        )

    def _alias(self, alias: ast.alias) -> cst.ImportAlias:
        made = _alias(_dotted(alias.name), _renamed(alias.asname))
        self.origins[made] = alias
        return made

    def _scope(self, node: ast.Global | ast.Nonlocal) -> cst.CSTNode:
        return _SCOPES[node.__class__]([_name_item(_name(name)) for name in node.names])

    def _empty(self, node: ast.stmt) -> cst.CSTNode:
        return _EMPTY[node.__class__]()

    def _if(self, node: ast.If) -> cst.If:
        test, body = self._expression(node.test), self._block(node.body)
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            further = node.orelse[0]
            if self.text.startswith("elif", self.lines.start(further)):
                orelse = self._if(further)
                self.origins[orelse] = further
                return _if(test, body, orelse)
        return _if(test, body, self._else(node.orelse))

    def _else(self, statements: Sequence[ast.stmt]) -> cst.Else | None:
        return _else(self._block(statements)) if statements else None

    def _for(self, node: ast.For | ast.AsyncFor) -> cst.For:
        target, over = self._expression(node.target), self._expression(node.iter)
        body, orelse = self._block(node.body), self._else(node.orelse)
        return _for(target, over, body, orelse, _asynchronous() if isinstance(node, ast.AsyncFor) else None)

    def _while(self, node: ast.While) -> cst.While:
        return _while(self._expression(node.test), self._block(node.body), self._else(node.orelse))

    def _with(self, node: ast.With | ast.AsyncWith) -> cst.With:
        items = []
        for item in node.items:
            target = None if item.optional_vars is None else _as_name(self._expression(item.optional_vars))
            items.append(_with_item(self._expression(item.context_expr), target))
        asynchronous = _asynchronous() if isinstance(node, ast.AsyncWith) else None
        return _with(items, self._block(node.body), asynchronous)

    def _try(self, node: Any) -> cst.Try | cst.TryStar:
        make, make_handler = _TRIES[node.__class__]
        handlers = []
        for handler in node.handlers:
            caught = make_handler(
                self._block(handler.body), self._optional(handler.type), _renamed(handler.name)
            )
            self.origins[caught] = handler
            handlers.append(caught)
        final = _finally(self._block(node.finalbody)) if node.finalbody else None
        made: cst.Try | cst.TryStar = make(self._block(node.body), handlers, self._else(node.orelse), final)
        return made

    def _match(self, node: ast.Match) -> cst.Match:
        if self._indent is None:
            first = self._start_of_case(node.cases[0])
            self._indent = self.text[self.lines.starts[self.lines.row(first) - 1] : first]
        return _match(self._expression(node.subject), list(map(self._case, node.cases)))

    def _case(self, node: ast.match_case) -> cst.MatchCase:
        pattern, guard = self._pattern(node.pattern), self._optional(node.guard)
        made = _match_case(pattern, self._block(node.body), guard)
        self.cases[made] = self._start_of_case(node)
        return made

    def _start_of_case(self, node: ast.match_case) -> int:
        """Return where the word ``case`` stands, in front of a pattern and its parentheses."""
        end = before_gap(self.text, self.lines.start(node.pattern))
        while self.text[end - 1] == "(":
            end = before_gap(self.text, end - 1)
        if not self.text.endswith("case", 0, end):
            raise NotOutlinedError("the place of a case")
        return end - len("case")

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> cst.FunctionDef:
        if getattr(node, "type_params", None):
            raise NotOutlinedError("type parameters")
        return _function(
            _name(node.name),
            self._parameters(node.args),
            self._block(node.body),
            [_decorator(self._expression(decorator)) for decorator in node.decorator_list],
            self._annotation(node.returns),
            _asynchronous() if isinstance(node, ast.AsyncFunctionDef) else None,
            None,
        )

    def _class(self, node: ast.ClassDef) -> cst.ClassDef:
        if getattr(node, "type_params", None):
            raise NotOutlinedError("type parameters")
        given = self._arguments(node.bases, node.keywords)
        # LibCST takes all for keywords from the first one on.
        first = next((i for i, arg in enumerate(given) if arg.keyword or arg.star == "**"), len(given))
        decorators = [_decorator(self._expression(decorator)) for decorator in node.decorator_list]
        body = self._block(node.body)
        return _class(_name(node.name), body, given[:first], given[first:], decorators, None)

    def _parameters(self, node: ast.arguments) -> cst.Parameters:
        positional = [*node.posonlyargs, *node.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.defaults))
        parameters = list(map(self._parameter, positional, [*defaults, *node.defaults]))
        count = len(node.posonlyargs)
        star: Any = _ABSENT
        if node.vararg is not None:
            star = self._parameter(node.vararg, None, "*")
        elif node.kwonlyargs:
            star = _star()
        return _parameters(
            parameters[count:],
            star,
            list(map(self._parameter, node.kwonlyargs, node.kw_defaults)),
            None if node.kwarg is None else self._parameter(node.kwarg, None, "**"),
            parameters[:count],
        )

    def _parameter(self, node: ast.arg, default: ast.expr | None, star: str = "") -> cst.Param:
        annotation = self._annotation(node.annotation)
        return _parameter(_name(node.arg), annotation, self._optional(default), star)

    def _annotation(self, node: ast.expr | None) -> cst.Annotation | None:
        return None if node is None else _annotation(self._expression(node))

    # --- patterns --------------------------------------------------------------------------------------

    def _pattern(self, node: ast.pattern) -> cst.MatchPattern:
        made: cst.MatchPattern = _PATTERNS[node.__class__](self, node)
        return made

    def _match_value(self, node: ast.MatchValue) -> cst.MatchValue:
        return _match_value(self._expression(node.value))

    def _match_singleton(self, node: ast.MatchSingleton) -> cst.MatchSingleton:
        value = _name(str(node.value))
        self.origins[value] = node
        return _match_singleton(value)

    def _match_sequence(self, node: ast.MatchSequence) -> cst.MatchSequence:
        make = _match_tuple if self._is_parenthesized(node, node.patterns) else _match_list
        return make(list(map(self._match_element, node.patterns)))

    def _match_element(self, node: ast.pattern) -> cst.MatchSequenceElement | cst.MatchStar:
        if isinstance(node, ast.MatchStar):
            return _match_star(_captured(node.name))
        return _match_element(self._pattern(node))

    def _match_mapping(self, node: ast.MatchMapping) -> cst.MatchMapping:
        pairs = zip(node.keys, node.patterns, strict=True)
        elements = [
            _match_mapping_element(self._expression(key), self._pattern(pattern)) for key, pattern in pairs
        ]
        return _match_mapping(elements, _captured(node.rest))

    def _match_class(self, node: ast.MatchClass) -> cst.MatchClass:
        named = zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        return _match_class(
            self._expression(node.cls),
            list(map(self._match_element, node.patterns)),
            [_match_keyword(_name(name), self._pattern(pattern)) for name, pattern in named],
        )

    def _match_as(self, node: ast.MatchAs) -> cst.MatchAs:
        pattern = None if node.pattern is None else self._pattern(node.pattern)
        return _match_as(pattern, _captured(node.name))

    def _match_or(self, node: ast.MatchOr) -> cst.MatchOr:
        return _match_or([_match_or_element(self._pattern(pattern)) for pattern in node.patterns])

    # --- expressions -----------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> Any:
        made = _EXPRESSIONS[node.__class__](self, node)
        self.origins[made] = node
        return made

    def _optional(self, node: ast.expr | None) -> Any:
        return None if node is None else self._expression(node)

    def _name(self, node: ast.Name) -> cst.Name:
        return _name(node.id)

    def _attribute(self, node: ast.Attribute) -> cst.Attribute:
        return _attribute(self._expression(node.value), _name(node.attr))

    def _constant(self, node: ast.Constant) -> cst.CSTNode:
        value = node.value
        if value is None or value is True or value is False:
            return _name(str(value))
        if value is ...:
            return _ellipsis()
        start, end = self.lines.span(node)
        text = self.text[start:end]
        if not isinstance(value, (str, bytes)):
            return _NUMBERS[type(value)](text)
        return _string(text) if _ONE_STRING.fullmatch(text) else self._read(text)

    def _formatted(self, node: ast.JoinedStr) -> cst.CSTNode:
        start, end = self.lines.span(node)
        return self._read(self.text[start:end])

    def _read(self, text: str) -> cst.CSTNode:
        """Return what LibCST reads: f-strings and concatenated strings,
        which may span lines in parentheses.
        """
        try:
            made: Any = cst.parse_expression(f"({text})")
        except cst.ParserSyntaxError as error:
            raise NotOutlinedError("a string") from error
        made.lpar, made.rpar = (), ()
        return cast("cst.CSTNode", made)

    def _call(self, node: ast.Call) -> cst.Call:
        return _call(self._expression(node.func), self._arguments(node.args, node.keywords))

    def _arguments(self, positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[cst.Arg]:
        made = [self._positional(value) for value in positional]
        for keyword in keywords:
            name = None if keyword.arg is None else _name(keyword.arg)
            given = _argument(self._expression(keyword.value), name, "" if name else "**")
            self.origins[given] = keyword
            made.append(given)
        if keywords and positional and isinstance(positional[-1], ast.Starred):
            # ``f(a=1, *b)``: the interpreter keeps the two kinds apart.
            nodes: list[Any] = [*positional, *keywords]
            places = [(value.lineno, value.col_offset) for value in nodes]
            made = [arg for _, arg in sorted(zip(places, made, strict=True), key=lambda pair: pair[0])]
        return made

    def _positional(self, value: ast.expr) -> cst.Arg:
        if not isinstance(value, ast.Starred):
            return _argument(self._expression(value), None, "")
        given = _argument(self._expression(value.value), None, "*")
        self.origins[given] = value
        return given

    def _binary(self, node: ast.BinOp) -> cst.BinaryOperation:
        operator = _BINARY[node.op.__class__][0]()
        return _binary(self._expression(node.left), operator, self._expression(node.right))

    def _boolean(self, node: ast.BoolOp) -> cst.BooleanOperation:
        operator = _and if isinstance(node.op, ast.And) else _or
        # To the interpreter, ``a and b and c`` is one node: the one that holds two of them has no place.
        first, *others = map(self._expression, node.values)
        made: cst.BooleanOperation = reduce(
            lambda left, right: _boolean(left, operator(), right), others, first
        )
        return made

    def _unary(self, node: ast.UnaryOp) -> cst.UnaryOperation:
        return _unary(_UNARY[node.op.__class__](), self._expression(node.operand))

    def _comparison(self, node: ast.Compare) -> cst.Comparison:
        left = self._expression(node.left)
        return _comparison(
            left,
            [
                _compared(_COMPARISONS[operator.__class__](), self._expression(comparator))
                for operator, comparator in zip(node.ops, node.comparators, strict=True)
            ],
        )

    def _subscript(self, node: ast.Subscript) -> cst.Subscript:
        value, index = self._expression(node.value), node.slice
        several = isinstance(index, ast.Tuple) and not self._is_parenthesized(index, index.elts)
        parts = cast("ast.Tuple", index).elts if several else [index]
        return _subscript(value, [self._subscript_element(part) for part in parts])

    def _is_parenthesized(
        self, node: ast.Tuple | ast.MatchSequence, parts: Sequence[ast.expr] | Sequence[ast.pattern]
    ) -> bool:
        first = self.lines.span(parts[0]) if parts else None
        return is_parenthesized(self.text, self.lines.span(node), first)

    def _subscript_element(self, node: ast.expr) -> cst.SubscriptElement:
        if isinstance(node, ast.Slice):
            bounds = (self._optional(bound) for bound in (node.lower, node.upper, node.step))
            return _subscript_element(_slice(*bounds, _ABSENT, _ABSENT))
        if isinstance(node, ast.Starred):
            return _subscript_element(_index(self._expression(node.value), "*"))
        return _subscript_element(_index(self._expression(node), None))

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> cst.CSTNode:
        return _SEQUENCES[node.__class__]([self._element(item) for item in node.elts])

    def _element(self, node: ast.expr) -> cst.Element | cst.StarredElement:
        if not isinstance(node, ast.Starred):
            return _element(self._expression(node))
        made = _starred(self._expression(node.value))
        self.origins[made] = node
        return made

    def _dict(self, node: ast.Dict) -> cst.Dict:
        return _dict(
            [
                _starred_dict(self._expression(value))
                if key is None
                else _dict_element(self._expression(key), self._expression(value))
                for key, value in zip(node.keys, node.values, strict=True)
            ]
        )

    def _choice(self, node: ast.IfExp) -> cst.IfExp:
        return _choice(*map(self._expression, (node.test, node.body, node.orelse)))

    def _lambda(self, node: ast.Lambda) -> cst.Lambda:
        return _lambda(self._parameters(node.args), self._expression(node.body))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> cst.CSTNode:
        return _SEQUENCES[node.__class__](self._expression(node.elt), self._generators(node.generators))

    def _dict_comprehension(self, node: ast.DictComp) -> cst.DictComp:
        key, value = self._expression(node.key), self._expression(node.value)
        return _dict_comprehension(key, value, self._generators(node.generators))

    def _generators(self, generators: Sequence[ast.comprehension]) -> cst.CompFor | None:
        inner: cst.CompFor | None = None
        for generator in reversed(generators):
            target, over = self._expression(generator.target), self._expression(generator.iter)
            conditions = [_condition(self._expression(test)) for test in generator.ifs]
            inner = _for_in(target, over, conditions, inner, _asynchronous() if generator.is_async else None)
        return inner

    def _walrus(self, node: ast.NamedExpr) -> cst.NamedExpr:
        return _walrus(self._expression(node.target), self._expression(node.value))

    def _await(self, node: ast.Await) -> cst.Await:
        return _await(self._expression(node.value))

    def _yield(self, node: ast.Yield) -> cst.Yield:
        return _yield(self._optional(node.value))

    def _yield_from(self, node: ast.YieldFrom) -> cst.Yield:
        return _yield(_from(self._expression(node.value)))


_TRIES: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {
    ast.Try: (
        bare(cst.Try, "body", "handlers", "orelse", "finalbody"),
        bare(cst.ExceptHandler, "body", "type", "name"),
    ),
}
_STATEMENTS: dict[type, Callable[[Converter, Any], cst.CSTNode]] = {
    ast.AnnAssign: Converter._annotated,
    ast.Assert: Converter._assert,
    ast.Assign: Converter._assign,
    ast.AsyncFor: Converter._for,
    ast.AsyncFunctionDef: Converter._function,
    ast.AsyncWith: Converter._with,
    ast.AugAssign: Converter._augmented,
    ast.Break: Converter._empty,
    ast.ClassDef: Converter._class,
    ast.Continue: Converter._empty,
    ast.Delete: Converter._delete,
    ast.Expr: Converter._statement,
    ast.For: Converter._for,
    ast.FunctionDef: Converter._function,
    ast.Global: Converter._scope,
    ast.If: Converter._if,
    ast.Import: Converter._import,
    ast.ImportFrom: Converter._import_from,
    ast.Match: Converter._match,
    ast.Nonlocal: Converter._scope,
    ast.Pass: Converter._empty,
    ast.Raise: Converter._raise,
    ast.Return: Converter._return,
    ast.Try: Converter._try,
    ast.While: Converter._while,
    ast.With: Converter._with,
}
if hasattr(ast, "TryStar"):  # since Python 3.11
    _STATEMENTS[ast.TryStar] = Converter._try
    _TRIES[ast.TryStar] = (
        bare(cst.TryStar, "body", "handlers", "orelse", "finalbody"),
        bare(cst.ExceptStarHandler, "body", "type", "name"),
    )
_PATTERNS: dict[type, Callable[[Converter, Any], cst.MatchPattern]] = {
    ast.MatchAs: Converter._match_as,
    ast.MatchClass: Converter._match_class,
    ast.MatchMapping: Converter._match_mapping,
    ast.MatchOr: Converter._match_or,
    ast.MatchSequence: Converter._match_sequence,
    ast.MatchSingleton: Converter._match_singleton,
    ast.MatchValue: Converter._match_value,
}
_EXPRESSIONS: dict[type, Callable[[Converter, Any], cst.CSTNode]] = {
    ast.Attribute: Converter._attribute,
    ast.Await: Converter._await,
    ast.BinOp: Converter._binary,
    ast.BoolOp: Converter._boolean,
    ast.Call: Converter._call,
    ast.Compare: Converter._comparison,
    ast.Constant: Converter._constant,
    ast.Dict: Converter._dict,
    ast.DictComp: Converter._dict_comprehension,
    ast.GeneratorExp: Converter._comprehension,
    ast.IfExp: Converter._choice,
    ast.JoinedStr: Converter._formatted,
    ast.Lambda: Converter._lambda,
    ast.List: Converter._sequence,
    ast.ListComp: Converter._comprehension,
    ast.Name: Converter._name,
    ast.NamedExpr: Converter._walrus,
    ast.Set: Converter._sequence,
    ast.SetComp: Converter._comprehension,
    ast.Subscript: Converter._subscript,
    ast.Tuple: Converter._sequence,
    ast.UnaryOp: Converter._unary,
    ast.Yield: Converter._yield,
    ast.YieldFrom: Converter._yield_from,
}


def _dotted(name: str) -> Any:
    first, *rest = name.split(".")
    made: Any = _name(first)
    for part in rest:
        made = _attribute(made, _name(part))
    return made


def _renamed(name: str | None) -> cst.AsName | None:
    return None if name is None else _as_name(_name(name))


def _captured(name: str | None) -> cst.Name | None:
    return None if name is None else _name(name)

"""Edits of the original text, built from syntax nodes.

Each function answers with the edits that make one change, or with None where the change cannot be made
without risk. Nothing outside the edits is touched: comments, layout, tabs and line ends stay as the author
wrote them, and new lines take the line end and the indentation of their neighbours.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.source import NEWLINE, line_above, line_start
from torchlint.syntax import SyntaxTree, alike

Edits = tuple[Edit, ...]

_STRINGS: tuple[type[cst.CSTNode], ...] = (cst.SimpleString, cst.FormattedString, cst.TemplatedString)
_FORMATTED: tuple[type[cst.FormattedString] | type[cst.TemplatedString], ...] = (
    cst.FormattedString,
    cst.TemplatedString,
)
_IDENTIFIER = re.compile(r"\w")
_SPACED_KEYWORD = re.compile(r"\w+\s+=\s")
_BLANK_LINE = re.compile(rf"[ \t\f]*(?:{NEWLINE.pattern})")

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


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with the edits made.

    Raises:
        ValueError: two edits overlap, or insert at the same place.
    """
    parts: list[str] = []
    at, previous = 0, None
    for edit in sorted(edits):
        if edit.span.start < at or (previous is not None and edit.span == previous.span):
            raise ValueError(f"edits overlap at offset {edit.span.start}")
        parts += text[at : edit.span.start], edit.content
        at, previous = edit.span.end, edit
    return "".join([*parts, text[at:]])


# ---------------------------------------------------------------------------------------------------------
# Expressions


def replace(tree: SyntaxTree, node: cst.CSTNode, code: str) -> Edits | None:
    """Put ``code`` where ``node`` stands; None if a comment in ``node`` would be lost.

    The parentheses that an expression owns go with it; new ones are added where an operator beside it
    would otherwise take ``code`` apart, and a space where two words would otherwise grow together.
    """
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


def fit_into_strings(tree: SyntaxTree, edits: Edits) -> Edits | None:
    """The edits, with other quotes inside of f-strings that their own would end; None if none will do.

    Before Python 3.12, an f-string could hold neither its own quotes nor a backslash, and it could go over
    several lines only between triple quotes.
    """
    strings = [(tree.span(node), node.start) for node in _strings_around(tree, edits)]
    fitted: list[Edit] = []
    for edit in edits:
        around = [
            opening.lstrip("fFrRtTbBuU")
            for span, opening in strings
            if span.start < edit.span.start and edit.span.end < span.end
        ]
        content = edit.content
        if any(quote in content for quote in around):
            content = content.replace('"', "'") if "'" not in content else content.replace("'", '"')
            if '"' in edit.content and "'" in edit.content:
                return None
        if around and any(
            "\\" in content or quote in content or (len(quote) == 1 and NEWLINE.search(content))
            for quote in around
        ):
            return None
        fitted.append(Edit(edit.span, content))
    return tuple(fitted)


def _strings_around(tree: SyntaxTree, edits: Edits) -> Iterator[cst.FormattedString | cst.TemplatedString]:
    """The f-strings in those outermost strings that an edit lies in."""
    for kind in _FORMATTED:
        for node in tree.nodes(kind):
            outermost: cst.CSTNode = node
            for ancestor in tree.ancestors(node):
                if isinstance(ancestor, (*_STRINGS, cst.ConcatenatedString)):
                    outermost = ancestor
            span = tree.span(outermost)
            if any(span.start < edit.span.start and edit.span.end < span.end for edit in edits):
                yield node


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
    return True


def _is_expression(code: str) -> bool:
    try:
        cst.parse_expression(code)
    except cst.ParserSyntaxError:
        return False
    return True


def set_argument_value(tree: SyntaxTree, argument: cst.Arg, code: str) -> Edits | None:
    """Give ``argument`` another value; its keyword, star, comma and comments stay."""
    return replace(tree, argument.value, code)


def add_argument(
    tree: SyntaxTree, call: cst.Call, text: str, *, keyword: str, keyword_only: bool = False
) -> Edits | None:
    """Append ``keyword=text`` to the arguments of ``call``, spaced as its other keywords are.

    None beside ``**kwargs`` and where the keyword is given already. ``*args`` might hold the value under
    its position, so it refuses too, unless the caller knows the parameter to be ``keyword_only``. Whether a
    plain positional argument fills the parameter is known by the signature only, not here.
    """
    for argument in call.args:
        if argument.star == "**" or (argument.star == "*" and not keyword_only):
            return None
        if argument.keyword is not None and argument.keyword.value == keyword:
            return None
    new = f"{keyword}{_equals(tree, call)}{text}"
    close = tree.span(call).end - 1
    if not call.args:
        return _add_first_argument(tree, call, close, new)

    source = tree.text
    last = call.args[-1]
    end = tree.span(last).end
    bare = isinstance(last.value, cst.GeneratorExp) and not tree.parentheses(last.value)
    if bare:
        return _insert(tree.span(last).start, "(") + _insert(end, f"), {new}")

    comma = _after_comma(source, end, close)
    layout = _own_line_indent(tree, call, comma, close)
    if layout is None:
        return _insert(end, f", {new}")
    newline = _line_end_near(tree, end)
    line = f"{newline}{layout}{new}"
    anchor = _after_comment(source, end if comma is None else comma)
    if comma is not None:
        return _insert(anchor, f"{line},")
    if anchor == end:
        return _insert(end, f",{line}")
    return _insert(end, ",") + _insert(anchor, line)


def _equals(tree: SyntaxTree, call: cst.Call) -> str:
    """``=``, or `` = `` where all keywords of ``call`` are written in this way."""
    starts = [tree.span(argument).start for argument in call.args if argument.keyword is not None]
    spaced = all(_SPACED_KEYWORD.match(tree.text, start) for start in starts)
    return " = " if starts and spaced else "="


def insert_argument(tree: SyntaxTree, call: cst.Call, index: int, text: str, *, keyword: str = "") -> Edits:
    """Put the argument ``text`` in front of the one at ``index``, on a line of its own if that has one.

    With ``keyword``, the argument that it moves is given by that name from then on.
    """
    if index == len(call.args):
        if not call.args:
            return _add_first_argument(tree, call, tree.span(call).end - 1, text)
        return _insert(tree.span(call.args[-1]).end, f", {text}")
    at = tree.span(call.args[index]).start
    apart = _line_end_near(tree, at) + _indent_at(tree.text, at) if _starts_line(tree.text, at) else " "
    return _insert(at, f"{text},{apart}{keyword}{'=' if keyword else ''}")


def _add_first_argument(tree: SyntaxTree, call: cst.Call, close: int, new: str) -> Edits:
    """``f()``: between the brackets there is white space at most, and comments."""
    source = tree.text
    start = _opening_bracket(tree, call)
    if "#" not in source[start:close]:
        return (Edit(Span(start, close), new),)
    indent = _indent_at(source, close) + tree.root.default_indent
    return _insert(line_start(source, close), f"{indent}{new},{_line_end_near(tree, start)}")


def _opening_bracket(tree: SyntaxTree, call: cst.Call) -> int:
    """The offset behind the bracket that opens the arguments of ``call``."""
    source = tree.text
    at = tree.outer_span(call.func).end
    while source[at] != "(":
        at = _line_end(source, at) if source[at] == "#" else at + 1
    return at + 1


def _own_line_indent(tree: SyntaxTree, call: cst.Call, comma: int | None, close: int) -> str | None:
    """The indentation for a further line of arguments, None if the arguments do not stand one a line."""
    source = tree.text
    starts = [tree.span(argument).start for argument in call.args]
    if not all(_starts_line(source, start) for start in starts[1:]):
        return None
    if not _starts_line(source, starts[-1]):
        return None
    if len(starts) == 1:
        # ``f(⏎ value ⏎)`` is as much "all on one line" as "one a line"; a comma or a comment decides.
        tail = source[tree.span(call.args[-1]).end : close]
        if comma is None and "#" not in tail:
            return None
        if not NEWLINE.search(tail):
            return None
    return _indent_at(source, starts[-1])


def remove_argument(tree: SyntaxTree, argument: cst.Arg) -> Edits:
    """Take ``argument`` out of its call, with the comma and the end-of-line comment that belong to it."""
    call = tree.parent(argument)
    if not isinstance(call, cst.Call):
        raise TypeError("only an argument of a call can be removed")
    source = tree.text
    index = next(i for i, other in enumerate(call.args) if other is argument)
    span = tree.span(argument)
    before = tree.span(call.args[index - 1]) if index else None
    after = tree.span(call.args[index + 1]) if index + 1 < len(call.args) else None
    close = tree.span(call).end - 1
    limit = after.start if after is not None else close
    comma = _after_comma(source, span.end, limit)
    tail = comma if comma is not None else span.end

    if before is None and after is None:
        opening = _opening_bracket(tree, call)
        if "#" not in source[opening : span.start] and "#" not in source[span.end : close]:
            return _delete(opening, close)

    # The comma before the last argument ends up last; it stays only where the layout had one there.
    comma_before: Edits = ()
    if before is not None and after is None and comma is None:
        ahead = _after_comma(source, before.end, span.start)
        if ahead is not None:
            comma_before = _delete(ahead - 1, ahead)

    line_end = _line_end(source, tail)
    if _starts_line(source, span.start) and not source[tail:line_end].split("#")[0].strip():
        return _delete(line_start(source, span.start), _next_line(source, line_end)) + comma_before
    if after is not None and not _has_line_end_or_comment(source[tail : after.start]):
        return _delete(span.start, after.start)
    if before is not None and "#" not in source[before.end : span.start]:
        return _delete(before.end, span.end)
    if after is not None and "#" not in source[tail : after.start]:
        return _delete(span.start, after.start)
    return _delete(span.start, tail) + comma_before


# ---------------------------------------------------------------------------------------------------------
# Statements


def cut_off(tree: SyntaxTree, kept: cst.BaseExpression, whole: cst.BaseExpression) -> Edits | None:
    """The edit that leaves ``kept`` of an expression that begins with it: ``x`` of ``x.to(device)``.

    None if a comment would go, or a bracket of what lies between: ``(x.to)(device)``.
    """
    for around in tree.ancestors(kept):
        if around is whole:
            break
        if isinstance(around, cst.BaseExpression) and tree.parentheses(around):
            return None
    start, end = tree.outer_span(kept).end, tree.span(whole).end
    return None if "#" in tree.text[start:end] else _delete(start, end)


def remove_statement(tree: SyntaxTree, statement: cst.CSTNode) -> Edits | None:
    """Take out a statement: its whole line, or its part of a line shared by semicolons.

    A block that would be left empty gets ``pass``. Comments on lines of their own above the statement stay;
    a comment at the end of its line goes with it, and so do blank lines below it where some stand above.
    None for an ``elif``, which is no statement of its own.
    """
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
    start = _first_decorator(tree, statement)
    line_end = _end_with_comments(source, tree.span(statement).end, _indent_at(source, start))
    if isinstance(holder, cst.IndentedBlock) and len(holder.body) == 1:
        return (Edit(Span(start, line_end), "pass"),)
    first, behind = line_start(source, start), _next_line(source, line_end)
    # Nothing stands apart from the beginning of a file or of a block.
    begins = first == 0 or (isinstance(holder, cst.IndentedBlock) and _opens_block(tree, holder, statement))
    above = len(source) if begins else _blank_lines_before(source, first)
    return _delete(first, _past_blank_lines(source, behind, above))


def _opens_block(tree: SyntaxTree, block: cst.IndentedBlock, statement: cst.CSTNode) -> bool:
    """Whether a statement stands right below the header of its block, without a line between."""
    if block.body[0] is not statement:
        return False
    above = line_above(tree.text, line_start(tree.text, _first_decorator(tree, statement)))
    line = tree.text[above : _line_end(tree.text, above)].strip()
    return bool(line) and not line.startswith("#")


def _blank_lines_before(source: str, start: int) -> int:
    """How many lines right above a line have nothing on them; two at most, as formatters leave them."""
    count = 0
    while start > 0 and count < 2:
        above = line_above(source, start)
        if source[above:start].strip():
            break
        count, start = count + 1, above
    return count


def _past_blank_lines(source: str, start: int, most: int) -> int:
    """Where the blank lines that begin at ``start`` end, or so many of them; none of a text's end."""
    for _ in range(most):
        blank = _BLANK_LINE.match(source, start)
        if blank is None or blank.end() == len(source):
            break
        start = blank.end()
    return start


def _remove_beside_semicolon(
    tree: SyntaxTree, body: Sequence[cst.BaseSmallStatement], statement: cst.BaseSmallStatement
) -> Edits:
    index = next(i for i, other in enumerate(body) if other is statement)
    if index + 1 < len(body):
        return _delete(tree.span(statement).start, tree.span(body[index + 1]).start)
    return _delete(tree.span(body[index - 1]).end, tree.span(statement).end)


def add_decorator(tree: SyntaxTree, function: cst.FunctionDef, code: str) -> Edits:
    """Put ``@code`` on a line of its own directly above ``def``, below the decorators that are there.

    The innermost place is the right one beside ``@staticmethod``, ``@classmethod`` and ``@property``, which
    want a function to wrap and do not give one back.

    Raises:
        ValueError: ``code`` has the ``@`` sign already.
    """
    if code.startswith("@"):
        raise ValueError("the code of a decorator is given without its sign")
    start = tree.span(function).start
    newline = _line_end_near(tree, start)
    return _insert(start, f"@{code}{newline}{_indent_at(tree.text, start)}")


def wrap(tree: SyntaxTree, statements: Sequence[cst.CSTNode], header: str) -> Edits | None:
    """Indent a run of neighbouring statements under ``header`` (``with torch.no_grad():``).

    Comments between them move along; lines inside a string over several lines stay as they are. None where
    the statements are not neighbours in one block of lines.
    """
    lines = list(dict.fromkeys(tree.statement(statement) for statement in statements))
    block = tree.parent(lines[0]) if lines else None
    if not isinstance(block, (cst.IndentedBlock, cst.Module)):
        return None
    siblings: list[cst.CSTNode] = list(block.body)
    first = siblings.index(lines[0])
    if siblings[first : first + len(lines)] != lines:
        return None

    text = tree.text
    start = _first_decorator(tree, lines[0])
    indent = _indent_at(text, start)
    unit = _indent_unit(tree, block)
    end = _end_with_comments(text, tree.span(lines[-1]).end, indent)
    newline = _line_end_near(tree, start)
    edits = [Edit(Span(start, start), f"{header}{newline}{indent}{unit}")]
    for at in _code_lines(tree, _next_line(text, _line_end(text, start)), end):
        edits += _insert(at + len(indent) if text.startswith(indent, at) else at, unit)
    return tuple(edits)


def dissolve(tree: SyntaxTree, block: cst.With) -> Edits | None:
    """Take a ``with`` statement away and leave what it holds in its place.

    None where a comment would go with the header, or where the block stands on its line.
    """
    header = _header(tree, block)
    if header is None:
        return None
    text = tree.text
    outer, inner = _indent_at(text, tree.span(block).start), _body_indent(tree, block)
    end = _end_with_comments(text, tree.span(block.body.body[-1]).end, inner)
    edits = [Edit(header, "")]
    for at in _code_lines(tree, header.end, end):
        # What goes on in brackets may stand further to the left.
        if text.startswith(inner, at):
            edits += _delete(at + len(outer), at + len(inner))
    return tuple(edits)


def wrap_with(
    tree: SyntaxTree, statements: Sequence[cst.CSTNode], header: str, alike: Callable[[cst.With], bool]
) -> Edits | None:
    """The same as `wrap`, but with one block instead of several next to or inside of each other.

    Blocks that are ``alike`` take the statements in if they stand right before or behind them, and are
    dissolved if they stand inside of them. None where that cannot be done.
    """
    made = wrap(tree, statements, header)
    if made is None:
        return None
    first, last = tree.statement(statements[0]), tree.statement(statements[-1])
    block = tree.parent(first)
    assert isinstance(block, (cst.IndentedBlock, cst.Module))
    siblings: list[cst.CSTNode] = list(block.body)
    before, behind = siblings.index(first) - 1, siblings.index(last) + 1
    indent = _indent_at(tree.text, _first_decorator(tree, first)) + _indent_unit(tree, block)
    edits = list(made)
    if before >= 0 and _joined(tree, siblings[before], indent, alike) is not None:
        unit = _indent_unit(tree, block)
        edits[0] = Edit(edits[0].span, unit)
        outer = indent.removesuffix(unit)
        at = line_start(tree.text, edits[0].span.start)
        while at and tree.text.startswith(f"{outer}#", line_above(tree.text, at)):
            at = line_above(tree.text, at)
            edits += _insert(at + len(outer), unit)
    below = _joined(tree, siblings[behind], indent, alike) if behind < len(siblings) else None
    if below is not None:
        edits.append(Edit(below, ""))
    inside = dissolve_in(tree, statements, alike)
    if inside is None:
        return None
    gone = [edit.span for edit in inside]
    edits = [edit for edit in edits if not any(s.start < edit.span.start < s.end for s in gone)]
    return (*edits, *inside)


def dissolve_in(
    tree: SyntaxTree, nodes: Iterable[cst.CSTNode], alike: Callable[[cst.With], bool]
) -> Edits | None:
    """The edits that dissolve all blocks inside of ``nodes`` that are ``alike``; None if one cannot be."""
    edits: list[Edit] = []
    found = [i for node in nodes for i in tree.descendants(node) if isinstance(i, cst.With) and alike(i)]
    for inner in found:
        if any(other is not inner and tree.contains(other, inner) for other in found):
            continue
        taken = dissolve(tree, inner)
        if taken is None:
            return None
        edits += taken
    return tuple(edits)


def _joined(
    tree: SyntaxTree, sibling: cst.CSTNode, indent: str, alike: Callable[[cst.With], bool]
) -> Span | None:
    """The lines of the header of a neighbouring block that statements with ``indent`` may become part of."""
    if not isinstance(sibling, cst.With) or not alike(sibling):
        return None
    header = _header(tree, sibling)
    return header if header is not None and _body_indent(tree, sibling) == indent else None


def _body_indent(tree: SyntaxTree, block: cst.With) -> str:
    return _indent_at(tree.text, _first_decorator(tree, block.body.body[0]))


def _header(tree: SyntaxTree, block: cst.With) -> Span | None:
    """The lines of the header of a block; None if they hold a comment, or something else."""
    text = tree.text
    if not isinstance(block.body, cst.IndentedBlock):
        return None
    start, item = line_start(text, tree.span(block).start), tree.span(block.items[-1].item).end
    line_end = _line_end(text, item)
    if text[item:line_end].replace(")", "").strip() != ":" or "#" in text[start:item]:
        return None
    return Span(start, _next_line(text, line_end))


def end_block_before(tree: SyntaxTree, statement: cst.CSTNode) -> Edits | None:
    """Take ``statement`` and all that follows it in its block out of the block, to the level of its header.

    Comments among them move along; lines inside a string over several lines stay as they are. None where
    the block would be left empty, stands on the line of its header, or where the statement shares its line.
    """
    line = tree.statement(statement)
    block = tree.parent(line)
    if not isinstance(block, cst.IndentedBlock) or line is block.body[0]:
        return None
    if _shares_line(tree, statement, first=True):
        return None
    header = tree.parent(block)
    assert header is not None
    text = tree.text
    outer = _indent_at(text, _first_decorator(tree, header))
    inner = _indent_at(text, _first_decorator(tree, line))
    if not inner.startswith(outer):
        return None
    before = next(first for first, second in pairwise(block.body) if second is line)
    start = _next_line(text, _logical_line_end(text, tree.span(before).end))
    end = _end_with_comments(text, tree.span(block.body[-1]).end, outer)
    edits: list[Edit] = []
    for at in _code_lines(tree, start, end):
        # What goes on in brackets may stand further to the left.
        if text.startswith(inner, at):
            edits += _delete(at + len(outer), at + len(inner))
    return tuple(edits)


def insert_before(tree: SyntaxTree, statement: cst.CSTNode, code: str) -> Edits | None:
    """Put the lines of ``code`` above ``statement``, its decorators and the comments attached to it.

    Beside other statements on one line, ``code`` of one line goes before it with a semicolon; more than
    that is refused with None, as is an ``elif``.
    """
    if _shares_line(tree, statement, first=True):
        return None if NEWLINE.search(code) else _insert(tree.span(statement).start, f"{code}; ")
    line = _block_statement(tree, statement)
    if line is None:
        return None
    text = tree.text
    start = _first_decorator(tree, line)
    indent = _indent_at(text, start)
    at = line_start(text, start)
    while at and text.startswith(f"{indent}#", line_above(text, at)):
        at = line_above(text, at)
    if at == 0:
        # Comments at the top (``#!``, encoding, licence) belong to the file.
        at = line_start(text, start)
    newline = _line_end_near(tree, start)
    return _insert(at, _reindented(code, indent, newline) + newline)


def insert_after(tree: SyntaxTree, statement: cst.CSTNode, code: str) -> Edits | None:
    """Put the lines of ``code`` below ``statement`` and the comments inside its block.

    Beside other statements on one line, ``code`` of one line goes after it with a semicolon; more than
    that is refused with None, as is an ``elif``.
    """
    if _shares_line(tree, statement, first=False):
        return None if NEWLINE.search(code) else _insert(tree.span(statement).end, f"; {code}")
    line = _block_statement(tree, statement)
    if line is None:
        return None
    text = tree.text
    indent = _indent_at(text, _first_decorator(tree, line))
    end = _end_with_comments(text, tree.span(line).end, indent)
    newline = _line_end_near(tree, tree.span(line).start)
    return _insert(end, newline + _reindented(code, indent, newline))


def _shares_line(tree: SyntaxTree, statement: cst.CSTNode, *, first: bool) -> bool:
    """Whether a small statement stands in a suite, or has a neighbour on the side given."""
    holder = tree.parent(statement)
    if not isinstance(statement, cst.BaseSmallStatement):
        return False
    if isinstance(holder, cst.SimpleStatementSuite):
        return True
    assert isinstance(holder, cst.SimpleStatementLine)
    return statement is not holder.body[0 if first else -1]


def _block_statement(tree: SyntaxTree, statement: cst.CSTNode) -> cst.CSTNode | None:
    line = tree.statement(statement)
    return line if isinstance(tree.parent(line), (cst.IndentedBlock, cst.Module)) else None


# ---------------------------------------------------------------------------------------------------------
# Imports


def add_import(tree: SyntaxTree, code: str) -> Edits:
    """Make the import statement ``code`` part of the module, where a reader would look for it.

    Beside an import of the same package if the module has one at its top level, so that nothing new is
    loaded earlier than the author loads it; else after the imports at the head of the file, grouped by
    where they come from; else below the docstring and the ``__future__`` imports. No edit if the very same
    statement is there already.
    """
    wanted = _import_statements(cst.parse_statement(code))[0]
    package = _package(wanted)
    body = list(tree.root.body)
    if any(alike(small, wanted) for line in body for small in _import_statements(line)):
        return ()
    same = [line for line in body if any(_package(small) == package for small in _import_statements(line))]
    if not same:
        return _add_import_to_head(tree, code)
    if isinstance(wanted, cst.Import):
        start = tree.span(same[0]).start
        return _insert(start, code + _line_end_near(tree, start))
    last = body.index(same[0])
    while last + 1 < len(body) and body[last + 1] in same:
        last += 1
    return _below(tree, body[last], code, blank_lines=0)


def remove_import(tree: SyntaxTree, alias: cst.CSTNode) -> Edits | None:
    """Drop one name from the import statement that brings it, or the statement if it brings nothing else.

    None if a comment would go with it.
    """
    statement = tree.parent(alias)
    if not isinstance(statement, (cst.Import, cst.ImportFrom)):
        return None
    return remove_imports(tree, statement, [alias])


def remove_imports(
    tree: SyntaxTree, statement: cst.Import | cst.ImportFrom, aliases: Collection[cst.CSTNode]
) -> Edits | None:
    """Drop some of the names that an import statement brings, or the statement if it brings no others.

    None if a comment would go with them.
    """
    if isinstance(statement.names, cst.ImportStar):
        return None
    names = list(statement.names)
    kept = [index for index, name in enumerate(names) if not any(name is alias for alias in aliases)]
    if not kept:
        holder = tree.statement(statement)
        alone = isinstance(holder, cst.SimpleStatementLine) and len(holder.body) == 1
        return remove_statement(tree, holder if alone else statement)
    spans: list[Span] = []
    for index in range(kept[-1]):
        if index not in kept:
            spans.append(Span(tree.span(names[index]).start, tree.span(names[index + 1]).start))
    if kept[-1] < len(names) - 1:
        spans.append(Span(_name_end(tree, names[kept[-1]]), _name_end(tree, names[-1])))
    if any("#" in tree.text[span.start : span.end] for span in spans):
        return None
    return tuple(Edit(span, "") for span in _merged(spans))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that touch made one."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].end == span.start:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return joined


def _name_end(tree: SyntaxTree, alias: cst.ImportAlias) -> int:
    """Where an imported name ends, without the comma behind it."""
    return tree.span(alias.asname.name if alias.asname is not None else alias.name).end


def _add_import_to_head(tree: SyntaxTree, code: str) -> Edits:
    """An import of a package that the module does not import at its top level."""
    head: dict[int, cst.CSTNode] = {}
    header: cst.CSTNode | None = None
    for index, line in enumerate(tree.root.body):
        imports = _import_statements(line)
        if imports and _group(imports[0]) != _FUTURE:
            head[_group(imports[0])] = line
        elif imports or (index == 0 and _is_docstring(line)):
            header = line
        else:
            break
    if _THIRD_PARTY in head:
        return _below(tree, head[_THIRD_PARTY], code, blank_lines=0)
    above = head.get(_STANDARD, header)
    if above is not None:
        return _below(tree, above, code, blank_lines=1)
    if not tree.root.body:
        return _insert(len(tree.text), code + tree.root.default_newline)
    start = _first_decorator(tree, tree.root.body[0])
    return _insert(start, code + _line_end_near(tree, start) * 2)


_FUTURE, _STANDARD, _THIRD_PARTY, _LOCAL = range(4)


def _import_statements(line: cst.CSTNode) -> list[cst.Import | cst.ImportFrom]:
    """The imports on a line that holds nothing else."""
    if not isinstance(line, cst.SimpleStatementLine):
        return []
    imports = [small for small in line.body if isinstance(small, (cst.Import, cst.ImportFrom))]
    return imports if len(imports) == len(line.body) else []


def _group(statement: cst.Import | cst.ImportFrom) -> int:
    """Where an import comes from, in the order in which the groups are written."""
    package = _package(statement)
    if package == "__future__":
        return _FUTURE
    if not package:
        return _LOCAL
    return _STANDARD if package in sys.stdlib_module_names else _THIRD_PARTY


def _package(statement: cst.Import | cst.ImportFrom) -> str:
    """The top-level package that an import statement loads; empty for a relative import."""
    name: cst.CSTNode | None
    if isinstance(statement, cst.Import):
        name = statement.names[0].name
    else:
        name = None if statement.relative else statement.module
    while isinstance(name, cst.Attribute):
        name = name.value
    return name.value if isinstance(name, cst.Name) else ""


def _is_docstring(line: cst.CSTNode) -> bool:
    return (
        isinstance(line, cst.SimpleStatementLine)
        and isinstance(line.body[0], cst.Expr)
        and isinstance(line.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _below(tree: SyntaxTree, line: cst.CSTNode, code: str, *, blank_lines: int) -> Edits:
    """Insert ``code`` as a line below the statement ``line``, apart from its neighbours by blank lines."""
    text = tree.text
    newline = _line_end_near(tree, tree.span(line).start)
    end = _line_end(text, tree.span(line).end)
    follows = _next_line(text, end)
    apart = follows == len(text) or NEWLINE.match(text, follows) is not None
    return _insert(end, newline * (1 + blank_lines) + code + ("" if apart else newline * blank_lines))


# ---------------------------------------------------------------------------------------------------------
# Places in the text


def _insert(at: int, content: str) -> Edits:
    return (Edit(Span(at, at), content),)


def _delete(start: int, end: int) -> Edits:
    return (Edit(Span(start, end), ""),)


def _line_end(text: str, at: int) -> int:
    """The offset at which the line of ``at`` ends, before its line-end characters."""
    found = NEWLINE.search(text, at)
    return found.start() if found else len(text)


def _next_line(text: str, line_end: int) -> int:
    found = NEWLINE.match(text, line_end)
    return found.end() if found else line_end


def _starts_line(text: str, at: int) -> bool:
    return not text[line_start(text, at) : at].strip()


def _indent_at(text: str, at: int) -> str:
    """The white space that the line of ``at`` begins with, form feeds aside."""
    line = text[line_start(text, at) : at]
    return line[: len(line) - len(line.lstrip())].replace("\x0c", "")


def _line_end_near(tree: SyntaxTree, at: int) -> str:
    """The line-end characters of the line of ``at``; those of the file if it is the last."""
    found = NEWLINE.search(tree.text, at)
    return found.group() if found else tree.root.default_newline


def _after_comma(text: str, start: int, limit: int) -> int | None:
    """The offset behind the comma between two arguments; comments are skipped. None if there is none."""
    at = start
    while at < limit:
        if text[at] == ",":
            return at + 1
        at = _line_end(text, at) if text[at] == "#" else at + 1
    return None


def _after_comment(text: str, at: int) -> int:
    """The end of the comment that follows ``at`` on its line; ``at`` itself where none does."""
    end = _line_end(text, at)
    return end if text[at:end].lstrip().startswith("#") else at


def _has_line_end_or_comment(text: str) -> bool:
    return "#" in text or NEWLINE.search(text) is not None


def _first_decorator(tree: SyntaxTree, statement: cst.CSTNode) -> int:
    decorators = getattr(statement, "decorators", ())
    return tree.span(decorators[0] if decorators else statement).start


def _indent_unit(tree: SyntaxTree, block: cst.CSTNode) -> str:
    """The white space by which the lines of a block stand further to the right than what holds it."""
    if not isinstance(block, cst.IndentedBlock):
        return tree.root.default_indent
    around = tree.enclosing(block, cst.IndentedBlock)
    outer = _indent_at(tree.text, _first_decorator(tree, around.body[0])) if around is not None else ""
    return _indent_at(tree.text, _first_decorator(tree, block.body[0])).removeprefix(outer)


def _end_with_comments(text: str, end: int, indent: str) -> int:
    """The end of the last line of a statement, with the comments indented deeper that follow it."""
    last = _logical_line_end(text, end)
    at = last
    while True:
        start = _next_line(text, at)
        if start == at:
            return last
        at = _line_end(text, start)
        line = text[start:at]
        if not line.strip():
            continue
        content = line.lstrip()
        if not content.startswith("#") or len(line) - len(content) <= len(indent):
            return last
        last = at


def _logical_line_end(text: str, end: int) -> int:
    """Where the line ends on which a statement does: behind a backslash that is the next one."""
    last = _line_end(text, end)
    while text.endswith("\\", end, last) and "#" not in text[end:last]:
        following = _next_line(text, last)
        if following == last:
            break
        last = _line_end(text, following)
    return last


def _code_lines(tree: SyntaxTree, start: int, end: int) -> list[int]:
    """The starts of the lines from ``start`` to ``end`` that are neither blank nor inside a string."""
    text = tree.text
    strings = [tree.span(node) for node in tree.nodes(*_STRINGS)]
    strings = [span for span in strings if span.end > start and NEWLINE.search(text, span.start, span.end)]
    starts = []
    at = start
    while at < end:
        line_end = _line_end(text, at)
        if text[at:line_end].strip() and not any(span.start < at < span.end for span in strings):
            starts.append(at + len(text[at:line_end]) - len(text[at:line_end].lstrip("\x0c")))
        following = _next_line(text, line_end)
        if following == line_end:
            break
        at = following
    return starts


def _reindented(code: str, indent: str, newline: str) -> str:
    """``code``, written at the left margin with ``\\n``, as lines of a block; strings stay as they are."""
    if not NEWLINE.search(code):
        return indent + code
    tree = SyntaxTree(code)
    edits = [Edit(Span(at, at), indent) for at in _code_lines(tree, 0, len(code))]
    # Lines that are taken from the file have its line ends already.
    return re.sub(r"(?<!\r)\n", newline, apply_edits(code, edits))

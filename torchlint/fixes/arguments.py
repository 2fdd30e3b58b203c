"""Edits of the arguments of calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.fixes.expressions import replace
from torchlint.fixes.layout import (
    Edits,
    after_comma,
    after_comment,
    deletion,
    end_of_line,
    indent_at,
    insertion,
    newline_near,
    next_line,
    starts_line,
)
from torchlint.semantics.calls import Default
from torchlint.semantics.names import BindingKind
from torchlint.source import NEWLINE, line_start
from torchlint.syntax import SyntaxTree

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SPACED_KEYWORD = re.compile(r"\w+\s+=\s")


def set_argument(module: Module, call: cst.Call, name: str, code: str) -> Edits | None:
    """Make a call pass ``code`` for a parameter, in place if it passes something, else as a keyword.

    None where the argument may already be hidden in ``*args`` or ``**kwargs``.
    """
    bound = module.call(call).get(name)
    if bound.given:
        return replace(module, bound.arg.value, code) if bound.arg is not None else None
    if bound.unknown:
        return None
    # Absent is proved by the signature, so that no `*args` holds it.
    return add_argument(module, call, code, keyword=name, keyword_only=True)


def filled_by_callers(module: Module, given: cst.BaseExpression | None) -> bool:
    """Return whether an argument is a parameter of the function around it,
    so that its callers decide on it.
    """
    return isinstance(given, cst.Name) and any(
        binding.kind is BindingKind.PARAMETER for binding in module.bindings(given)
    )


def unset_argument(module: Module, call: cst.Call, name: str) -> Edits | None:
    """Leave a parameter to its default; None if the call does not spell an argument for it.

    Where positional arguments follow, the default takes its place, so that they keep theirs.
    """
    found = module.call(call)
    arg = found.get(name).arg
    if arg is None:
        return None
    behind = call.args[call.args.index(arg) + 1 :]
    if arg.keyword is not None or all(other.keyword is not None for other in behind):
        return remove_argument(module, arg)
    parameter = found.signature.get(name) if found.signature is not None else None
    if parameter is None or isinstance(parameter.default, Default):
        return None
    return replace(module, arg.value, repr(parameter.default))


def add_argument(
    module: Module, call: cst.Call, text: str, *, keyword: str, keyword_only: bool = False
) -> Edits | None:
    """Append ``keyword=text`` to the arguments of ``call``, spaced as its other keywords are.

    None beside ``**kwargs`` and where the keyword is given already. ``*args`` might hold the value under
    its position, so it refuses too, unless the caller knows the parameter to be ``keyword_only``. Whether a
    plain positional argument fills the parameter is known by the signature only, not here.
    """
    tree = module.tree
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
        return insertion(tree.span(last).start, "(") + insertion(end, f"), {new}")

    comma = after_comma(source, end, close)
    layout = _own_line_indent(tree, call, comma, close)
    if layout is None:
        return insertion(end, f", {new}")
    newline = newline_near(tree, end)
    line = f"{newline}{layout}{new}"
    anchor = after_comment(source, end if comma is None else comma)
    if comma is not None:
        return insertion(anchor, f"{line},")
    if anchor == end:
        return insertion(end, f",{line}")
    return insertion(end, ",") + insertion(anchor, line)


def _equals(tree: SyntaxTree, call: cst.Call) -> str:
    """Return ``=``, or `` = `` where all keywords of ``call`` are written in this way."""
    starts = [tree.span(argument).start for argument in call.args if argument.keyword is not None]
    spaced = all(_SPACED_KEYWORD.match(tree.text, start) for start in starts)
    return " = " if starts and spaced else "="


def insert_argument(module: Module, call: cst.Call, index: int, text: str, *, keyword: str = "") -> Edits:
    """Put the argument ``text`` in front of the one at ``index``, on a line of its own if that has one.

    With ``keyword``, the argument that it moves is given by that name from then on.
    """
    tree = module.tree
    if index == len(call.args):
        if not call.args:
            return _add_first_argument(tree, call, tree.span(call).end - 1, text)
        return insertion(tree.span(call.args[-1]).end, f", {text}")
    at = tree.span(call.args[index]).start
    apart = newline_near(tree, at) + indent_at(tree.text, at) if starts_line(tree.text, at) else " "
    return insertion(at, f"{text},{apart}{keyword}{'=' if keyword else ''}")


def _add_first_argument(tree: SyntaxTree, call: cst.Call, close: int, new: str) -> Edits:
    """Add an argument to ``f()``: between the brackets there is white space at most, and comments."""
    source = tree.text
    start = _opening_bracket(tree, call)
    if "#" not in source[start:close]:
        return (Edit(Span(start, close), new),)
    indent = indent_at(source, close) + tree.root.default_indent
    return insertion(line_start(source, close), f"{indent}{new},{newline_near(tree, start)}")


def _opening_bracket(tree: SyntaxTree, call: cst.Call) -> int:
    """Return the offset behind the bracket that opens the arguments of ``call``."""
    source = tree.text
    at = tree.outer_span(call.func).end
    while source[at] != "(":
        at = end_of_line(source, at) if source[at] == "#" else at + 1
    return at + 1


def _own_line_indent(tree: SyntaxTree, call: cst.Call, comma: int | None, close: int) -> str | None:
    """Return the indentation for a further line of arguments,
    None if the arguments do not stand one a line.
    """
    source = tree.text
    starts = [tree.span(argument).start for argument in call.args]
    if not all(starts_line(source, start) for start in starts[1:]):
        return None
    if not starts_line(source, starts[-1]):
        return None
    if len(starts) == 1:
        # ``f(⏎ value ⏎)`` is as much "all on one line" as "one a line"; a comma or a comment decides.
        tail = source[tree.span(call.args[-1]).end : close]
        if comma is None and "#" not in tail:
            return None
        if not NEWLINE.search(tail):
            return None
    return indent_at(source, starts[-1])


def remove_argument(module: Module, argument: cst.Arg) -> Edits:
    """Take ``argument`` out of its call, with the comma and the end-of-line comment that belong to it."""
    tree = module.tree
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
    comma = after_comma(source, span.end, limit)
    tail = comma if comma is not None else span.end

    if before is None and after is None:
        opening = _opening_bracket(tree, call)
        if "#" not in source[opening : span.start] and "#" not in source[span.end : close]:
            return deletion(opening, close)

    # The comma before the last argument ends up last; it stays only where the layout had one there.
    comma_before: Edits = ()
    if before is not None and after is None and comma is None:
        ahead = after_comma(source, before.end, span.start)
        if ahead is not None:
            comma_before = deletion(ahead - 1, ahead)

    line_end = end_of_line(source, tail)
    if starts_line(source, span.start) and not source[tail:line_end].split("#")[0].strip():
        return deletion(line_start(source, span.start), next_line(source, line_end)) + comma_before
    if after is not None and not _has_line_end_or_comment(source[tail : after.start]):
        return deletion(span.start, after.start)
    if before is not None and "#" not in source[before.end : span.start]:
        return deletion(before.end, span.end)
    if after is not None and "#" not in source[tail : after.start]:
        return deletion(span.start, after.start)
    return deletion(span.start, tail) + comma_before


def _has_line_end_or_comment(text: str) -> bool:
    return "#" in text or NEWLINE.search(text) is not None

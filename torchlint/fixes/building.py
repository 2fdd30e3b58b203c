"""How edits are made a fix."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Applicability, Edit, Fix, Span
from torchlint.fixes.layout import Edits
from torchlint.source import NEWLINE
from torchlint.syntax import SyntaxTree

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_STRINGS: tuple[type[cst.CSTNode], ...] = (cst.SimpleString, cst.FormattedString, cst.TemplatedString)
_FORMATTED: tuple[type[cst.FormattedString] | type[cst.TemplatedString], ...] = (
    cst.FormattedString,
    cst.TemplatedString,
)

_IMPORT = re.compile(r"\s*(?:import|from)\b")
_SHOWN = re.compile(r"[\s)]*=\s*[!:}]")
"""What follows an expression in an f-string that shows the text of it, too: ``{x=}``."""


def safe(module: Module, message: str, *edits: Edits | None) -> Fix | None:
    """Return a safe fix of these edits; None if one of them could not be made."""
    return _fix(module, message, Applicability.SAFE, edits)


def unsafe(module: Module, message: str, *edits: Edits | None, risk: str) -> Fix | None:
    """Return an unsafe fix of these edits; None if one of them could not be made.

    ``risk`` is why it is unsafe, in a few words that users read behind "unsafe: ".
    """
    return _fix(module, message, Applicability.UNSAFE, edits, risk)


def graded(module: Module, message: str, *edits: Edits | None, risk: str | None) -> Fix | None:
    """Return a fix of these edits that is unsafe if there is a ``risk``, else safe."""
    if risk is None:
        return safe(module, message, *edits)
    return unsafe(module, message, *edits, risk=risk)


def elsewhere(module: Module, home: Module, edits: Edits | None) -> Edits | None:
    """Return edits of the file of ``home`` as part of a fix of a finding in ``module``; None for None."""
    if edits is None or home is module or home.link is None:
        return edits
    path, fitted = home.link.file(home), _fit_into_strings(home.tree, edits)
    return None if fitted is None else tuple(replace(edit, path=path) for edit in fitted)


def _fix(
    module: Module,
    message: str,
    applicability: Applicability,
    parts: Sequence[Edits | None],
    risk: str | None = None,
) -> Fix | None:
    edits: list[Edit] = []
    for part in parts:
        if part is None:
            return None
        edits.extend(part)
    fitted = _fit_into_strings(module.tree, tuple(edit for edit in edits if edit.path is None))
    if fitted is None:
        return None
    others = tuple(edit for edit in edits if edit.path is not None)
    if risk is None and _is_shown(module.tree, fitted):
        applicability, risk = Applicability.UNSAFE, "an f-string shows the text of the expression"
    return Fix(message, (*_in_order(fitted), *others), applicability, risk=risk)


def _in_order(edits: Edits) -> Edits:
    """Return the edits, those that insert at one place made one: imports first, then what needs them."""
    inserted: dict[Span, list[str]] = {}
    for edit in dict.fromkeys(edits):
        if edit.span.start == edit.span.end:
            inserted.setdefault(edit.span, []).append(edit.content)
    joined = (
        Edit(span, "".join(sorted(contents, key=lambda content: _IMPORT.match(content) is None)))
        for span, contents in inserted.items()
    )
    return (*joined, *(edit for edit in edits if edit.span not in inserted))


def _fit_into_strings(tree: SyntaxTree, edits: Edits) -> Edits | None:
    """Return the edits, with other quotes inside of f-strings that their own would end; None if none will do.

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


def _is_shown(tree: SyntaxTree, edits: Edits) -> bool:
    """Return whether an edit changes an expression whose text an f-string shows: ``{x=}``."""
    for string in _strings_around(tree, edits):
        for part in string.parts:
            if isinstance(part, (cst.FormattedStringExpression, cst.TemplatedStringExpression)):
                span = tree.outer_span(part.expression)
                if _SHOWN.match(tree.text, span.end) and any(
                    span.start <= edit.span.start and edit.span.end <= span.end for edit in edits
                ):
                    return True
    return False


def _strings_around(tree: SyntaxTree, edits: Edits) -> Iterator[cst.FormattedString | cst.TemplatedString]:
    """Yield the f-strings in those outermost strings that an edit lies in."""
    for kind in _FORMATTED:
        for node in tree.nodes(kind):
            outermost: cst.CSTNode = node
            for ancestor in tree.ancestors(node):
                if isinstance(ancestor, (*_STRINGS, cst.ConcatenatedString)):
                    outermost = ancestor
            span = tree.span(outermost)
            if any(span.start < edit.span.start and edit.span.end < span.end for edit in edits):
                yield node

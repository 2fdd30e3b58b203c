"""Silences findings by comments, for ``--add-noqa``: ``# noqa: TL202`` at the end of the right line.

Where no comment can stand, because the line ends inside of a string or with a backslash, the statement gets
``# torchlint: ignore[TL202]`` above it. Only comments are written; nothing of the program changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint import registry
from torchlint.checker import breaks, check
from torchlint.diagnostics import UNTREATED, Applicability, Diagnostic, Edit, Fix, Span
from torchlint.fixer import apply
from torchlint.options import LintSettings
from torchlint.scope import Scope
from torchlint.source import Source
from torchlint.suppressions import Lines, Suppressions, Verb, lines_of

if TYPE_CHECKING:
    from torchlint.project.project import Project

# One round does it, but for lines whose other findings the baseline no longer knows once they have changed.
_MAX_ROUNDS = 3


@dataclass(frozen=True)
class Silenced:
    """A file with comments, how many findings they silence, and what is left to report of it.

    ``hidden`` counts the findings of too little impact, which get no comment.
    """

    source: Source
    silenced: int
    diagnostics: list[Diagnostic]
    known: frozenset[str] = frozenset()
    hidden: int = 0

    @property
    def text(self) -> str:
        """The text with the comments."""
        return self.source.text


def silence(
    source: Source, settings: LintSettings, scope: Scope, reason: str = "", project: Project | None = None
) -> Silenced:
    """Add a comment for every finding in ``scope``, each with ``reason``; new ones only.

    To the ``project`` the file is in the end what it was before.
    """
    try:
        return _silence(source, settings, scope, reason, project)
    finally:
        if project is not None:
            project.holds(source)


def _silence(
    source: Source, settings: LintSettings, scope: Scope, reason: str, project: Project | None
) -> Silenced:
    count = 0
    found = scope.sort_out(source, check(source, settings, project=project))
    for _ in range(_MAX_ROUNDS):
        edits = list(comments(source, found.shown, reason))
        if not edits:
            break
        changed = source.with_text(apply(source.text, edits), edits)
        if breaks(changed) and not breaks(source):
            break
        moved = scope.moved(source, edits)
        left = moved.sort_out(changed, check(changed, settings, project=project))
        if len(left.shown) >= len(found.shown):
            break
        count += len(found.shown) - len(left.shown)
        source, scope, found = changed, moved, left
    return Silenced(source, count, found.told, found.known, found.hidden)


def comments(source: Source, diagnostics: Sequence[Diagnostic], reason: str = "") -> Iterator[Edit]:
    """Return the edits that silence the findings, one a line; none where no comment can stand."""
    return (edit for edit in _edits(source, diagnostics, reason) if _fits(source, edit))


def _fits(source: Source, edit: Edit) -> bool:
    """Return whether the edit may be made: in a notebook it stays within its cell, and away from magics."""
    added = Fix("Add a comment", (edit,), Applicability.SAFE)
    return source.fitted(added) == added


def _edits(source: Source, diagnostics: Sequence[Diagnostic], reason: str) -> Iterator[Edit]:
    """Yield the comments for the findings, one a line."""
    by_row: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for diagnostic in diagnostics:
        if diagnostic.code not in UNTREATED:
            by_row[_row(source, diagnostic)][diagnostic.code] = None
    if not by_row:
        return
    lines = lines_of(source)
    above: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for row, codes in by_row.items():
        if row in lines.ends:
            yield _trailing(source, row, list(codes), reason)
        elif (first := _statement(row, lines)) is not None:
            above[first] |= codes
    for row, codes in above.items():
        yield _above(source, row, list(codes), reason)


def _row(source: Source, diagnostic: Diagnostic) -> int:
    """Return the row of the text at whose end a comment silences the finding."""
    part = source.part(diagnostic.cell)
    return diagnostic.noqa_row + (source.position(part.start).row - 1 if part else 0)


def _trailing(source: Source, row: int, codes: Sequence[str], reason: str) -> Edit:
    """Return codes for the list of the ``noqa`` that the line has, or a new one at its end."""
    for directive in Suppressions(source, registry.catalogue()).directives:
        if directive.verb is Verb.NOQA and directive.comment.row == row and directive.entries:
            after = directive.entries[-1].span.end
            return Edit(Span(after, after), "".join(f", {code}" for code in codes))
    line = source.line(row)
    start = source.line_starts[row - 1]
    end = start + len(line)
    comment = " ".join(["# noqa:", ", ".join(codes), *([reason] if reason else [])])
    return Edit(Span(start + len(line.rstrip()), end), f"  {comment}")


def _statement(row: int, lines: Lines) -> int | None:
    """Return the first row of the logical line that ``row`` is part of."""
    return next((first for first, last in lines.logical if first <= row <= last), None)


def _above(source: Source, row: int, codes: Sequence[str], reason: str) -> Edit:
    line = source.line(row)
    indent = line[: len(line) - len(line.lstrip())]
    start = source.line_starts[row - 1]
    told = f"# torchlint: ignore[{', '.join(codes)}]" + (f" {reason}" if reason else "")
    return Edit(Span(start, start), f"{indent}{told}{source.newline}")

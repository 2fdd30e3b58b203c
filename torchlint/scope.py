"""Which findings of a file a run is about: those on changed lines, of enough impact, that no baseline holds.

What is left out is neither shown nor fixed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.diagnostics import UNTREATED, Diagnostic, Edit, Impact
from torchlint.fingerprints import fingerprints
from torchlint.source import Source

if TYPE_CHECKING:
    from torchlint.changes import Rows


class Advice(enum.Enum):
    """What a run does with advice: tell it beside the findings, not at all, as findings, or instead of them.

    The values of the first three are those of the option.
    """

    ASIDE = "aside"
    OFF = "off"
    COUNTED = "on"
    ALONE = "alone"


@dataclass(frozen=True)
class Sorted:
    """Findings told apart: those to show, and the fingerprints of those that the baseline holds.

    ``aside`` is advice that is told and not acted on; ``hidden`` counts the findings of too little impact.
    """

    shown: list[Diagnostic]
    known: frozenset[str] = frozenset()
    aside: list[Diagnostic] = field(default_factory=list)
    hidden: int = 0

    @property
    def told(self) -> list[Diagnostic]:
        """The findings to show and the advice, in the order of findings."""
        if not self.aside:
            return self.shown
        return sorted((*self.shown, *self.aside), key=lambda item: item.sort_key)


@dataclass(frozen=True)
class Scope:
    """What a run is about in one file; without arguments, everything.

    ``rows`` are the lines that count, None for all: those of the file, after `within` those of its text.
    ``known`` are the fingerprints that the baseline holds of the file, with paths relative to ``root``.
    ``content`` is what to check instead of the file's bytes. Findings of less than ``impact`` are left out.
    """

    rows: Rows | None = None
    known: frozenset[str] = frozenset()
    root: Path = field(default_factory=Path)
    content: bytes | None = None
    impact: Impact = Impact.LOW
    advice: Advice = Advice.COUNTED

    @property
    def rests_on_text(self) -> bool:
        """Whether the text of the file decides what counts."""
        return self.rows is not None or bool(self.known)

    def acts_on(self, diagnostic: Diagnostic) -> bool:
        """Return whether what is shown of a file is to be fixed or silenced as well."""
        return self.advice is not Advice.ASIDE or not diagnostic.advice

    def within(self, source: Source) -> Scope:
        """Return the scope with the lines of the text of ``source`` for those of its file."""
        return self if self.rows is None else replace(self, rows=source.rows_of(self.rows))

    def sort_out(self, source: Source | None, diagnostics: Sequence[Diagnostic]) -> Sorted:
        """Tell the findings in ``source`` apart; all of them have to be given.

        The text may be missing if nothing depends on it, or nothing was found.
        """
        known = frozenset[str]()
        left: Sequence[Diagnostic] = diagnostics
        if diagnostics and self.rests_on_text:
            assert source is not None
            text = source
            if self.known:
                names = fingerprints(diagnostics, lambda _: text.text, self.root)
                known = self.known.intersection(names)
                left = [
                    item
                    for item, name in zip(diagnostics, names, strict=True)
                    if name not in known or item.code in UNTREATED
                ]
            left = [item for item in left if self._touches(text, item)]
        return self._weighed(left, known)

    def _weighed(self, diagnostics: Sequence[Diagnostic], known: frozenset[str]) -> Sorted:
        """Tell findings apart by their impact, and advice from the others."""
        found = Sorted([], known)
        hidden = 0
        for item in diagnostics:
            if item.code in UNTREATED:
                found.shown.append(item)
            elif self.advice is (Advice.OFF if item.advice else Advice.ALONE):
                continue
            elif item.impact < self.impact:
                hidden += self.acts_on(item)
            elif self.acts_on(item):
                found.shown.append(item)
            else:
                found.aside.append(item)
        return replace(found, hidden=hidden)

    def _touches(self, source: Source, diagnostic: Diagnostic) -> bool:
        """Return whether a changed line is among those of the finding; failures always count."""
        if self.rows is None or diagnostic.code in UNTREATED:
            return True
        first = source.text.count("\n", 0, diagnostic.span.start) + 1
        last = first + source.text.count("\n", diagnostic.span.start, diagnostic.span.end)
        return any(start <= last and first <= end for start, end in self.rows)

    def moved(self, source: Source, edits: Iterable[Edit]) -> Scope:
        """Return the scope of the text that the edits make of ``source``;
        the lines they write count as changed.
        """
        if self.rows is None:
            return self
        text, grown = source.text, 0
        growths: list[tuple[int, int]] = []
        written: list[tuple[int, int]] = []
        for edit in sorted(set(edits)):
            start, end = edit.span.start, edit.span.end
            row, added = text.count("\n", 0, start) + 1, edit.content.count("\n")
            # Whole lines leave those below them as they are.
            whole = all(not at or text[at - 1] == "\n" for at in (start, end))
            whole = whole and (not edit.content or edit.content.endswith("\n"))
            if added or not whole:
                written.append((row + grown, row + grown + added - whole))
            growths.append((row, added - text.count("\n", start, end)))
            grown += growths[-1][1]
        kept = [
            (
                first + sum(growth for row, growth in growths if row < first),
                last + sum(growth for row, growth in growths if row <= last),
            )
            for first, last in self.rows
        ]
        return replace(self, rows=tuple(sorted({*kept, *written})))

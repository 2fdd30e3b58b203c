"""What became of a text by edits: where each part of it stood at first, and what was found there then.

A fix can make another one look better than it is: where one calls ``.detach()``, there is no graph any more
that a caller could need, and a second fix that drops the graph seems safe. Findings are therefore judged by
the text that the author wrote: in no later round has a finding a better fix than it had at first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import dataclass, replace

from torchlint.diagnostics import Applicability, Diagnostic, Edit, Risks, Span

# The code and the place of a finding in the first text.
Key = tuple[str, Span]
# How far a fix may be trusted, and what speaks against it where that is not all the way.
_Grade = tuple[Applicability, str | None]
_BROUGHT_UP = "another fix brought this finding up; look at it once more"


@dataclass(frozen=True)
class _Piece:
    """Characters that no edit has touched: where they stand, where they stood at first, how many."""

    now: int
    then: int
    length: int


@dataclass(frozen=True)
class Moves:
    """Where the parts of a text stood in the first one."""

    pieces: tuple[_Piece, ...]
    size: int
    """How many characters the first text had."""

    @staticmethod
    def none(size: int) -> Moves:
        """Return those of the first text itself."""
        return Moves((_Piece(0, 0, size),) if size else (), size)

    def edited(self, edits: Iterable[Edit]) -> Moves:
        """Return the moves up to the text that these edits, which do not overlap, make of this one."""
        kept: list[_Piece] = []
        waiting = list(reversed(self.pieces))
        at = grown = 0
        for edit in (*sorted(set(edits)), None):
            until = edit.span.start if edit is not None else None
            while waiting and (until is None or waiting[-1].now < until):
                piece = waiting.pop()
                first = max(at - piece.now, 0)
                last = piece.length if until is None else min(piece.length, until - piece.now)
                if first < last:
                    kept.append(_Piece(piece.now + first + grown, piece.then + first, last - first))
                if last < piece.length:
                    waiting.append(_Piece(piece.now + last, piece.then + last, piece.length - last))
            if edit is not None:
                at = edit.span.end
                grown += len(edit.content) - (edit.span.end - edit.span.start)
                while waiting and waiting[-1].now + waiting[-1].length <= at:
                    waiting.pop()
        return replace(self, pieces=tuple(kept))

    def origin(self, span: Span) -> tuple[Span, bool]:
        """Return the part of the first text that a part of this one stands for,
        and whether it is exactly that.

        What edits have written stands for what they replaced.
        """
        starts = [piece.now for piece in self.pieces]
        begin, exact = self._place(starts, span.start, before=True)
        last, kept = self._place(starts, max(span.end - 1, span.start), before=False)
        end = last + 1 if kept and span.end > span.start else last
        return Span(begin, max(begin, end)), exact and kept

    def _place(self, starts: Sequence[int], offset: int, *, before: bool) -> tuple[int, bool]:
        """Return where a character stood; for one that was not there,
        where what it replaces begins or ends.
        """
        at = bisect_right(starts, offset) - 1
        if at >= 0 and offset < self.pieces[at].now + self.pieces[at].length:
            return self.pieces[at].then + offset - self.pieces[at].now, True
        if before:
            return (self.pieces[at].then + self.pieces[at].length if at >= 0 else 0), False
        return (self.pieces[at + 1].then if at + 1 < len(self.pieces) else self.size), False


class Record:
    """What was found in a text at first, what of it is to be fixed, and how much of that has been.

    Attributes:
        later: how often each rule was applied to what was not to be fixed at first.
        risks: why fixes that were made are unsafe.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], wanted: Iterable[Diagnostic]) -> None:
        self._grades: dict[Key, _Grade | None] = {}
        self._places: defaultdict[str, list[Span]] = defaultdict(list)
        self._wanted = Counter((item.code, item.span) for item in wanted)
        self._made: Counter[Key] = Counter()
        self.later: Counter[str] = Counter()
        self.risks: Risks = Counter()
        for item in diagnostics:
            key = item.code, item.span
            grade = (item.fix.applicability, item.fix.risk) if item.fix is not None else None
            if key in self._grades:
                grade = _lower(grade, self._grades[key])
            else:
                self._places[item.code].append(item.span)
            self._grades[key] = grade

    def copy(self) -> Record:
        """Return the same record, to note other fixes in."""
        other = copy(self)
        other._made, other.later = Counter(self._made), Counter(self.later)
        other.risks = Counter(self.risks)
        return other

    def judged(
        self, item: Diagnostic, moves: Moves, follows: Iterable[str], applied: AbstractSet[str]
    ) -> Diagnostic:
        """Return the finding with a fix no better than it had at first,
        in a text that fixes have been made in.

        What was not found at first is for the user to decide about, unless its rule ``follows`` one of those
        that were ``applied``.
        """
        if item.fix is None:
            return item
        keys = self._keys(item, moves)
        limit: _Grade | None = Applicability.SAFE, None
        if not keys and applied.isdisjoint(follows):
            limit = Applicability.UNSAFE, _BROUGHT_UP
        for key in keys:
            limit = _lower(limit, self._grades[key])
        if limit is None:
            return replace(item, fix=None, remedy=item.fix.message)
        return replace(item, fix=item.fix.lowered(*limit))

    def fixed(self, diagnostics: Iterable[Diagnostic], moves: Moves) -> None:
        """Note that these findings of a text have been fixed."""
        for item in diagnostics:
            if item.fix is not None and item.fix.risk is not None:
                self.risks[item.code, item.fix.risk] += 1
            open_keys = (k for k in self._keys(item, moves) if self._made[k] < self._wanted[k])
            key = next(open_keys, None)
            if key is None:
                self.later[item.code] += 1
            else:
                self._made[key] += 1

    def settled(self, left: Iterable[Diagnostic], moves: Moves) -> Counter[str]:
        """Return how many findings of each rule were to be fixed and are gone by the fixes of others."""
        remaining = Counter(key for item in left for key in self._keys(item, moves)[:1])
        gone: Counter[str] = Counter()
        for key, count in (self._wanted - self._made - remaining).items():
            gone[key[0]] += count
        return gone

    def _keys(self, item: Diagnostic, moves: Moves) -> list[Key]:
        """Return the findings of the first text that this one may be."""
        span, exact = moves.origin(item.span)
        if exact:
            return [(item.code, span)] if (item.code, span) in self._grades else []
        places = self._places.get(item.code, ())
        return [(item.code, p) for p in places if p.start < span.end and span.start < p.end]


def _lower(one: _Grade | None, other: _Grade | None) -> _Grade | None:
    return None if one is None or other is None else min(one, other, key=lambda grade: grade[0])

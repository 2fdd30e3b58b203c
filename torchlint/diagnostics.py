"""What torchlint says about a program: spans, edits, fixes and diagnostics.

Everything here is frozen, picklable and free of LibCST, so that it can cross process borders and be
written as JSON by any renderer.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path


class Severity(enum.Enum):
    """How bad a finding is; the order of ``rank`` is the order of ``--fail-on``."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for a note, 1 for a warning, 2 for an error."""
        return ("note", "warning", "error").index(self.value)


class Impact(enum.IntEnum):
    """How much is at stake in a finding, as `torchlint.impact` works it out; ordered as ``--impact`` is."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2

    @property
    def label(self) -> str:
        """The lower-case word for it."""
        return self.name.lower()


class Frequency(enum.IntEnum):
    """How often a place runs, the rarest first; `torchlint.semantics.repetition` computes it."""

    ONCE = 0
    EPOCH = 1
    RARELY = 2
    """In a few of the steps, such as every 100th."""
    LOOP = 3
    """In a loop that computes, but runs no model, and that nothing is seen to run at every step."""
    UNKNOWN = 4
    BATCH = 5
    """For every batch of an evaluation."""
    STEP = 6
    """In every training step or forward pass."""
    TOKEN = 7
    """In every round of a loop that feeds a model its own output, as generation and sampling do."""

    @property
    def label(self) -> str:
        """The lower-case word for it."""
        return self.name.lower()

    @property
    def told(self) -> str | None:
        """The frequency in words, such as "every step"; None where it is not known."""
        return _FREQUENCIES[self]


_FREQUENCIES = {
    Frequency.ONCE: "once",
    Frequency.EPOCH: "every epoch",
    Frequency.RARELY: "in a few steps only",
    Frequency.LOOP: "in a loop without a model",
    Frequency.UNKNOWN: None,
    Frequency.BATCH: "every evaluated batch",
    Frequency.STEP: "every step",
    Frequency.TOKEN: "every decoding step",
}


class Applicability(enum.IntEnum):
    """How far a fix may be trusted; ordered, so that "may it be applied" is one comparison.

    ``SAFE`` keeps results and intent on every path, ``UNSAFE`` is likely right but something outside
    the file could notice, ``DISPLAY`` is shown and never applied.
    """

    DISPLAY = 0
    UNSAFE = 1
    SAFE = 2

    @property
    def label(self) -> str:
        """The lower-case word used in machine formats."""
        return self.name.lower()


Risks = Counter[tuple[str, str]]
"""How often fixes of a rule, by its code, were unsafe for a reason."""


UNTREATED = frozenset({"TL000", "TL001"})
"""The codes of findings about a file that could not be treated at all, or not by every rule.

They are no matter of taste: nothing suppresses them or leaves them out.
"""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of character offsets ``[start, end)`` into the decoded text of one file."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place as editors count it: ``row`` and ``column`` both start at 1, columns in characters.

    In a notebook they count within the cell of number ``cell``, which plays no part in comparisons; neither
    does ``path``, that of the file if it is another than the one that is spoken of.
    """

    row: int
    column: int
    cell: int | None = field(default=None, compare=False)
    path: Path | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the characters of ``span`` by ``content``; an empty span inserts.

    ``path`` is that of the file if it is another than the one that the finding is in.
    """

    span: Span
    content: str
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that makes one finding go away.

    ``message`` is an imperative sentence without a full stop ("Add `pin_memory=True`"). The edits are
    sorted, those of the file of the finding first, do not overlap, and are applied together or not at all.
    ``risk`` is why it is unsafe, in a few words: what may change, or when it fails ("results change in the
    last digits"). ``withheld`` says why this run does not apply it, although it may be applied.
    """

    message: str
    edits: tuple[Edit, ...]
    applicability: Applicability
    withheld: str | None = None
    risk: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "edits", tuple(sorted(set(self.edits), key=_file_and_place)))

    def lowered(self, applicability: Applicability, risk: str | None) -> Fix:
        """Return the fix with an applicability that is no better than this one, which has this ``risk``."""
        if self.applicability <= applicability:
            return self
        return replace(self, applicability=applicability, risk=risk)

    @property
    def own(self) -> tuple[Edit, ...]:
        """The edits of the file that the finding is in."""
        return tuple(edit for edit in self.edits if edit.path is None)

    @property
    def elsewhere(self) -> dict[Path, tuple[Edit, ...]]:
        """The edits of other files, by file, as each of them has them: without its path."""
        found: dict[Path, tuple[Edit, ...]] = {}
        for edit in self.edits:
            if edit.path is not None:
                found[edit.path] = (*found.get(edit.path, ()), Edit(edit.span, edit.content))
        return found


def _file_and_place(edit: Edit) -> tuple[str, Span, str]:
    return str(edit.path or ""), edit.span, edit.content


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding at one place.

    ``message`` is one sentence without a full stop. ``noqa_row`` is the physical line at whose end a
    ``# noqa`` comment silences it (the last line of a multi-line statement). ``related`` are further
    places worth showing, such as the loop that makes a call hot, each with a short remark. ``remedy`` is
    the edit to make by hand, in the form of the message of a fix. In a notebook rows and columns count
    within ``cell``, numbered from 1 over cells of all kinds; ``related`` places name their own. ``span`` and
    the edits of ``fix`` are offsets into the text of the whole notebook.

    ``frequency`` is how often the place runs, None where that plays no part in the ``impact``. ``slight`` is
    why that is low, in a few words ("runs once"), and None where it is not. ``advice`` concerns the program
    as a whole: an opportunity, and no fault of the line.
    """

    code: str
    name: str
    message: str
    severity: Severity
    path: Path
    span: Span
    start: Position
    end: Position
    fix: Fix | None = None
    url: str | None = None
    noqa_row: int = 0
    cell: int | None = None
    related: tuple[tuple[Position, str], ...] = field(default=())
    remedy: str | None = None
    impact: Impact = Impact.MEDIUM
    frequency: Frequency | None = None
    advice: bool = False
    slight: str | None = None

    @property
    def help(self) -> str | None:
        """The edit that makes the finding go away: what its fix does, else its remedy."""
        return self.fix.message if self.fix is not None else self.remedy

    @property
    def sort_key(self) -> tuple[str, int, Position, Position, str, str]:
        """Path, cell, place, code: the one order in which diagnostics are ever shown."""
        return (str(self.path), self.cell or 0, self.start, self.end, self.code, self.message)

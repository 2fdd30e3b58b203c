"""Findings that two people read independently, and how many of them deserve a change.

The question is "would you change this line?". Each reading is one of `VERDICTS`: ``change``, ``true`` for a
finding that is right and not worth a change, ``wrong`` for one that is not so, or whose help cannot be
followed. Where the two differ, what stands is in the column ``settled``: the less favourable verdict, unless
somebody has looked at both once more; else that is empty.
Where only one person has read, ``second`` is empty.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("readings.tsv")
CHANGE, TRUE, WRONG = VERDICTS = ("change", "true", "wrong")
COLUMNS = (
    "package",
    "version",
    "place",
    "rule",
    "severity",
    "impact",
    "first",
    "second",
    "settled",
    "why",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One finding as two people read it; ``place`` is ``path:line`` in the package."""

    package: str
    version: str
    place: str
    rule: str
    severity: str
    impact: str
    first: str
    second: str
    settled: str
    why: str

    @property
    def agreed(self) -> bool:
        """Whether both came to the same verdict by themselves."""
        return self.first == self.second

    @property
    def verdict(self) -> str:
        """What the reading comes to."""
        return self.first if self.agreed or not self.second else self.settled


@dataclass(frozen=True, slots=True)
class Tally:
    """How some findings were read: counts of each verdict, and of those on which both readers agreed."""

    change: int
    true: int
    wrong: int
    agreed: int

    @property
    def read(self) -> int:
        """All findings that were read."""
        return self.change + self.true + self.wrong


def readings(file: Path = FILE) -> list[Reading]:
    """Return every row of a table of readings.

    Raises:
        ValueError: the file has other columns, a verdict is none of `VERDICTS`, a finding is settled without
            need, or one on which the readers differ is not.
    """
    with file.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t")
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise ValueError(f"{file.name}: the columns must be {', '.join(COLUMNS)}")
        found = [Reading(**row) for row in rows]
    for each in found:
        if each.first not in VERDICTS or each.second not in {*VERDICTS, ""} or each.verdict not in VERDICTS:
            raise ValueError(f"{file.name}, {each.place}: a verdict must be {', '.join(VERDICTS)}")
        if each.settled and (each.agreed or not each.second):
            raise ValueError(f"{file.name}, {each.place}: nothing is left to settle where both agree")
    return found


def tally(found: Sequence[Reading]) -> Tally:
    """Count the verdicts."""
    verdicts = Counter(each.verdict for each in found)
    agreed = sum(each.agreed for each in found)
    return Tally(verdicts[CHANGE], verdicts[TRUE], verdicts[WRONG], agreed)


def by_rule(found: Sequence[Reading]) -> dict[str, Tally]:
    """Return the same for each rule, sorted by code."""
    return {
        code: tally([each for each in found if each.rule == code])
        for code in sorted({each.rule for each in found})
    }

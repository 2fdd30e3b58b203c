"""Findings that two people read independently, and how many of them deserve a change.

The question is "would you change this line?". Each reading is one of `VERDICTS`: ``change``, ``true`` for a
finding that is right and not worth a change, ``wrong`` for one that is not so, or whose help cannot be
followed. Where the two differ, what stands is in the column ``settled``: the less favourable verdict, unless
somebody has looked at both once more; else that is empty.
Where only one person has read, ``second`` is empty.

`again` tells which of them are still reported, and so what a change of impact costs and gains: a finding to
change that is gone, or of low impact, is lost.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any

from packaging.utils import canonicalize_name

from benchmarks.corpus.findings import diagnostics
from benchmarks.corpus.packages import Package

FILE = Path(__file__).with_name("readings.tsv")
CHANGE, TRUE, WRONG = VERDICTS = ("change", "true", "wrong")
DEFAULT, LOW, GONE = STANDINGS = ("default", "low", "gone")
"""Where a finding stands today: reported at default settings, at low impact only, not at all."""
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


def tables() -> list[Path]:
    """Return the tables of readings, as they lie beside this file."""
    return sorted(FILE.parent.glob("readings*.tsv"))


def releases(found: Iterable[Reading], folder: Path) -> list[Package]:
    """Return the releases that were read, as they are (or will be) unpacked under a folder; no scripts."""
    read = dict.fromkeys(
        (canonicalize_name(each.package), each.version) for each in found if each.version[:1].isdigit()
    )
    return [Package(name, version, folder / f"{name}-{version}") for name, version in read]


def again(found: Sequence[Reading], folder: Path) -> Iterator[tuple[Package, list[tuple[Reading, str]]]]:
    """Yield the findings of each release that lies in a folder (``timm-1.0.31``), and where each stands now.

    One release after the other, each as a whole project, of which only the files that were read are linted.
    What is in none of its files is left out.
    """
    for release in releases(found, folder):
        root = release.folder.resolve()
        if not root.is_dir():
            continue
        sources: dict[str, list[Path]] = {}
        for path in root.rglob("*.py"):
            sources.setdefault(path.name, []).append(path)
        here: dict[Reading, Path] = {}
        for each in found:
            if (canonicalize_name(each.package), each.version) != (release.name, release.version):
                continue
            if (source := _source(each, sources)) is not None:
                here[each] = source
        paths = list(dict.fromkeys(here.values()))
        options = ["--select", "ALL", "--impact", "low", "--advice", "off", "--jobs", "1"]
        items = diagnostics(root, options, paths=paths) if paths else []
        yield release, [(each, _standing(each, path, items)) for each, path in here.items()]


def _source(reading: Reading, sources: dict[str, list[Path]]) -> Path | None:
    """Return the file of a reading: an archive may have one more folder around it, or one less."""
    wanted = PurePosixPath(reading.place.rpartition(":")[0]).parts[::-1]

    def alike(path: Path) -> int:
        pairs = zip(path.parts[::-1], wanted, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    return max(sources.get(wanted[0], ()), key=alike, default=None) if wanted else None


def _standing(reading: Reading, path: Path, items: Sequence[dict[str, Any]]) -> str:
    """Return where a finding stands among what is reported now; a line may have moved by one."""
    row = int(reading.place.rpartition(":")[2])
    impacts = {
        item["impact"]
        for item in items
        if item["code"] == reading.rule and Path(item["filename"]) == path
        if abs(item["location"]["row"] - row) <= 1
    }
    return GONE if not impacts else LOW if impacts == {"low"} else DEFAULT

"""The tally of findings read by hand, and the precision that it shows."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("tally")
COLUMNS = ("package", "version", "read", "true", "false", "why")


@dataclass(frozen=True, slots=True)
class Entry:
    """What was read of one rule in one package: how many findings, how many true, why the others not."""

    rule: str
    package: str
    version: str
    read: int
    true: int
    false: int
    why: str


@dataclass(frozen=True, slots=True)
class Precision:
    """All that was read of one rule."""

    rule: str
    packages: int
    read: int
    true: int

    @property
    def share(self) -> float:
        """True findings among those read, from 0 to 1."""
        return self.true / self.read


def entries(folder: Path = FOLDER) -> Iterator[Entry]:
    """Yield every row of every ``<CODE>.csv`` of a folder.

    Raises:
        ValueError: a file has other columns, a count is no number, or the counts of a row do not add up.
    """
    for path in sorted(folder.glob("TL*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.DictReader(stream)
            if tuple(rows.fieldnames or ()) != COLUMNS:
                raise ValueError(f"{path.name}: the columns must be {', '.join(COLUMNS)}")
            for row in rows:
                read, true, false = (int(row[column]) for column in ("read", "true", "false"))
                if read != true + false:
                    raise ValueError(
                        f"{path.name}, {row['package']}: {read} read are not {true} true + {false} false"
                    )
                yield Entry(path.stem, row["package"], row["version"], read, true, false, row["why"])


def precision(folder: Path = FOLDER) -> list[Precision]:
    """Return precision by rule, sorted by code."""
    by_rule: dict[str, list[Entry]] = {}
    for entry in entries(folder):
        by_rule.setdefault(entry.rule, []).append(entry)
    return [
        Precision(rule, len(rows), sum(row.read for row in rows), sum(row.true for row in rows))
        for rule, rows in sorted(by_rule.items())
        if any(row.read for row in rows)
    ]

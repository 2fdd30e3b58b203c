"""What is kept of a repository, and of each run: JSON beside the pages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from torchlint.source import exists, read_bytes, write_atomically

COUNTED = ("high", "medium")
"""The impacts of what ``check`` reports unless it is told otherwise."""
_RECORDS, _HISTORY = "records", "history.json"


class ForeignFolderError(Exception):
    """A folder holds something else than a report; the message says so."""


@dataclass(frozen=True)
class Finding:
    """One finding. ``lines`` are those around it, of which the first has the row ``first``.

    ``file`` is relative to the repository. ``fix`` is ``safe``, ``unsafe`` or empty.
    """

    code: str
    name: str
    message: str
    help: str
    severity: str
    impact: str
    advice: bool
    fix: str
    file: str
    cell: int | None
    row: int
    column: int
    last: int
    first: int
    lines: tuple[str, ...]

    @property
    def counted(self) -> bool:
        """Whether ``check`` reports it unless it is told otherwise."""
        return self.impact in COUNTED and not self.advice

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it counts as in totals."""
        if self.advice:
            return ("advice",)
        if self.impact not in COUNTED:
            return (self.impact,)
        return (self.impact, "counted", *([self.fix] if self.fix else []))


@dataclass(frozen=True)
class Record:
    """A repository as it was checked: at a time in ISO format, in so many seconds.

    With an ``error`` it could not be checked.
    """

    name: str
    folder: str
    checked: str
    seconds: float
    findings: tuple[Finding, ...] = ()
    error: str = ""

    @property
    def team(self) -> str:
        """The folder that the repository is in."""
        return self.name.rpartition("/")[0]

    @property
    def slug(self) -> str:
        """A name for its files."""
        return slug(self.name)

    @property
    def totals(self) -> Counter[str]:
        """How many findings there are of each kind."""
        return total(self.findings)


def total(findings: Iterable[Finding]) -> Counter[str]:
    """Return how many findings there are of each kind."""
    return Counter(kind for finding in findings for kind in finding.kinds)


def slug(name: str) -> str:
    """Return a name as one of a file: no two names have the same."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return plain if plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:8]}"


def names(folders: Sequence[Path]) -> Mapping[Path, str]:
    """Return names for repositories: the team's folder and their own,
    or more of the path if that is not enough.
    """
    ends = {folder: _ends(folder) for folder in folders}
    seen = Counter(end for several in ends.values() for end in several)
    return {
        folder: next((end for end in several if seen[end] == 1), folder.as_posix())
        for folder, several in ends.items()
    }


def _ends(folder: Path) -> list[str]:
    """Return what a path ends with, from the last two of its parts on."""
    return ["/".join(folder.parts[-length:]) for length in range(2, len(folder.parts) + 1)]


class Shelf:
    """The records in the folder of a report.

    Raises:
        ForeignFolderError: it holds something else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise ForeignFolderError(f"{folder} is not a folder")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / _RECORDS).is_dir():
            raise ForeignFolderError(f"{folder} holds something else than a report; choose an empty folder")
        (folder / _RECORDS).mkdir(parents=True, exist_ok=True)

    def put(self, record: Record) -> None:
        """Keep a record."""
        write(self._path(record.name), json.dumps(asdict(record)))

    def get(self, name: str) -> Record | None:
        """Return the record of a repository; None if there is none that can be read."""
        try:
            known = json.loads(self._path(name).read_text(encoding="utf-8"))
            findings = [Finding(**{**item, "lines": tuple(item["lines"])}) for item in known["findings"]]
            return Record(**{**known, "findings": tuple(findings)})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _path(self, name: str) -> Path:
        return self.folder / _RECORDS / f"{slug(name)}.json"

    @property
    def history(self) -> list[dict[str, Any]]:
        """What is kept of earlier runs, the oldest first."""
        try:
            known = json.loads((self.folder / _HISTORY).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return list(known)

    def remember(self, history: Sequence[Mapping[str, Any]]) -> None:
        """Keep the runs."""
        write(self.folder / _HISTORY, json.dumps(history))


def write(path: Path, text: str) -> None:
    """Replace a file of the report in one step.

    Raises:
        SourceError: its folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    old = read_bytes(path) if exists(path) else None
    write_atomically(path, text.encode("utf-8", "replace"), old, "the report")

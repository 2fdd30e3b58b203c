"""Program text for the page: a unified diff line by line, and the lines where something happened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchlint.verify.results import AppliedFix, Line

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_CONTEXT = 3
_WHOLE = 60
"""A program of no more lines is shown whole."""


@dataclass(frozen=True)
class DiffLine:
    """One line of a unified diff."""

    kind: str
    """``file``, ``hunk``, ``add``, ``del`` or ``same``."""
    text: str
    old: int | None = None
    new: int | None = None


def parse_diff(diff: str) -> list[DiffLine]:
    """Return the lines of a unified diff with their numbers in both texts."""
    found = []
    old = new = old_left = new_left = 0
    for text in _lines(diff):
        if old_left <= 0 and new_left <= 0:
            hunk = _HUNK.match(text)
            if hunk:
                old, new = int(hunk[1]), int(hunk[3])
                old_left = int(hunk[2] or 1)
                new_left = int(hunk[4] or 1)
            # Only a line outside of a hunk can name a file: a removed line may begin with dashes.
            found.append(DiffLine("hunk" if hunk else "file", text))
            continue
        if text.startswith("-"):
            found.append(DiffLine("del", text, old=old))
            old, old_left = old + 1, old_left - 1
        elif text.startswith("+"):
            found.append(DiffLine("add", text, new=new))
            new, new_left = new + 1, new_left - 1
        elif text.startswith("\\"):
            found.append(DiffLine("file", text))
        else:
            found.append(DiffLine("same", text, old, new))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
    return found


def changed_files(diff: str) -> list[str]:
    """Return the files that a unified diff changes, as it names them without the customary prefix."""
    headers = [line.text[4:] for line in parse_diff(diff) if line.kind == "file" and line.text[:4] == "+++ "]
    return [header.partition("\t")[0].strip().removeprefix("b/") for header in headers]


def original_rows(diff: Iterable[DiffLine], file: str) -> Mapping[int, int | None]:
    """Return for rows of the fixed file inside the diff's hunks the row of the original, None for new ones.

    A line that replaces another counts as that line.
    """
    rows: dict[int, int | None] = {}
    removed: list[int] = []
    inside = False
    for line in diff:
        if line.kind == "file":
            if line.text.startswith("+++ "):
                inside = _names(line.text[4:], file)
            removed = []
        elif line.kind == "del" and line.old is not None:
            removed.append(line.old)
        elif line.kind == "add" and line.new is not None:
            if inside:
                rows[line.new] = removed.pop(0) if removed else None
        elif line.new is not None:
            removed = []
            if inside:
                rows[line.new] = line.old
    return rows


def _names(header: str, file: str) -> bool:
    path = header.partition("\t")[0].strip()
    return path in (file, f"b/{file}")


def to_original(diff: Iterable[DiffLine], file: str, row: int) -> int | None:
    """Return the row of the original for a row of the fixed file;
    None for a line that only the latter has.
    """
    rows = original_rows(diff, file)
    if row in rows:
        return rows[row]
    shift = 0
    for new, old in sorted(rows.items()):
        if new > row:
            break
        shift = new - old if old is not None else shift + 1
    return row - shift


@dataclass(frozen=True)
class SourceLine:
    """One line of a program with what is known of it; ``row`` is 0 for a gap."""

    row: int
    text: str = ""
    codes: tuple[str, ...] = ()
    before: float | None = None
    """Waits per step in the original; None for none."""
    after: float | None = None
    """The same with all fixes; None if that was not looked at."""
    seconds: float | None = None
    """Host time per step spent waiting there in the original."""
    what: str = ""

    @property
    def marked(self) -> bool:
        """Whether anything is to be said of the line."""
        return bool(self.codes) or self.before is not None or bool(self.after)


def annotate(
    source: str,
    fixes: Iterable[AppliedFix],
    before: Iterable[Line],
    after: Iterable[tuple[int, Line]] | None,
) -> list[SourceLine]:
    """Return the lines of ``source`` around those with fixes and waits; all of them if they are few.

    ``after`` has the waits that the fixed program still has, with the rows of the original; None if nobody
    looked.
    """
    texts = _lines(source)
    codes: dict[int, list[str]] = {}
    for fix in fixes:
        known = codes.setdefault(fix.row, [])
        if fix.code not in known:
            known.append(fix.code)
    waits: dict[int, list[Line]] = {}
    for wait in before:
        waits.setdefault(wait.row, []).append(wait)
    left: dict[int, float] = {}
    for row, wait in after or ():
        left[row] = left.get(row, 0.0) + wait.per_step

    lines: list[SourceLine] = []
    for row, text in enumerate(texts, start=1):
        here = waits.get(row, [])
        timed = [wait.seconds for wait in here if wait.seconds is not None]
        interesting = bool(here) or row in left
        lines.append(
            SourceLine(
                row,
                text,
                tuple(codes.get(row, ())),
                sum(wait.per_step for wait in here) if here else None,
                left.get(row, 0.0) if after is not None and interesting else None,
                sum(timed) if timed else None,
                ", ".join(dict.fromkeys(wait.what for wait in here if wait.what)),
            )
        )
    marked = [line.row for line in lines if line.marked]
    if not marked:
        return []
    if len(lines) <= _WHOLE:
        return lines
    shown: list[SourceLine] = []
    for line in lines:
        if any(abs(line.row - row) <= _CONTEXT for row in marked):
            if line.row > 1 and (not shown or shown[-1].row != line.row - 1):
                shown.append(SourceLine(0))
            shown.append(line)
    return [*shown, SourceLine(0)] if shown[-1].row != len(lines) else shown


def _lines(text: str) -> list[str]:
    """Return the lines of a text, split where Python's tokenizer splits, without their ends."""
    lines = re.split(r"\r\n|\r|\n", text)
    return lines[:-1] if lines and not lines[-1] else lines

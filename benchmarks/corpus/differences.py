"""What two versions of torchlint find in the same files, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Place = tuple[int, int]
Edit = tuple[Place, Place, str]

ASPECTS = ("place", "severity", "message", "help", "grade", "edits")
"""What of a finding may change, in the order of a report; the grade is that of the fix."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic, with a path relative to its package; ``grade`` is ``none`` without a fix.

    ``help`` is None if the reader is told nothing but the message.
    """

    package: str
    path: str
    code: str
    start: Place
    end: Place
    severity: str
    message: str
    help: str | None
    grade: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """The same finding in both versions, and what of it differs."""

    before: Finding
    after: Finding
    aspects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """Findings of one version only, findings that changed, and how many did not."""

    added: list[Finding]
    removed: list[Finding]
    changed: list[Change]
    unchanged: int

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def finding(item: dict[str, Any], package: str, folder: Path) -> Finding:
    """Return a diagnostic as torchlint's JSON has it, of this or of an earlier version."""
    fix = item["fix"]
    return Finding(
        package=package,
        path=Path(item["filename"]).resolve().relative_to(folder.resolve()).as_posix(),
        code=item["code"],
        start=_place(item["location"]),
        end=_place(item["end_location"]),
        severity=item["severity"],
        message=item["message"],
        help=item.get("help", fix["message"] if fix else None),
        grade=fix["applicability"] if fix else "none",
        edits=tuple(
            (_place(edit["location"]), _place(edit["end_location"]), edit["content"])
            for edit in (fix["edits"] if fix else ())
        ),
    )


def _place(location: dict[str, int]) -> Place:
    return location["row"], location["column"]


def compare(before: Iterable[Finding], after: Iterable[Finding]) -> Differences:
    """Pair findings of two versions by file, code and place, and what is left by file, code and message."""
    old, new = sorted(before, key=_order), sorted(after, key=_order)
    changed, unchanged = [], 0
    for key in (_at, _saying):
        pairs, old, new = _paired(old, new, key)
        for first, second in pairs:
            aspects = _aspects(first, second)
            if aspects:
                changed.append(Change(first, second, aspects))
            else:
                unchanged += 1
    changed.sort(key=lambda change: _order(change.after))
    return Differences(added=new, removed=old, changed=changed, unchanged=unchanged)


def _order(item: Finding) -> tuple[str, str, str, Place, Place, str]:
    return item.package, item.path, item.code, item.start, item.end, item.message


def _at(item: Finding) -> Hashable:
    return item.package, item.path, item.code, item.start


def _saying(item: Finding) -> Hashable:
    return item.package, item.path, item.code, item.message


def _paired(
    old: list[Finding], new: list[Finding], key: Callable[[Finding], Hashable]
) -> tuple[list[tuple[Finding, Finding]], list[Finding], list[Finding]]:
    """Return pairs with the same key, in order, and what has none on either side; equal findings go first."""
    waiting: dict[Hashable, list[Finding]] = defaultdict(list)
    for item in new:
        waiting[key(item)].append(item)
    pairs, left = [], []
    for item in old:
        candidates = waiting[key(item)]
        if not candidates:
            left.append(item)
            continue
        best = min(range(len(candidates)), key=lambda index: len(_aspects(item, candidates[index])))
        pairs.append((item, candidates.pop(best)))
    return pairs, left, [item for item in new if any(item is other for other in waiting[key(item)])]


def _aspects(before: Finding, after: Finding) -> tuple[str, ...]:
    told = {
        "place": (before.start, before.end) != (after.start, after.end),
        "severity": before.severity != after.severity,
        "message": before.message != after.message,
        "help": before.help != after.help,
        "grade": before.grade != after.grade,
        "edits": before.edits != after.edits,
    }
    return tuple(aspect for aspect in ASPECTS if told[aspect])

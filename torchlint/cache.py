"""What earlier runs found in files, by what the files hold.

The key of a file is the digest of its bytes, of all settings that the checker sees, of the code that checks
and of the interpreter that runs it; neither its name nor its time is asked. A file that is judged with its
project has its place in the key, and the shape of the project; beside its result stands the trace of the
other files that the result depends on. What is stored are finished diagnostics, as JSON. A result of a run
that went wrong in any way is not stored.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

from torchlint import __version__
from torchlint.diagnostics import (
    UNTREATED,
    Applicability,
    Diagnostic,
    Edit,
    Fix,
    Frequency,
    Impact,
    Position,
    Severity,
    Span,
)
from torchlint.files import repository
from torchlint.options import LintSettings
from torchlint.store import DAY, MAX_AGE, MAX_DOCUMENT, Store, StoreError, number_of, text_of
from torchlint.target import Target

FORMAT = 5
"""To be raised when what is stored of a diagnostic changes."""

_LARGEST_SHARE = MAX_DOCUMENT // 2
# How many days old the note of the last use of an entry gets before a run that learns nothing writes it.
_STALE = 7


Traced = tuple[str, str, tuple[int, ...]]
"""The trace of a result: the names of a snapshot and of what was asked, and numbers that tell files."""


class Cache:
    """The results of one project: read when it is made, written by `save`.

    ``project`` is any folder that runs on the same files have in common; ``code`` is the digest of the code
    that checks.
    """

    def __init__(self, store: Store, project: Path, code: str) -> None:
        self._store = store
        self._code = code
        named = sha256(str(project).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self._name, self._facts_name = f"results-{named}", f"facts-{named}"
        self._faces_name = f"faces-{named}"
        self._faces: Mapping[str, Any] | None = None
        self._unfinished: list[list[Any]] = []
        self.new_facts: dict[str, Any] = {}
        self._today = int(time.time() // DAY)
        self._entries = self._load()
        self._new: dict[str, Any] = {}
        self._stale = False

    def salt(self, settings: LintSettings) -> bytes:
        """Return what the keys of all files with these settings have in common."""
        known = [FORMAT, __version__, self._code, sys.implementation.name, list(sys.version_info)]
        return sha256(json.dumps([known, _canonical(settings)]).encode()).digest()

    def get(
        self,
        key: str,
        path: Path,
        size: int = 2**31,
        holds: Callable[[Traced], Traced | None] | None = None,
    ) -> tuple[Diagnostic, ...] | None:
        """Return what is known to be found in a file with this key, told of ``path``;
        None if nothing is known.

        No place lies beyond ``size``, the number of bytes in the file. Of what was found with a project,
        ``holds`` gives the trace as it is now, None if it does not hold.
        """
        entry = self._entries.get(key)
        try:
            stored: list[Any] = [entry, []] if type(entry) is int else entry or []
            day, found, *trace = stored
            if bool(trace) is (holds is None):
                return None
            if holds is not None:
                ((snapshot, asked, *ranks),) = trace
                before = text_of(snapshot), text_of(asked), tuple(map(number_of, ranks))
                now = holds(before)
                if now is None:
                    return None
                trace = [self._traced(now)] if now != before else trace
            if type(day) is not int or type(found) is not list:
                return None
            diagnostics = tuple(_diagnostic(item, path) for item in found)
            if not all(_within(item, size) for item in diagnostics):
                return None
            self._stale |= not self._today - _STALE <= day <= self._today
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return None
        self._new[key] = [self._today, found, *trace] if found or trace else self._today
        return diagnostics

    def put(
        self,
        key: str,
        diagnostics: tuple[Diagnostic, ...],
        trace: Traced | None = None,
    ) -> None:
        """Remember what was found in the file with this key, and the trace of the files it depends on."""
        # How deep a program may be nested depends on the machine.
        if any(item.code in UNTREATED for item in diagnostics):
            return
        found = [_stored(item) for item in diagnostics]
        rests = [] if trace is None else [self._traced(trace)]
        self._new[key] = [self._today, found, *rests] if found or rests else self._today
        self._stale = True

    def _traced(self, trace: Traced) -> list[Any]:
        """Return a trace as it is stored, in which what was asked is filled in when all is known."""
        snapshot, _, runs = trace
        self._unfinished.append([snapshot, "", *runs])
        self._stale = True
        return self._unfinished[-1]

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What is known of files by what they hold, apart from what was found in them; to be validated.

        `save` adds what was put into ``new_facts``.
        """
        document = self._store.load(self._facts_name)
        if not isinstance(document, dict) or document.get("code") != self._code_of_facts:
            return {}
        known = document.get("facts")
        return known if isinstance(known, dict) else {}

    @property
    def _code_of_facts(self) -> list[Any]:
        return [FORMAT, __version__, self._code, sys.implementation.name, *sys.version_info[:3]]

    def _save_facts(self) -> None:
        if not self.new_facts:
            return
        kept: dict[str, Any] = {}
        size = 0
        # Those that were learnt last come first.
        for name, fact in {**self.new_facts, **self.facts}.items():
            size += len(name) + len(json.dumps(fact)) + 8
            if size > _LARGEST_SHARE:
                break
            kept[name] = fact
        self._store.save(self._facts_name, {"code": self._code_of_facts, "facts": kept})
        self.new_facts.clear()

    def save(self) -> None:
        """Write what was learnt, together with what another run may have written meanwhile."""
        self._save_facts()
        if not self._stale:
            return
        entries = {**self._load(), **self._new}
        oldest = self._today - MAX_AGE // DAY
        kept = {key: entry for key, entry in entries.items() if _day(entry) >= oldest}
        self._store.save(self._name, _bounded(kept))
        self._stale = False

    def faces(self) -> Mapping[str, Any]:
        """Return what earlier runs have kept of the files that traces name; to be validated."""
        if self._faces is None:
            document = self._store.load(self._faces_name)
            known = isinstance(document, dict) and document.get("code") == self._code_of_facts
            self._faces = document if known else {}
        return self._faces

    def finish(self, to_keep: Callable[[], tuple[str, dict[str, Any]]]) -> None:
        """Complete the traces of this run, if there are any, with the name of what was asked.

        It comes with what is to be kept of the files that the traces name.
        """
        if not self._unfinished:
            return
        self._faces = None
        asked, kept = to_keep()
        self._store.save(self._faces_name, {"code": self._code_of_facts, **kept})
        for trace in self._unfinished:
            trace[1] = asked
        self._unfinished.clear()
        self._faces = None

    def _load(self) -> dict[str, Any]:
        document = self._store.load(self._name)
        return document if isinstance(document, dict) else {}


def key(salt: bytes, path: Path, digest: bytes) -> str:
    """Return the key of a file whose bytes have a SHA-256 ``digest``;
    of its name only what says how to read it.
    """
    whole = sha256(salt)
    whole.update(path.suffix.lower().encode("utf-8", "surrogateescape") + b"\0")
    whole.update(digest)
    return whole.hexdigest()[:40]


def tracked(directory: Path) -> bool:
    """Return whether git holds files in ``directory``: then its contents came with somebody's commit."""
    if repository(directory) is None and "GIT_DIR" not in os.environ:
        return False
    import subprocess

    command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--", "."]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0 and bool(done.stdout)


def open_store(directory: Path, key: bytes = b"") -> Store:
    """Return the store in a folder that was named; with a ``key``, of what was written with the same one.

    Raises:
        StoreError: it is no store, or git tracks it.
    """
    store = Store(directory, key)
    if tracked(directory):
        raise StoreError(f"{directory} cannot be used as a cache: git tracks files in it")
    return store


def _bounded(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return as many entries as fit, preferring those used last."""
    kept, size = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: -_day(item[1])):
        size += len(name) + (16 if isinstance(entry, int) else len(json.dumps(entry)) + 8)
        if size > _LARGEST_SHARE:
            break
        kept[name] = entry
    return kept


def _day(entry: Any) -> int:
    """Return the day of the last use of an entry; long ago if it is none."""
    day = entry[0] if isinstance(entry, list) and entry else entry
    return day if type(day) is int else 0


def _canonical(value: Any) -> Any:
    """Return a setting as JSON can hold it; equal for equal settings, whatever the order of their sets."""
    if isinstance(value, (LintSettings, Target)):
        return [_canonical(getattr(value, item.name)) for item in fields(value)]
    if isinstance(value, (frozenset, set)):
        return sorted(_canonical(item) for item in value)
    if isinstance(value, (tuple, list)):
        return [_canonical(item) for item in value]
    if isinstance(value, Mapping):
        return sorted([name, _canonical(item)] for name, item in value.items())
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


# --- a diagnostic as JSON --------------------------------------------------------------------------------


def _stored(item: Diagnostic) -> list[Any]:
    fix = item.fix
    return [
        *(item.code, item.name, item.message, item.severity.value),
        [item.span.start, item.span.end],
        [item.start.row, item.start.column],
        [item.end.row, item.end.column],
        fix
        and [
            fix.message,
            int(fix.applicability),
            fix.risk,
            [
                [edit.span.start, edit.span.end, edit.content, *([str(edit.path)] if edit.path else [])]
                for edit in fix.edits
            ],
        ],
        *(item.url, item.noqa_row, item.cell),
        [
            [place.row, place.column, place.cell, place.path and str(place.path), remark]
            for place, remark in item.related
        ],
        item.remedy,
        int(item.impact),
        None if item.frequency is None else int(item.frequency),
        int(item.advice),
        item.slight,
    ]


def _diagnostic(stored: Any, path: Path) -> Diagnostic:
    """Return what `_stored` was given, but for the path.

    Raises:
        TypeError, ValueError: it is something else.
    """
    code, name, message, severity, span, start, end, fix, url, noqa_row, cell, related, *rest = stored
    remedy, impact, frequency, advice, slight = rest
    cell = None if cell is None else number_of(cell)
    return Diagnostic(
        code=_word(code, _CODE),
        name=_word(name, _NAME),
        message=text_of(message),
        severity=Severity(severity),
        path=path,
        span=_span(*span),
        start=_position(*[*start, cell]),
        end=_position(*[*end, cell]),
        fix=None if fix is None else _fix(*fix),
        url=None if url is None else _word(url, _ADDRESS),
        noqa_row=number_of(noqa_row),
        cell=cell,
        related=tuple((_position(*place), text_of(remark)) for *place, remark in related),
        remedy=None if remedy is None else text_of(remedy),
        impact=Impact(number_of(impact)),
        frequency=None if frequency is None else Frequency(number_of(frequency)),
        advice=bool(number_of(advice)),
        slight=None if slight is None else text_of(slight),
    )


def _fix(message: Any, applicability: Any, risk: Any, edits: Any) -> Fix:
    made = tuple(
        Edit(_span(start, end), text_of(content), Path(text_of(path[0])) if path else None)
        for start, end, content, *path in edits
    )
    told = None if risk is None else text_of(risk)
    fix = Fix(text_of(message), made, Applicability(number_of(applicability)), risk=told)
    for group in (fix.own, *fix.elsewhere.values()):
        if any(first.span.end > second.span.start for first, second in pairwise(group)):
            raise ValueError("two edits overlap")
    return fix


def _span(start: Any, end: Any) -> Span:
    if number_of(start) > number_of(end):
        raise ValueError("a span ends before it starts")
    return Span(start, end)


def _position(row: Any, column: Any, cell: Any, path: Any = None) -> Position:
    if number_of(row) < 1 or number_of(column) < 1:
        raise ValueError("rows and columns start at 1")
    file = None if path is None else Path(text_of(path))
    return Position(row, column, None if cell is None else number_of(cell), file)


def _within(item: Diagnostic, size: int) -> bool:
    """Return whether a file of ``size`` bytes can have all places of a diagnostic."""
    ends = [item.span.end, *(edit.span.end for edit in (item.fix.own if item.fix else ()))]
    places = [item.start, item.end, *(place for place, _ in item.related if place.path is None)]
    numbers = [number for place in places for number in (place.row, place.column, place.cell or 0)]
    return max(ends) <= size and max(*numbers, item.noqa_row, item.cell or 0) <= size + 1


# As rules are declared, and as a page of one is linked to; formats print them as they are.
_CODE = re.compile(r"[A-Z]+[0-9]+")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ADDRESS = re.compile(r"https?://[!-~]+")


def _word(value: Any, form: re.Pattern[str]) -> str:
    if not form.fullmatch(text_of(value)):
        raise ValueError("expected a word of another form")
    return text_of(value)

"""The findings that a project lives with for now: a file of them, so that only new ones are reported.

{
  "version": 2,
  "findings": [
    {"code": "TL202", "path": "src/train.py", "line": "total += loss.item()", "fingerprint": "9f2c…"}
  ]
}

A finding is known by its fingerprint; the line is there for people. Paths are relative to the file.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torchlint.diagnostics import UNTREATED, Diagnostic
from torchlint.fingerprints import fingerprints, relative
from torchlint.source import Source, SourceError, exists, read_bytes, write_atomically

VERSION = 2
_LINE_WIDTH = 100
# A hundred thousand findings; what is too large to be read takes seconds to be found out.
_LARGEST = 32_000_000
# As they follow each other in the file.
_KEYS = ("code", "path", "line", "fingerprint")


class BaselineError(Exception):
    """A baseline that cannot be read or written; the message is for people."""


@dataclass(frozen=True, order=True)
class Entry:
    """One finding of a baseline, in the order in which the file lists them."""

    path: str
    code: str
    line: str
    fingerprint: str


@dataclass(frozen=True)
class Baseline:
    """The entries of the baseline at ``path``, which is absolute."""

    path: Path
    entries: frozenset[Entry] = frozenset()

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Return the baseline at ``path``.

        Raises:
            BaselineError: there is none, or it cannot be followed.
        """
        try:
            text = read_bytes(path, _LARGEST).decode("utf-8-sig")
        except SourceError as error:
            raise BaselineError(f"baseline {path}: {error.reason}") from None
        except UnicodeDecodeError:
            raise BaselineError(f"baseline {path}: it is not UTF-8") from None
        try:
            return cls(path, frozenset(_entries(text)))
        except ValueError as error:
            raise BaselineError(f"baseline {path}: {error}") from None

    @property
    def root(self) -> Path:
        """The directory that paths are relative to."""
        return self.path.parent

    @cached_property
    def _by_path(self) -> Mapping[str, frozenset[Entry]]:
        grouped: defaultdict[str, set[Entry]] = defaultdict(set)
        for entry in self.entries:
            grouped[entry.path].add(entry)
        return {path: frozenset(entries) for path, entries in grouped.items()}

    def of(self, path: Path) -> frozenset[Entry]:
        """Return the entries of one file."""
        return self._by_path.get(relative(path, self.root), frozenset())

    def known(self, path: Path) -> frozenset[str]:
        """Return the fingerprints of the entries of one file."""
        return frozenset(entry.fingerprint for entry in self.of(path))

    def updated(self, judged: Mapping[Path, Collection[str]], found: Iterable[Entry]) -> Baseline:
        """Return the baseline after a run that found ``found``.

        ``judged`` has the codes that the run looked for in each file that it could check. Entries of other
        files and other codes stay, but for those of files that no longer exist.
        """
        codes = {relative(path, self.root): set(looked) for path, looked in judged.items()}
        kept = (
            entry
            for path, entries in self._by_path.items()
            if exists(self.root / path)
            for entry in entries
            if entry.code not in codes.get(path, ())
        )
        return Baseline(self.path, frozenset((*kept, *found)))

    def write(self) -> bool:
        """Write the file in one step; return whether anything had to be written.

        Raises:
            BaselineError: it cannot be written.
        """
        listed = ",\n".join(f"    {_line(entry)}" for entry in sorted(self.entries))
        findings = f"[\n{listed}\n  ]" if listed else "[]"
        data = f'{{\n  "version": {VERSION},\n  "findings": {findings}\n}}\n'.encode()
        try:
            old = read_bytes(self.path) if exists(self.path) else None
            return write_atomically(self.path, data, old, "the baseline")
        except SourceError as error:
            raise BaselineError(f"{self.path}: {error.reason}") from None


def entries(source: Source, diagnostics: Sequence[Diagnostic], root: Path) -> list[Entry]:
    """Return the entries for all findings in ``source``; what must never be silenced gets none."""
    names = fingerprints(diagnostics, lambda _: source.text, root)
    found = []
    for item, name in zip(diagnostics, names, strict=True):
        if item.code not in UNTREATED:
            line = _shown(source.line(source.position(item.span.start).row))
            found.append(Entry(relative(item.path, root), item.code, line, name))
    return found


def _shown(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _LINE_WIDTH else f"{line[: _LINE_WIDTH - 1]}…"


def _line(entry: Entry) -> str:
    named = asdict(entry)
    ordered = {key: named[key] for key in _KEYS}
    text = json.dumps(ordered, ensure_ascii=False)
    # Names that are not UTF-8 hold lone surrogates, which no file can.
    return text if text.isprintable() else json.dumps(ordered)


def _entries(text: str) -> Iterable[Entry]:
    """Yield the entries of the text of a baseline.

    Raises:
        ValueError: the text is none; the message says why.
    """
    if any(line.startswith(("<<<<<<<", ">>>>>>>")) for line in text.splitlines()):
        raise ValueError(
            "it contains merge conflict markers; keep one side, then run with `--update-baseline`"
        )
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not valid JSON: {error}") from None
    version = document.get("version") if isinstance(document, dict) else None
    if version != VERSION:
        told = f"its version should be {VERSION}, not {json.dumps(version)}"
        raise ValueError(f"{told}; delete it, and write it anew with `--update-baseline`")
    findings = document.get("findings")
    if not isinstance(findings, list):
        raise ValueError("`findings` should be a list")
    for number, item in enumerate(findings, 1):
        if not isinstance(item, dict):
            raise ValueError(f"finding {number} should be an object")
        for name in _KEYS:
            if not isinstance(item.get(name), str):
                raise ValueError(f"finding {number} should have a string `{name}`")
        yield Entry(item["path"], item["code"], item["line"], item["fingerprint"])

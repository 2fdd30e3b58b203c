"""What torchlint's fixes do to copies of the corpus: nothing but what they declare."""

from __future__ import annotations

import io
import itertools
import re
import shutil
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.corpus.findings import diagnostics
from benchmarks.corpus.packages import Package

FixEdits: TypeAlias = Iterable[dict[str, Any]]
"""The edits of one fix, as torchlint's JSON has them."""

_ROUNDS = 20


@dataclass(slots=True)
class Outcome:
    """How the fixes of one package went; every list of problems must be empty.

    ``exact`` counts the changed files that are, byte for byte, the original with the declared edits put in,
    round after round; ``by_lines`` those where overlapping fixes could be chosen otherwise, so that only the
    lines that no edit touches could be compared.
    """

    package: str
    version: str
    files: int = 0
    changed: int = 0
    exact: int = 0
    by_lines: int = 0
    crashes: list[str] = field(default_factory=list)
    does_not_compile: list[str] = field(default_factory=list)
    changed_outside_edits: list[str] = field(default_factory=list)
    changed_by_second_pass: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        problems = (
            self.crashes,
            self.does_not_compile,
            self.changed_outside_edits,
            self.changed_by_second_pass,
        )
        return not any(problems)

    def as_json(self) -> dict[str, Any]:
        """Return it for the report."""
        return asdict(self)


def check(package: Package, workspace: Path, options: Iterable[str]) -> Outcome:
    """Fix a copy of a package, safely and unsafely, twice, and compare every file with the original."""
    copy = workspace / package.folder.name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(package.folder, copy)
    outcome = Outcome(package.name, package.version)
    paths = sorted(path.relative_to(copy) for path in copy.rglob("*.py"))
    originals = {path: (copy / path).read_bytes() for path in paths}
    options = list(options)
    declared = diagnostics(copy, options)
    remaining = diagnostics(copy, [*options, "--fix", "--unsafe-fixes"])
    outcome.crashes = sorted(
        {
            f"{_relative(item, copy)}: {item['message']}"
            for item in [*declared, *remaining]
            if item["code"] == "TL000"
        }
    )
    fixed = {path: (copy / path).read_bytes() for path in paths}
    outcome.files = len(paths)
    changed = {path: data for path, data in originals.items() if fixed[path] != data}
    outcome.changed = len(changed)
    edits = _fixes(declared, copy)
    rebuilt = _rebuild(changed, edits, workspace / f"{package.folder.name}.rounds", options)
    for path, before in changed.items():
        if _compiles(before) and not _compiles(fixed[path]):
            outcome.does_not_compile.append(str(path))
        if rebuilt[path] == fixed[path]:
            outcome.exact += 1
        elif strays := list(_strays(before, fixed[path], itertools.chain.from_iterable(edits.get(path, ())))):
            outcome.changed_outside_edits.append(f"{path}: lines {strays}")
        else:
            outcome.by_lines += 1
    diagnostics(copy, [*options, "--fix", "--unsafe-fixes"])
    outcome.changed_by_second_pass = [
        str(path) for path in paths if (copy / path).read_bytes() != fixed[path]
    ]
    return outcome


def _relative(item: dict[str, Any], copy: Path) -> Path:
    return Path(item["filename"]).resolve().relative_to(copy.resolve())


def _fixes(items: Iterable[dict[str, Any]], folder: Path) -> dict[Path, list[FixEdits]]:
    """Return the edits of every fix that may be applied, by file."""
    found: dict[Path, list[FixEdits]] = {}
    for item in items:
        if item["fix"] and item["fix"]["applicability"] in ("safe", "unsafe"):
            found.setdefault(_relative(item, folder), []).append(item["fix"]["edits"])
    return found


def _rebuild(
    originals: dict[Path, bytes], declared: dict[Path, list[FixEdits]], folder: Path, options: list[str]
) -> dict[Path, bytes]:
    """Return the files with the declared fixes put in by arithmetic of our own, round after round."""
    current, fixes = dict(originals), declared
    for _ in range(_ROUNDS):
        new = {path: _applied(data, fixes.get(path, [])) for path, data in current.items()}
        pending = {path: data for path, data in new.items() if data != current[path]}
        current = new
        if not pending:
            break
        shutil.rmtree(folder, ignore_errors=True)
        for path, data in pending.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        fixes = _fixes(diagnostics(folder, options), folder)
    shutil.rmtree(folder, ignore_errors=True)
    return current


def _compiles(data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, "corpus", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def _applied(before: bytes, fixes: Iterable[FixEdits]) -> bytes:
    """Return a file with fixes put in, each whole or not at all:
    of fixes that overlap the first one in the file.
    """
    bom = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    encoding = "utf-8" if bom else tokenize.detect_encoding(io.BytesIO(before).readline)[0]
    text = before[len(bom) :].decode(encoding)
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def offset(location: dict[str, int]) -> int:
        return starts[location["row"] - 1] + location["column"] - 1

    placed = [
        sorted((offset(edit["location"]), offset(edit["end_location"]), edit["content"]) for edit in fix)
        for fix in fixes
    ]
    taken: set[tuple[int, int, str]] = set()
    for fix in sorted(placed):
        if not any(_collide(edit, other) for edit in fix for other in taken):
            taken.update(fix)
    pieces, position = [], 0
    for start, end, content in sorted(taken):
        pieces += [text[position:start], content]
        position = end
    return bom + "".join([*pieces, text[position:]]).encode(encoding)


def _collide(edit: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    """Return whether two edits cannot both be made; the same edit,
    such as an import that two fixes need, can.
    """
    if edit == other:
        return False
    return (edit[0] < other[1] and other[0] < edit[1]) or edit[0] == other[0]


def _strays(before: bytes, after: bytes, edits: FixEdits) -> Iterator[int]:
    """Yield the number of the first line of each run of lines that no edit touches and
    that is not there any more.

    The runs must follow one another in the new text, the first at its start and the last at its end.
    """
    touched = {
        row for edit in edits for row in range(edit["location"]["row"], edit["end_location"]["row"] + 1)
    }
    lines = list(enumerate(re.split(rb"(?<=\n)|(?<=\r)(?!\n)", before), 1))
    position = 0
    for free, run in itertools.groupby(lines, key=lambda line: line[0] not in touched):
        numbers, texts = zip(*run, strict=True)
        if free:
            text = b"".join(texts)
            first, last = numbers[0] == 1, numbers[-1] == len(lines)
            found = len(after) - len(text) if last and after.endswith(text) else after.find(text, position)
            if found < position or (first and found != 0) or (last and found + len(text) != len(after)):
                yield numbers[0]
            else:
                position = found + len(text)

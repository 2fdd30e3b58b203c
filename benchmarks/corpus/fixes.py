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
from typing import Any

from benchmarks.corpus.findings import diagnostics
from benchmarks.corpus.packages import Package


@dataclass(slots=True)
class Outcome:
    """How the fixes of one package went; every list of problems must be empty.

    ``exact`` counts the changed files that are, byte for byte, the original with the declared edits put in;
    ``rounds`` those that needed more than one round, where only the unchanged lines could be compared.
    """

    package: str
    version: str
    files: int = 0
    changed: int = 0
    exact: int = 0
    rounds: int = 0
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
        """For the report."""
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
    edits: dict[Path, list[dict[str, Any]]] = {}
    for item in declared:
        if item["fix"] and item["fix"]["applicability"] in ("safe", "unsafe"):
            edits.setdefault(_relative(item, copy), []).extend(item["fix"]["edits"])
    fixed = {path: (copy / path).read_bytes() for path in paths}
    outcome.files = len(paths)
    for path in paths:
        if fixed[path] != originals[path]:
            outcome.changed += 1
            _compare(outcome, path, originals[path], fixed[path], edits.get(path, []))
    diagnostics(copy, [*options, "--fix", "--unsafe-fixes"])
    outcome.changed_by_second_pass = [
        str(path) for path in paths if (copy / path).read_bytes() != fixed[path]
    ]
    return outcome


def _relative(item: dict[str, Any], copy: Path) -> Path:
    return Path(item["filename"]).resolve().relative_to(copy.resolve())


def _compare(outcome: Outcome, path: Path, before: bytes, after: bytes, edits: list[dict[str, Any]]) -> None:
    if _compiles(before) and not _compiles(after):
        outcome.does_not_compile.append(str(path))
    if _applied(before, edits) == after:
        outcome.exact += 1
    elif strays := list(_strays(before, after, edits)):
        outcome.changed_outside_edits.append(f"{path}: lines {strays}")
    else:
        outcome.rounds += 1


def _compiles(data: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, "corpus", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return False
    return True


def _applied(before: bytes, edits: list[dict[str, Any]]) -> bytes | None:
    """The original with the edits put in by this module's own arithmetic; None if some of them overlap."""
    bom = before[:3] if before.startswith(b"\xef\xbb\xbf") else b""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
    text = before[len(bom) :].decode("utf-8" if encoding == "utf-8-sig" else encoding)
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]

    def offset(location: dict[str, int]) -> int:
        return starts[location["row"] - 1] + location["column"] - 1

    spans = sorted(
        {(offset(edit["location"]), offset(edit["end_location"]), edit["content"]) for edit in edits}
    )
    pieces, position = [], 0
    for number, (start, end, content) in enumerate(spans):
        if start < position or (number and spans[number - 1][0] == start):
            return None
        pieces += [text[position:start], content]
        position = end
    pieces.append(text[position:])
    return bom + "".join(pieces).encode("utf-8" if encoding == "utf-8-sig" else encoding)


def _strays(before: bytes, after: bytes, edits: list[dict[str, Any]]) -> Iterator[int]:
    """The number of the first line of each run of lines that no edit touches and that is not there any more.

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

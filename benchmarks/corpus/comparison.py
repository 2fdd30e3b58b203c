"""Two versions of torchlint on one package: what each finds, and what its fixes make of the files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus import differences, findings
from benchmarks.corpus.differences import Differences, Finding
from benchmarks.corpus.packages import Package
from benchmarks.corpus.versions import Version


@dataclass(frozen=True, slots=True)
class Fixed:
    """A file that the two versions fix otherwise: its text after the fixes of each, as bytes."""

    package: str
    path: str
    before: bytes
    after: bytes


@dataclass(frozen=True, slots=True)
class Comparison:
    """One package; ``before`` and ``after`` are numbers of findings by code."""

    package: Package
    files: int
    before: dict[str, int]
    after: dict[str, int]
    differences: Differences
    fixed: list[Fixed]

    def __bool__(self) -> bool:
        return bool(self.differences or self.fixed)


def compare(package: Package, before: Version, after: Version, workspace: Path) -> Comparison:
    """Run both versions over a package, and their safe and unsafe fixes over copies of what they can fix.

    Raises:
        RuntimeError: a version broke.
    """
    old, new = (
        [
            differences.finding(item, package.name, package.folder)
            for item in _diagnostics(version, package.folder, workspace)
        ]
        for version in (before, after)
    )
    fixable = sorted({item.path for item in (*old, *new) if item.grade in ("safe", "unsafe")})
    texts = [_fixed(version, package.folder, fixable, workspace) for version in (before, after)]
    return Comparison(
        package=package,
        files=sum(1 for _ in package.folder.rglob("*.py")),
        before=_counted(old),
        after=_counted(new),
        differences=differences.compare(old, new),
        fixed=[
            Fixed(package.name, path, first, second)
            for path, first, second in zip(fixable, *texts, strict=True)
            if first != second
        ],
    )


def _counted(found: Iterable[Finding]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in found:
        counts[item.code] = counts.get(item.code, 0) + 1
    return dict(sorted(counts.items()))


def _diagnostics(
    version: Version, folder: Path, workspace: Path, options: Sequence[str] = (), paths: Sequence[Path] = ()
) -> list[dict[str, object]]:
    # Two versions may bear the same number: neither may be told what the other one has found.
    cache = workspace / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    return findings.diagnostics(
        folder,
        ["--no-respect-gitignore", *version.options, *options],
        environment={**os.environ, "TORCHLINT_CACHE_DIR": str(cache)},
        python=version.python,
        working=workspace,
        paths=paths,
    )


def _fixed(version: Version, folder: Path, paths: Sequence[str], workspace: Path) -> list[bytes]:
    """Return the files as a version fixes them."""
    copy = workspace / "fixed"
    shutil.rmtree(copy, ignore_errors=True)
    if paths:
        # The others are there, too: a fix may be graded by what another file of the project says.
        shutil.copytree(folder, copy)
        _diagnostics(version, copy, workspace, ["--fix", "--unsafe-fixes"], [copy / path for path in paths])
    return [(copy / path).read_bytes() for path in paths]

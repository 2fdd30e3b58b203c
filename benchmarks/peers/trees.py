"""The files that all are measured on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder with nothing but the files to check."""

    name: str
    folder: Path
    files: int
    bytes: int


def mentioning(package: Path) -> list[Path]:
    """Return the Python files below a folder that mention torch, sorted."""
    return [path for path in sorted(package.rglob("*.py")) if b"torch" in path.read_bytes()]


def copied(package: Path, paths: Sequence[Path], every: int, folder: Path) -> Tree:
    """Return every ``every``-th of the files of a package in a folder of their own, placed as they were."""
    size = 0
    chosen = paths[::every]
    for path in chosen:
        data = path.read_bytes()
        target = folder / path.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        size += len(data)
    return Tree(package.name, folder, len(chosen), size)

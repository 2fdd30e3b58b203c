"""What a check of one megabyte takes: CPU seconds and memory, in a process of its own."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import processes
from benchmarks.growth.shapes import Shape

CHARACTERS = 1_000_000
_CHECK = ["-m", "torchlint", "check", "--isolated", "--no-cache", "--select", "ALL", "--jobs", "1"]
_FINISHED = (0, 1)
"""The exit codes of a check that was not broken off."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check: how many characters it read, CPU seconds, MiB, how many rules it gave up with TL004."""

    characters: int
    seconds: float
    memory: float
    given_up: int
    finished: bool


def measure(shape: Shape, characters: int = CHARACTERS, limit: float = 120) -> Check:
    """Check the text of a shape with all rules, at about so many characters.

    Raises:
        RuntimeError: the check failed.
    """
    text = _at(shape, characters)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "grown.py"
        path.write_text(text, encoding="utf-8")
        report = Path(folder) / "report"
        told = ["--output-format", "concise", "--output-file", str(report)]
        usage = processes.run([sys.executable, *_CHECK, *told, str(path)], limit=limit)
        if not usage.expired and usage.status not in _FINISHED:
            raise RuntimeError(f"the check of {shape.name} ended with {usage.status}: {usage.told}")
        notes = report.read_text(encoding="utf-8").count(" TL004 ") if report.exists() else 0
    return Check(len(text), usage.cpu, usage.memory, notes, not usage.expired)


def _at(shape: Shape, characters: int) -> str:
    """Return the text of a shape that comes nearest to a length, as far as three tries find it."""
    n = shape.first
    text = shape.make(n)
    for _ in range(3):
        n = max(1, round(n * characters / len(text)))
        text = shape.make(n)
    return text

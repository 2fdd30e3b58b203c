"""What a check of a text takes, and how that grows with the text."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.growth.shapes import Shape
from torchlint import registry, stopwatch
from torchlint.checker import check
from torchlint.options import LintSettings
from torchlint.source import Source

FACTORS = (1, 2, 4)
_SHORT, _TIMES = 1.0, 3
"""Seconds up to which a check is measured several times, and how often: noise weighs on short ones."""
_NEGLIGIBLE = 0.02
"""Seconds below which a part of the work says nothing of its growth."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One check: of how many characters, CPU seconds in all and of each part, and how many findings."""

    n: int
    characters: int
    seconds: float
    parts: dict[str, float]
    findings: int


def settings() -> LintSettings:
    """Return every rule there is."""
    codes = registry.catalogue()
    return LintSettings(rules=tuple(sorted(codes)), fixable=frozenset(codes))


def sample(shape: Shape, n: int) -> Sample:
    """Check the text of a shape once."""
    text = shape.make(n)
    source = Source(Path("grown.py"), text)
    start = time.process_time()
    with stopwatch.recording() as parts:
        found = check(source, settings())
    seconds = time.process_time() - start
    return Sample(n, len(text), seconds, dict(parts), len(found))


def samples(shape: Shape, scale: float, limit: float) -> list[Sample]:
    """Return a shape at growing sizes, up to the one that would take more than ``limit`` seconds."""
    taken: list[Sample] = []
    for factor in FACTORS:
        # The next size is twice the one before, and what grows with the cube is not worth waiting for.
        if taken and 8 * taken[-1].seconds > limit:
            break
        taken.append(_least(shape, max(1, round(shape.first * scale)) * factor))
    return taken


def _least(shape: Shape, n: int) -> Sample:
    """Return the check of a text that took least, of several where one takes no more than a second."""
    found = sample(shape, n)
    if found.seconds > _SHORT:
        return found
    return min(found, *(sample(shape, n) for _ in range(_TIMES - 1)), key=lambda one: one.seconds)


def exponent(taken: list[Sample], part: str | None = None) -> float | None:
    """Return how the seconds grow with the characters; None where they are too few to tell."""
    first, last = taken[0], taken[-1]
    before = first.seconds if part is None else first.parts.get(part, 0)
    after = last.seconds if part is None else last.parts.get(part, 0)
    if after < _NEGLIGIBLE or before <= 0 or last.characters == first.characters:
        return None
    return math.log(after / before) / math.log(last.characters / first.characters)


def dominating(taken: list[Sample], count: int = 4) -> list[tuple[str, float, float | None]]:
    """Return the parts of the work that take most of the largest text: their seconds and their exponents."""
    parts = sorted(taken[-1].parts.items(), key=lambda item: -item[1])[:count]
    return [(name, seconds, exponent(taken, name)) for name, seconds in parts if seconds > _NEGLIGIBLE]

"""Where ratios stand on the scale that the rows of a table share, and times on that of a timeline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torchlint.verify import words
from torchlint.verify.results import Interval

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_TICKS = 4
_REACH = 4.0
"""The scale ends here, lest one large ratio leave no room to tell the small ones apart."""
_TIMES = 5
"""The most parts of a scale of times."""
_APART = 16.0
"""Per cent of the width between the labels of two ticks."""


@dataclass(frozen=True)
class Tick:
    """A label of the scale; ``at`` in per cent of the width."""

    at: float
    text: str


def clock(whole: float) -> list[Tick]:
    """Return a few round times from 0 to at most ``whole`` seconds."""
    power = 10.0 ** math.floor(math.log10(whole))
    step = next(step for factor in (0.1, 0.2, 0.5, 1, 2) if whole / (step := factor * power) <= _TIMES)
    return [
        Tick(round(100 * number * step / whole, 2), words.seconds(number * step) if number else "0")
        for number in range(int(whole / step + 1e-9) + 1)
    ]


@dataclass(frozen=True)
class Axis:
    """A logarithmic scale, so that half and double are equally far from 1."""

    low: float
    high: float

    @staticmethod
    def around(intervals: Iterable[Interval], threshold: float) -> Axis:
        """Return a scale that shows the intervals, 1 and the band of ``threshold`` around it."""
        ends = [1 / (1 + threshold) ** 1.6, (1 + threshold) ** 1.6]
        for interval in intervals:
            ends += [interval.low, interval.high]
        ends = [min(max(end, 1 / _REACH), _REACH) for end in ends if math.isfinite(end)]
        room = (max(ends) / min(ends)) ** 0.05
        return Axis(min(ends) / room, max(ends) * room)

    def beyond(self, ratio: float) -> int:
        """Return 0 for a ratio on the scale, 1 beyond its right end, -1 beyond its left."""
        return (ratio > self.high) - (ratio < self.low)

    def at(self, ratio: float) -> float:
        """Return the place of a ratio in per cent of the width; what lies outside is moved to the edge."""
        ratio = min(max(ratio, self.low), self.high)
        return round(100 * math.log(ratio / self.low) / math.log(self.high / self.low), 2)

    def ticks(self) -> list[Tick]:
        """Return a few round ratios, 1 among them."""
        ranked = [self._inside(candidates) for candidates in self._candidates()]
        best = max(ranked, key=lambda values: (len(values) <= _TICKS, min(len(values), _TICKS)))
        chosen = [1.0]
        for value in sorted(best, key=lambda value: -abs(math.log(value))):
            if all(abs(self.at(value) - self.at(other)) >= _APART for other in chosen):
                chosen.append(value)
        return [Tick(self.at(value), f"{value:g}") for value in sorted(chosen)]

    def _candidates(self) -> Iterable[list[float]]:
        for step in _STEPS:
            first, last = math.ceil(self.low / step), math.floor(self.high / step)
            if last - first <= 12:
                yield [round(number * step, 2) for number in range(first, last + 1)]
        yield [0.25, 0.5, 1.0, 2.0, 4.0]

    def _inside(self, values: Iterable[float]) -> list[float]:
        return [value for value in values if 2 <= self.at(value) <= 98 and not self.beyond(value)]

"""How much is at stake in a finding: a function of facts, the same for every format and every run.

Two things decide: what the rule's advice was measured to be worth (`Worth`), and how often the place runs
(`Frequency`). What a rule finds that is set up once and felt at every step, such as a loader or a layer, is
``lasting``: how often its place runs plays no part.

| worth   | once | every epoch | in a few steps | unknown | every evaluated batch | every step | every decoding step | lasting |
|---------|------|-------------|----------------|---------|-----------------------|------------|---------------------|---------|
| much    | low  | low         | low            | medium  | medium                | high       | high                | high    |
| some    | low  | low         | low            | low     | medium                | medium     | high                | medium  |
| nothing | low  | low         | low            | low     | low                   | low        | low                 | low     |

Before that table is asked:

- An error is of high impact: the program breaks, or computes something else than it was written for.
- In a test, a plot, a notebook that teaches and other contexts in which speed is of no account, everything
  else is of low impact.
- Of rules that were not measured, since they claim neither speed nor memory or nobody got to it, warnings are of
  medium impact and notes of low.

After it, a note is of medium impact at most, and no finding is of a higher one than its rule says of the place.
"""  # noqa: E501

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from torchlint import effects
from torchlint.diagnostics import Frequency, Impact, Severity
from torchlint.effects import Effect

if TYPE_CHECKING:
    from torchlint.semantics.contexts import Context

MUCH_FASTER = 1.2
"""A step is much faster from this ratio on: time before over time after, the low end of its 95 % interval."""
MUCH_LESS, LESS = 0.8, 0.95
"""Much less memory, and less: up to these ratios of peak memory after to before."""

_LOW, _MEDIUM, _HIGH = Impact


class Worth(enum.IntEnum):
    """What the advice of a rule was measured to be worth, in the size where it gains most.

    MUCH: a step takes less time by a fifth or more, in a launch-bound (small, medium) or a compute-bound size
    (large), or a fifth less memory. SOME: it is faster beyond the noise, or takes a twentieth less memory; so
    is much less memory that costs time in some size. NOTHING: neither. Times that the machine did not
    reproduce, and results that differ, count for nothing.
    """

    NOTHING = 0
    SOME = 1
    MUCH = 2

    @property
    def label(self) -> str:
        """The lower-case word for it."""
        return self.name.lower()


TABLE: Mapping[Worth, Mapping[Frequency | None, Impact]] = {
    Worth.MUCH: {
        **dict.fromkeys((Frequency.ONCE, Frequency.EPOCH, Frequency.RARELY), _LOW),
        **dict.fromkeys((Frequency.UNKNOWN, Frequency.BATCH), _MEDIUM),
        **dict.fromkeys((Frequency.STEP, Frequency.TOKEN, None), _HIGH),
    },
    Worth.SOME: {
        **dict.fromkeys((Frequency.ONCE, Frequency.EPOCH, Frequency.RARELY, Frequency.UNKNOWN), _LOW),
        **dict.fromkeys((Frequency.BATCH, Frequency.STEP, None), _MEDIUM),
        Frequency.TOKEN: _HIGH,
    },
    Worth.NOTHING: dict.fromkeys((*Frequency, None), _LOW),
}
"""The impact by worth and frequency; None stands for what is lasting."""
UNMEASURED: Mapping[Severity, Impact] = {
    Severity.NOTE: _LOW,
    Severity.WARNING: _MEDIUM,
    Severity.ERROR: _HIGH,
}
"""The impact where nothing was measured."""


def impact(
    worth: Worth | None, severity: Severity, frequency: Frequency | None, context: Context | None
) -> Impact:
    """How much is at stake: the rule above. ``worth`` is None for what was not measured."""
    if severity is Severity.ERROR:
        return _HIGH
    if context is not None:
        return _LOW
    if worth is None:
        return UNMEASURED[severity]
    found = TABLE[worth][frequency]
    return min(found, _MEDIUM) if severity is Severity.NOTE else found


@dataclass(frozen=True, slots=True)
class Gain:
    """The most that the advice of a rule was measured to gain, each in the size where it gains most.

    ``speed`` is time before over time after, ``surely`` the low end of its interval, both 1 where nothing was
    faster beyond the noise. ``memory`` is peak memory after over before, 1 if it never got to `LESS`.
    """

    speed: float = 1.0
    surely: float = 1.0
    memory: float = 1.0

    @property
    def best(self) -> float:
        """The larger gain as a ratio of before to after: what findings of one impact are ordered by."""
        return max(self.surely, 1 / self.memory)

    @property
    def told(self) -> str:
        """The gains in words, "up to 2.0 times as fast, 50 % less memory"; empty if there are none."""
        digits = 2 if self.speed < 2 else 1 if self.speed < 10 else 0
        faster = [f"{self.speed:.{digits}f} times as fast"] if self.surely > 1 else []
        less = [f"{100 * (1 - self.memory):.0f} % less memory"] if self.memory < 1 else []
        return f"up to {', '.join((*faster, *less))}" if faster or less else ""


@cache
def gain(code: str) -> Gain:
    """The most that the advice of a rule was measured to gain; no gain if it was not measured."""
    return _gained(effects.of(code))


@cache
def worth(code: str) -> Worth | None:
    """What the advice of a rule is worth; None if it was not measured."""
    found = effects.of(code)
    return judged(found) if found else None


def judged(found: Sequence[Effect]) -> Worth:
    """The worth that measurements show."""
    gained = _gained(found)
    costs = any(effect["verdict"] == "SLOWER" for effect in found)
    if gained.surely >= MUCH_FASTER or (gained.memory <= MUCH_LESS and not costs):
        return Worth.MUCH
    return Worth.SOME if gained.surely > 1 or gained.memory < 1 else Worth.NOTHING


def _gained(found: Sequence[Effect]) -> Gain:
    speeds = [effect["speedup"] for effect in found if effect["verdict"] == "FASTER"]
    best = max(speeds, key=lambda speed: float(speed["low"]), default={"ratio": 1.0, "low": 1.0})
    peaks = [
        effect["peak_memory"] for effect in found if effect["peak_memory"] and effect["peak_memory"]["before"]
    ]
    left = min((float(peak["after"]) / float(peak["before"]) for peak in peaks), default=1.0)
    return Gain(float(best["ratio"]), float(best["low"]), left if left <= LESS else 1.0)

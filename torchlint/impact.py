"""How much is at stake in a finding: a function of facts, the same for every format and every run.

Two things decide: what the rule's advice was measured to be worth (`Worth`), and how often the place runs
(`Frequency`). What a rule finds that is set up once and felt at every step, such as a loader or a layer, is
``lasting``: how often its place runs plays no part. What claims a gain that nobody has measured, as the rules
of rule packs do, is ``unmeasured``.

| worth      | once   | every epoch | in a few steps | in a loop without a model | unknown | every evaluated batch | every step | every decoding step | lasting |
|------------|--------|-------------|----------------|---------------------------|---------|-----------------------|------------|---------------------|---------|
| much       | low    | low         | low            | low                       | medium  | medium                | high       | high                | high    |
| some       | low    | low         | low            | low                       | low     | medium                | medium     | high                | medium  |
| nothing    | low    | low         | low            | low                       | low     | low                   | low        | low                 | low     |
| unmeasured | medium | medium      | medium         | medium                    | medium  | medium                | medium     | medium              | medium  |

Before that table is asked:

- An error is of high impact: the program breaks, or computes something else than it was written for.
- In a test, a plot, a notebook that teaches and other contexts in which speed is of no account, everything
  else is of low impact. In a benchmark only what claims a gain is: its times have to be right.
- Of rules that claim neither speed nor memory, such as those about old spellings, warnings are of medium impact
  and notes of low, or of medium if who read such notes in real code would have changed the line.

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
    from torchlint.rule import Rule
    from torchlint.semantics.contexts import Context

MUCH_FASTER = 1.2
"""A step is much faster from this ratio on: time before over time after, the low end of its 95 % interval."""
MUCH_LESS, LESS = 0.8, 0.95
"""Much less memory, and less: up to these ratios of peak memory after to before."""

FEWER = 0.8
"""Fewer kernel launches, up to this ratio of those after to before."""

_LOW, _MEDIUM, _HIGH = Impact


class Worth(enum.IntEnum):
    """What the advice of a rule was measured to be worth, in the size where it gains most.

    MUCH: a step takes less time by a fifth or more, in a launch-bound (small, medium) or a compute-bound size
    (large), or a fifth less memory. SOME: it is faster beyond the noise, takes a twentieth less memory, or
    has fewer synchronizations, collectives or, by a fifth, kernel launches, which cost time in programs whose
    host or network has no time to spare, as that of a benchmark may have; so is much less memory that costs
    time in some size. NOTHING: none of these. UNMEASURED: nobody has tried. Times that the machine did not
    reproduce count for nothing.
    """

    NOTHING = 0
    SOME = 1
    MUCH = 2
    UNMEASURED = 3

    @property
    def label(self) -> str:
        """The lower-case word for it."""
        return self.name.lower()


TABLE: Mapping[Worth, Mapping[Frequency | None, Impact]] = {
    Worth.MUCH: {
        **dict.fromkeys((Frequency.ONCE, Frequency.EPOCH, Frequency.RARELY, Frequency.LOOP), _LOW),
        **dict.fromkeys((Frequency.UNKNOWN, Frequency.BATCH), _MEDIUM),
        **dict.fromkeys((Frequency.STEP, Frequency.TOKEN, None), _HIGH),
    },
    Worth.SOME: {
        **dict.fromkeys(Frequency, _LOW),
        **dict.fromkeys((Frequency.BATCH, Frequency.STEP, None), _MEDIUM),
        Frequency.TOKEN: _HIGH,
    },
    Worth.NOTHING: dict.fromkeys((*Frequency, None), _LOW),
    Worth.UNMEASURED: dict.fromkeys((*Frequency, None), _MEDIUM),
}
"""The impact by worth and frequency; None stands for what is lasting."""
UNCLAIMED: Mapping[Severity, Impact] = {
    Severity.NOTE: _LOW,
    Severity.WARNING: _MEDIUM,
    Severity.ERROR: _HIGH,
}
"""The impact where no gain is claimed, by severity."""


def impact(
    worth: Worth | None, severity: Severity, frequency: Frequency | None, context: Context | None
) -> Impact:
    """Return how much is at stake: the rule above. ``worth`` is None for rules that claim no gain."""
    if severity is Severity.ERROR:
        return _HIGH
    if context is not None and not (worth is None and context.measures):
        return _LOW
    if worth is None:
        return UNCLAIMED[severity]
    found = TABLE[worth][frequency]
    return min(found, _MEDIUM) if severity is Severity.NOTE else found


_IN_CONTEXT = {
    "test": "in a test",
    "debug": "only runs for debugging",
    "plotting": "in a plot",
    "teaching": "in a tutorial",
    "benchmark": "in a benchmark",
    "conversion": "in a conversion of a checkpoint",
    "host_only": "only runs on the CPU",
    "old_release": "only runs with old releases",
}
"""Why a context makes the impact low, by its value."""


def slight(
    worth: Worth | None, severity: Severity, frequency: Frequency | None, context: Context | None
) -> str:
    """Return why the impact of these facts is low, in a few words: "runs once"."""
    if context is not None and not (worth is None and context.measures):
        return _IN_CONTEXT[context.value]
    if worth is None:
        return "claims no gain in speed or memory"
    if worth is Worth.NOTHING or frequency is None:
        return "nothing was gained in the rule's benchmark"
    return "how often it runs is not known" if frequency.told is None else f"runs {frequency.told}"


@dataclass(frozen=True, slots=True)
class Gain:
    """The most that the advice of a rule was measured to gain, each in the size where it gains most.

    ``speed`` is time before over time after, ``surely`` the low end of its interval, both 1 where nothing was
    faster beyond the noise. ``memory`` is peak memory after over before, 1 if it never got to `LESS`.
    """

    speed: float = 1.0
    surely: float = 1.0
    memory: float = 1.0
    relief: str = ""
    """What a step asks less of the host or the network, in words."""

    @property
    def best(self) -> float:
        """The larger gain as a ratio of before to after: what findings of one impact are ordered by."""
        return max(self.surely, 1 / self.memory)

    @property
    def told(self) -> str:
        """The gains in words, "up to 2.0 times as fast, 50 % less memory", else the relief, or nothing."""
        digits = 2 if self.speed < 2 else 1 if self.speed < 10 else 0
        faster = [f"{self.speed:.{digits}f} times as fast"] if self.surely > 1 else []
        less = [f"{100 * (1 - self.memory):.0f} % less memory"] if self.memory < 1 else []
        return f"up to {', '.join((*faster, *less))}" if faster or less else self.relief


@cache
def gain(code: str) -> Gain:
    """Return the most that the advice of a rule was measured to gain; no gain if it was not measured."""
    return gained(effects.of(code))


def worth(rule: Rule) -> Worth | None:
    """Return what the advice of a rule is worth; None if it claims no gain."""
    return _worth(rule.code) if rule.measured else None


@cache
def _worth(code: str) -> Worth:
    return judged(effects.of(code))


def judged(found: Sequence[Effect]) -> Worth:
    """Return the worth that measurements show."""
    if not found:
        return Worth.UNMEASURED
    most = gained(found)
    costs = any(effect["verdict"] == "SLOWER" for effect in found)
    if most.surely >= MUCH_FASTER or (most.memory <= MUCH_LESS and not costs):
        return Worth.MUCH
    return Worth.SOME if most.surely > 1 or most.memory < 1 or most.relief else Worth.NOTHING


def _relief(found: Sequence[Effect]) -> str:
    """Return by how much a step asks less of the host or the network where it does so most; empty if nowhere.

    What counts is the first of fewer synchronizations, fewer collectives and fewer kernel launches.
    """
    for key, most, what in (
        ("syncs", 1.0, "synchronizations with the device"),
        ("collectives", 1.0, "collectives"),
        ("kernels", FEWER, "kernel launches"),
    ):
        left = [
            float(counts["after"]) / float(counts["before"])
            for effect in found
            if (counts := effect[key]) and counts["before"]
        ]
        if left and min(left) < most:
            return f"up to {100 * (1 - min(left)):.0f} % fewer {what}"
    return ""


def explained(rule: Rule, found: Sequence[Effect]) -> str:
    """Return how the impact of a rule's findings is found, in a sentence;
    ``found`` is what was measured of it.
    """
    worth, named = judged(found), rule.severity.value
    if rule.severity is Severity.ERROR:
        told = "high, as of all errors"
    elif not rule.measured:
        told = f"{UNCLAIMED[rule.severity].label}, as of all {named}s that claim no gain in speed or memory"
    elif worth is Worth.NOTHING:
        told = "low, since nothing was gained in its benchmark"
    elif worth is Worth.UNMEASURED:
        told = "medium, since nobody has measured what is gained"
    else:
        told = f"{_by_frequency(rule, worth)}. Measured: {gained(found).told}"
    return f"Impact: {told}."


def _by_frequency(rule: Rule, worth: Worth) -> str:
    """Return the levels that the findings of a rule can have, each with the places that have it."""
    if rule.lasting:
        level = impact(worth, rule.severity, None, None)
        return f"{level.label}, since it is felt at every step wherever it is set up"
    places: dict[Impact, list[str]] = {}
    for often in reversed(Frequency):
        places.setdefault(impact(worth, rule.severity, often, None), []).append(often.told or _NOT_KNOWN)
    *higher, lowest = sorted(places, reverse=True)
    told = [f"{level.label} for what runs {_listed(places[level])}" for level in higher]
    return f"{', '.join(told)}, otherwise {lowest.label}"


_NOT_KNOWN = "an unknown number of times"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def gained(found: Sequence[Effect]) -> Gain:
    """Return the most that measurements show to be gained."""
    speeds = [effect["speedup"] for effect in found if effect["verdict"] == "FASTER"]
    best = max(speeds, key=lambda speed: float(speed["low"]), default={"ratio": 1.0, "low": 1.0})
    peaks = [
        effect["peak_memory"] for effect in found if effect["peak_memory"] and effect["peak_memory"]["before"]
    ]
    left = min((float(peak["after"]) / float(peak["before"]) for peak in peaks), default=1.0)
    return Gain(float(best["ratio"]), float(best["low"]), left if left <= LESS else 1.0, _relief(found))

"""From block times to a ratio with an interval.

A round runs one block of every variant; every other round runs them in the opposite order, so that two rounds
in a row are an ABBA (with more than two variants: a palindrome) and a clock that drifts steadily favours
nobody. One sample is the log of time before over time after, averaged over such a pair of rounds; blocks of
one round cover the same steps of the program.

The Hodges-Lehmann estimate of a process' samples, the median of the means of all pairs of them, stands for
the process: it needs a third fewer samples than their median for the same precision, and bursts move it
little (J. L. Hodges and E. L. Lehmann, *Estimates of location based on rank tests*, 1963). On recorded noise
low quantiles are a little closer where all steps are alike, but further off in whole programs, whose steps
differ by their number: only pairs compare like with like (``benchmarks/estimators.py``).

To these numbers a linear model is fitted by least squares: the log time of a process is that of its
replicate, plus that of its variant, plus an error that is dealt to the process when it starts, and whose
variance is the same for all variants. The copy of the original is one more process of the original's variant.
So all variants tell together how much processes differ, with two replicates already. Processes of more blocks
weigh more, by what blocks have a part in that variance (the random-effects weights of R. DerSimonian and N.
Laird, *Meta-analysis in clinical trials*, 1986). The interval is that of
Student; it never gets narrower than the standard errors of the estimates allow (from the signed ranks: M.
Hollander, D. A. Wolfe and E. Chicken, *Nonparametric Statistical Methods*, 3rd edition, chapter 3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log, sqrt
from statistics import median
from typing import Any, Literal

from torchlint.verify.results import AGAIN, ORIGINAL, Block, Interval

Clock = Literal["wall", "device"]
Samples = dict[int, list[float]]
"""Log ratios of one variant by replicate."""

NORMAL = 1.96
"""The two-sided 95 % quantile of the normal distribution."""
THROTTLED = 0.02
"""A block whose SM clock is this far below the median of its variant ran on a throttled device."""

# Two-sided 95 % quantiles of Student's t by degrees of freedom; further ones are near enough to the last.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def discard(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return the blocks, with those marked that ran on a throttled clock.

    Each variant is compared with its own median: a program that keeps the device busier may well run at a
    lower clock all the time, and that is a part of what it costs.
    """
    blocks = tuple(blocks)
    clocks: dict[str, list[int]] = defaultdict(list)
    for block in blocks:
        if block.clock:
            clocks[block.variant].append(block.clock)
    usual = {variant: median(seen) for variant, seen in clocks.items()}
    return tuple(
        replace(block, discarded=f"clock at {block.clock} MHz instead of {usual[block.variant]:.0f}")
        if block.clock and block.clock < (1 - THROTTLED) * usual[block.variant]
        else block
        for block in blocks
    )


def samples(blocks: Iterable[Block], before: str, after: str, clock: Clock = "wall") -> Samples:
    """Log ratios of the time of ``before`` over that of ``after``, by replicate; those that have any.

    Rounds without a usable block of both, and a last round without its counterpart, give none.
    """
    times: dict[int, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for block in blocks:
        seconds = block.wall if clock == "wall" else block.device
        if block.variant in (before, after) and seconds and seconds > 0 and block.discarded is None:
            times[block.replicate][block.round][block.variant] = seconds / block.steps
    found: Samples = {}
    for replicate, rounds in sorted(times.items()):
        ratios = {
            number: log(pair[before] / pair[after])
            for number, pair in rounds.items()
            if before in pair and after in pair
        }
        pairs = [
            (ratios[number] + ratios[number + 1]) / 2
            for number in sorted(ratios)
            if number % 2 == 0 and number + 1 in ratios
        ]
        if pairs:
            found[replicate] = pairs
    return found


def interval(blocks: Iterable[Block], before: str, after: str, clock: Clock = "wall") -> Interval | None:
    """Return the ratio of the times of two variants with its 95 % interval; None without any samples."""
    fitted = _fit(tuple(blocks), before, after, clock)
    if fitted is None:
        return None
    center, half = fitted.center, fitted.half
    return Interval(exp(center), exp(center - half), exp(center + half))


def spread(blocks: Iterable[Block], before: str, after: str) -> float:
    """Return the deviation of samples over that of processes;
    infinite while processes are not seen to differ.
    """
    fitted = _fit(tuple(blocks), before, after, "wall")
    if fitted is None:
        return inf
    return fitted.deviation / sqrt(fitted.between) if fitted.between > 0 else inf


class _Fit:
    """The linear model of the module's docstring, and what it says of the variant ``after``.

    ``center`` is the log ratio and ``half`` the half-width of its interval. ``between`` is the variance of
    processes beside that of their blocks, and ``deviation`` that of a sample.
    """

    def __init__(self, groups: Mapping[str, Samples], after: str) -> None:
        # Reports of what was measured elsewhere do without it.
        import numpy as np

        own = groups[after]
        middles = {name: {key: _middle(found) for key, found in of.items()} for name, of in groups.items()}
        numbers = sorted({key for of in middles.values() for key in of})
        counts = {key: max(len(of[key]) for of in groups.values() if key in of) for key in numbers}
        # The copy is no different; how far it is off all the same is asked of the copy alone.
        effects = [name for name in groups if name != AGAIN or after == AGAIN]
        # The log times of a replicate relative to its original.
        rows = [(number, ORIGINAL, 0.0) for number in numbers]
        rows += [(number, name, -middle) for name, of in middles.items() for number, middle in of.items()]
        columns = [*numbers, *effects]
        design = np.array([[float(item in (number, name)) for item in columns] for number, name, _ in rows])
        times = np.array([time for *_, time in rows])
        freedom = len(rows) - len(columns)
        scatter = {name: _scatter(of, middles[name]) for name, of in groups.items()}
        # A ratio has the blocks of two processes in it.
        within = np.array([median(scatter.values()) / 2 / counts[number] for number, *_ in rows])
        variance, _, _ = _least_squares(design, times, np.ones(len(rows)))
        self.between = max(0.0, variance - float(within.mean()))
        self.deviation = median(float(np.std(found)) for found in own.values())
        variances = self.between + within
        weights = variances.mean() / variances if variances.min() > 0 else np.ones(len(rows))
        variance, coefficients, inverse = _least_squares(design, times, weights)
        place = columns.index(after)
        self.center = -float(coefficients[place])
        student = _student(freedom) * sqrt(variance * float(inverse[place, place])) if freedom else inf
        if after == AGAIN and freedom < len(own):
            # Known to be no different, it has a degree of freedom more; a bias shows only without that.
            count = len(own)
            scale = sqrt(sum(middle**2 for middle in middles[AGAIN].values()) / count)
            student = min(student, _student(count) * scale / sqrt(count))
        elif not freedom:
            student = 0.0
        weighed = {number: float(weights[numbers.index(number)]) for number in own}
        error = sqrt(sum(weighed[number] ** 2 * scatter[after] / len(found) for number, found in own.items()))
        self.half = max(student, NORMAL * error / sum(weighed.values()))


def _fit(blocks: Sequence[Block], before: str, after: str, clock: Clock) -> _Fit | None:
    groups = {after: samples(blocks, before, after, clock)}
    if not groups[after]:
        return None
    if before == ORIGINAL:
        # The others tell of the replicates that this variant took part in.
        for name in dict.fromkeys(block.variant for block in blocks):
            if name not in (ORIGINAL, after):
                others = samples(blocks, ORIGINAL, name, clock)
                groups[name] = {number: others[number] for number in groups[after] if number in others}
        groups = {name: of for name, of in groups.items() if of}
    return _Fit(groups, after)


def _least_squares(design: Any, times: Any, weights: Any) -> tuple[float, Any, Any]:
    """Return the variance of an error of weight 1, the coefficients, and their covariance relative to it."""
    import numpy as np

    inverse = np.linalg.pinv(design.T @ (weights[:, None] * design))
    coefficients = inverse @ design.T @ (weights * times)
    freedom = design.shape[0] - design.shape[1]
    residual = times - design @ coefficients
    return float(weights @ residual**2) / freedom if freedom else 0.0, coefficients, inverse


def _student(freedom: int) -> float:
    return _STUDENT[min(freedom, len(_STUDENT)) - 1]


def _walsh(found: Sequence[float]) -> list[float]:
    """Return the means of all pairs of samples, those of a sample with itself among them, in order."""
    import numpy as np

    one, other = np.triu_indices(len(found))
    taken = np.array(found)
    means: list[float] = np.sort((taken[one] + taken[other]) / 2).tolist()
    return means


def _middle(found: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate."""
    return median(_walsh(found))


def _scatter(samples: Samples, middles: Mapping[int, float]) -> float:
    """Return what a single sample would add to the variance of an estimate, from those of all processes."""
    apart = [value - middles[number] for number, found in samples.items() for value in found]
    free = len(apart) - len(samples)
    return _standard_error(apart) ** 2 * len(apart) ** 2 / free if free else 0.0


def _standard_error(found: Sequence[float]) -> float:
    """Return the standard error of the Hodges-Lehmann estimate; of few samples, from all of them."""
    count = len(found)
    if count < 2:
        return 0.0
    means = _walsh(found)
    below = count * (count + 1) / 4 - NORMAL * sqrt(count * (count + 1) * (2 * count + 1) / 24)
    cut = max(1, round(below))
    return (means[len(means) - cut] - means[cut - 1]) / (2 * NORMAL)

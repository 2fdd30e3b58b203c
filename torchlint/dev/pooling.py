"""One figure of a case that several machines measured, with what machines differ by in its interval.

The logarithms of the ratios are pooled by a model of random effects: each machine has a ratio of its own, and
the variance between machines is estimated from how far the runs of the case lie apart (R. DerSimonian and N.
Laird, *Meta-analysis in clinical trials*, 1986). Runs that agree count by their precision; runs that do not
count nearly alike, and widen the interval.

Two or three runs say little of that variance, and one says nothing. So the standard error of every run is
first multiplied by how much more all cases that were measured again differ than their intervals allow (R. T.
Birge, *The calculation of errors by the method of least squares*, 1932).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log, sqrt

from torchlint.verify.results import Interval
from torchlint.verify.stats import NORMAL

_LEAST = 1e-4
"""The least standard error of a logarithm: no machine repeats a time more closely."""


def scale(cases: Iterable[Sequence[Interval]]) -> float:
    """Return how much wider the intervals would have to be for the runs of all cases to agree; at least 1.

    Args:
        cases: the intervals of each case, one for each run; cases of a single run say nothing.
    """
    squares, freedom = 0.0, 0
    for runs in cases:
        values, errors = _logarithms(runs)
        weights = [error**-2 for error in errors]
        squares += _spread(values, weights)
        freedom += len(runs) - 1
    return max(1.0, sqrt(squares / freedom)) if freedom else 1.0


def pooled(runs: Sequence[Interval], factor: float = 1.0) -> Interval:
    """Return the ratio of one case over all of its runs, at least one, with its 95 % interval.

    Args:
        runs: what each run found.
        factor: by how much the standard errors of the runs are too small, from `scale`.
    """
    values, errors = _logarithms(runs)
    variances = [(factor * error) ** 2 for error in errors]
    between = _between(values, [1 / variance for variance in variances])
    weights = [1 / (variance + between) for variance in variances]
    center, half = _mean(values, weights), NORMAL / sqrt(sum(weights))
    return Interval(exp(center), exp(center - half), exp(center + half))


def contradicts(run: Interval, published: Interval, factor: float = 1.0) -> bool:
    """Return whether a new run differs from the pooled figure
    by more than both their intervals allow at 95 %.
    """
    (new, old), (mine, theirs) = _logarithms([run, published])
    return abs(new - old) > NORMAL * sqrt((factor * mine) ** 2 + theirs**2)


def _between(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the variance between machines, 0 where the runs differ by no more than their errors."""
    total = sum(weights)
    room = total - sum(weight**2 for weight in weights) / total
    excess = _spread(values, weights) - (len(values) - 1)
    return max(0.0, excess / room) if len(values) > 1 else 0.0


def _spread(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the squared distances from the weighted mean, each in units of its own variance."""
    center = _mean(values, weights)
    return sum(weight * (value - center) ** 2 for value, weight in zip(values, weights, strict=True))


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _logarithms(runs: Sequence[Interval]) -> tuple[list[float], list[float]]:
    """Return the logarithms of the ratios, and their standard errors."""
    values = [log(run.ratio) for run in runs]
    return values, [max(_LEAST, log(run.high / run.low) / (2 * NORMAL)) for run in runs]

"""Pooling the figures of several machines."""

from __future__ import annotations

import random
from math import exp

import pytest

from torchlint.dev.pooling import contradicts, pooled, scale
from torchlint.verify.results import Interval
from torchlint.verify.stats import NORMAL


def around(center: float, error: float) -> Interval:
    """An interval from the logarithm of a ratio and its standard error."""
    return Interval(exp(center), exp(center - NORMAL * error), exp(center + NORMAL * error))


def test_one_run_is_its_own_pool() -> None:
    run = around(0.2, 0.01)
    assert pooled([run]).low == pytest.approx(run.low) and pooled([run]).high == pytest.approx(run.high)
    wider = pooled([run], 2.0)
    assert wider.high / wider.low == pytest.approx((run.high / run.low) ** 2)


def test_runs_that_agree_narrow_the_interval() -> None:
    run = around(0.2, 0.02)
    both = pooled([run, run, run, run])
    assert both.ratio == pytest.approx(run.ratio)
    assert both.half_width == pytest.approx(run.half_width / 2, rel=0.01)


def test_runs_that_differ_widen_it_to_reach_them_both() -> None:
    both = pooled([around(0.0, 0.005), around(0.2, 0.005)])
    assert both.ratio == pytest.approx(exp(0.1), rel=0.01)
    assert both.low < 1.0 and both.high > exp(0.2)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Machines differ by 5 %, runs are precise to 1 %: single runs are far too sure, their pool is not."""
    dice = random.Random(0)
    held = alone = 0
    for _ in range(1000):
        runs = [around(dice.gauss(0.3, 0.05), 0.01) for _ in range(5)]
        found = pooled(runs)
        held += found.low <= exp(0.3) <= found.high
        alone += runs[0].low <= exp(0.3) <= runs[0].high
    assert held > 850 and alone < 500


@pytest.mark.parametrize(("actual", "least", "most"), [(0.01, 1.0, 1.1), (0.02, 1.85, 2.15)])
def test_the_scale_is_how_much_too_sure_runs_are(actual: float, least: float, most: float) -> None:
    dice = random.Random(1)
    cases = [[around(dice.gauss(0.3, actual), 0.01) for _ in range(3)] for _ in range(400)]
    assert least <= scale(cases) <= most


def test_runs_that_were_never_repeated_leave_the_intervals_as_they_are() -> None:
    assert scale([[around(0.1, 0.01)], [around(0.3, 0.01)]]) == 1.0


def test_a_contradiction_is_outside_of_both_intervals() -> None:
    published = around(0.2, 0.01)
    assert not contradicts(around(0.22, 0.01), published)
    assert contradicts(around(0.25, 0.01), published)
    assert not contradicts(around(0.25, 0.01), published, factor=3.0)

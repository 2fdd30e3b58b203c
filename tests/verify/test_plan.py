"""How a budget is divided among variants, processes and blocks."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchlint.verify.plan import (
    BLOCK_SECONDS,
    BLOCK_STEPS,
    LEAST_REPLICATES,
    REPLICATES,
    Costs,
    Plan,
    Wishes,
    plan,
    replicates,
)

NEEDED = ("original", "again", "together")
ALONE = ("TL101", "TL202", "TL302")


def test_a_large_budget_leaves_nothing_out() -> None:
    made = plan(NEEDED, ALONE, Costs(0.02, 3.0, 4), Wishes(), 1e6, None)
    assert made.variants == (*NEEDED, *ALONE)
    assert made.rounds is None
    assert made.dropped == ()


def test_a_small_budget_drops_variants_from_the_end() -> None:
    costs = Costs(0.02, 3.0, 4)
    some = plan(NEEDED, ALONE, costs, Wishes(), 20.0, None)
    assert some.variants == (*NEEDED, *ALONE[: len(some.variants) - 3])
    assert some.variants + some.dropped == NEEDED + ALONE
    assert some.dropped
    none = plan(NEEDED, ALONE, costs, Wishes(), 1.0, None)
    assert none.variants == NEEDED
    assert none.dropped == ALONE


@pytest.mark.parametrize("step", [1e-4, 0.004, 0.02, 0.3, 4.0])
def test_a_block_has_ten_steps_and_a_quarter_of_a_second_unless_steps_are_long(step: float) -> None:
    made = plan(NEEDED, (), Costs(step, 3.0), Wishes(), 1e6, None)
    assert made.steps * step >= BLOCK_SECONDS - 1e-9
    assert made.steps >= BLOCK_STEPS or made.steps * step >= 1.0
    assert made.lead * step <= 0.25 * made.steps * step


@pytest.mark.parametrize("step", [1e-4, 0.004, 0.02])
def test_threads_on_several_processors_get_longer_to_wake_up(step: float) -> None:
    one = plan(NEEDED, (), Costs(step, 3.0), Wishes(), 1e6, None)
    several = plan(NEEDED, (), Costs(step, 3.0, spreads=True), Wishes(), 1e6, None)
    assert several.lead * step >= 0.15 - 1e-9 > one.lead * step
    assert several.steps * step >= 2 * BLOCK_SECONDS - 1e-9
    # Two thirds of a turn are timed.
    assert several.lead <= 0.5 * several.steps


def test_half_of_the_time_is_for_blocks_where_starting_takes_long() -> None:
    # Three processes of each variant would use up the budget.
    costs = Costs(0.01, 10.0, 8)
    made = plan(NEEDED, ALONE, costs, Wishes(), 90.0, None)
    assert replicates(costs, made, 90.0, 0, inf) == LEAST_REPLICATES
    for spread in (0.0, 1.0, inf):
        count = replicates(costs, made, 60.0, LEAST_REPLICATES, spread)
        assert 1 <= count <= 60.0 / (2 * costs.start(made))


def test_more_processes_are_started_where_they_differ_and_none_where_they_do_not() -> None:
    costs = Costs(0.01, 2.0, 8)
    made = plan(NEEDED, (), costs, Wishes(), 120.0, None)
    alike = replicates(costs, made, 60.0, LEAST_REPLICATES, inf)
    differing = replicates(costs, made, 60.0, LEAST_REPLICATES, 0.1)
    assert alike == 1
    assert differing > replicates(costs, made, 60.0, LEAST_REPLICATES, 8.0) >= alike
    assert replicates(costs, made, 0.5, LEAST_REPLICATES, inf) == 0


def test_a_program_that_is_over_soon_gets_more_processes() -> None:
    costs = Costs(0.005, 2.0, 2)
    endless = plan(NEEDED, (), costs, Wishes(), 120.0, None)
    short = plan(NEEDED, (), costs, Wishes(), 120.0, 150)
    assert short.rounds is not None
    assert replicates(costs, short, 60.0, 2, inf) > replicates(costs, endless, 60.0, 2, inf) == 1


def test_what_the_user_asks_for_is_kept() -> None:
    made = plan(NEEDED, ALONE, Costs(0.001, 3.0, 4), Wishes(steps=60, warmup=7, replicates=2), 1.0, None)
    assert made.warmup == 7
    assert made.rounds is not None
    assert abs(made.rounds * made.steps - 60) < made.rounds


@given(
    step=st.floats(1e-5, 5.0),
    budget=st.floats(0.1, 1e4),
    total=st.none() | st.integers(8, 5000),
    alone=st.lists(st.sampled_from(ALONE), unique=True),
    wishes=st.sampled_from((Wishes(), Wishes(steps=12), Wishes(replicates=3))),
    spread=st.floats(0.0, inf),
)
def test_every_plan_can_be_run(
    step: float, budget: float, total: int | None, alone: list[str], wishes: Wishes, spread: float
) -> None:
    costs = Costs(step, 2.0)
    made: Plan = plan(NEEDED, alone, costs, wishes, budget, total)
    assert made.rounds is None or (made.rounds >= 2 and made.rounds % 2 == 0)
    assert made.steps >= 1
    assert made.variants[:3] == NEEDED
    assert len(made.variants) + len(made.dropped) == len(NEEDED) + len(alone)
    if total is not None:
        assert made.rounds is not None
        assert 1 + made.warmup + made.rounds * (made.lead + made.steps) <= total
    for done in (0, 1, 2, REPLICATES):
        count = replicates(costs, made, budget, done, spread)
        assert 0 <= count <= REPLICATES
        assert count == 0 or done < REPLICATES

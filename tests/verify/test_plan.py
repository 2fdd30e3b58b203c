"""What fits into a budget."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchlint.verify.plan import LEAST_REPLICATES, REPLICATES, Costs, Wishes, plan

NEEDED = ("original", "again", "together")
ALONE = ("TL101", "TL202", "TL302")


def test_a_large_budget_leaves_nothing_out() -> None:
    made = plan(NEEDED, ALONE, Costs(0.02, 3.0, 4), Wishes(), 1e6, None)
    assert made.variants == (*NEEDED, *ALONE)
    assert made.replicates == REPLICATES
    assert made.dropped == ()


def test_a_small_budget_runs_less_before_it_drops_anything() -> None:
    costs = Costs(0.02, 3.0, 4)
    whole = plan(NEEDED, ALONE, costs, Wishes(), 1e6, None)
    fewer_rounds = plan(NEEDED, ALONE, costs, Wishes(), 40.0, None)
    assert fewer_rounds.replicates == REPLICATES
    assert fewer_rounds.rounds < whole.rounds
    fewer_replicates = plan(NEEDED, ALONE, costs, Wishes(), 30.0, None)
    assert fewer_replicates.replicates < REPLICATES
    assert fewer_rounds.dropped == fewer_replicates.dropped == ()
    none = plan(NEEDED, ALONE, costs, Wishes(), 1.0, None)
    assert none.variants == NEEDED
    assert none.replicates == LEAST_REPLICATES
    assert none.dropped == ALONE


def test_what_the_user_asks_for_is_kept() -> None:
    made = plan(NEEDED, ALONE, Costs(0.001, 3.0, 4), Wishes(steps=60, warmup=7, replicates=2), 1.0, None)
    assert made.replicates == 2
    assert made.warmup == 7
    assert abs(made.rounds * made.steps - 60) < made.rounds


@given(
    step=st.floats(1e-5, 5.0),
    budget=st.floats(0.1, 1e4),
    total=st.none() | st.integers(8, 5000),
    alone=st.lists(st.sampled_from(ALONE), unique=True),
)
def test_every_plan_can_be_run(step: float, budget: float, total: int | None, alone: list[str]) -> None:
    made = plan(NEEDED, alone, Costs(step, 2.0), Wishes(), budget, total)
    assert made.rounds >= 2
    assert made.rounds % 2 == 0
    assert made.steps >= 1
    assert made.replicates >= LEAST_REPLICATES
    assert made.variants[:3] == NEEDED
    assert len(made.variants) + len(made.dropped) == len(NEEDED) + len(alone)
    if total is not None:
        assert 1 + made.warmup + made.rounds * (made.lead + made.steps) <= total

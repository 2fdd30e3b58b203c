"""What fits into the budget: how many variants, replicates, rounds and steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

BLOCK_SECONDS = 0.02
"""The least length of a block: the synchronisations around it then cost less than 0.1 %."""
ROUNDS = (6, 16)
"""The fewest and the most rounds of a replicate; in between, as many as fill ``REPLICATE_SECONDS``."""
REPLICATE_SECONDS = 0.35
"""Timed seconds of one variant in one replicate that are enough."""
LEAST_ROUNDS = 4
LONG_STEP = 0.02
"""Seconds from which on a step counts as long."""
WARMUP = (10, 4)
"""The warm-up of short and of long steps, where nobody says how much."""
MOST_WARMUPS = 4
"""How many times the asked warm-up is run at most while the times are not steady,"""
WARMUP_SECONDS = 0.5
"""and for how long, where nobody asked for more steps."""
REPLICATES = 5
"""The most replicates that are run where nobody says how many."""
LEAST_REPLICATES = 3
"""The fewest: below, the interval from the replicates among themselves is too wide to say anything. More
follow while the verdict of a variant is still open, or its interval wide."""


@dataclass(frozen=True)
class Wishes:
    """What the user asked for; None where the plan decides."""

    steps: int | None = None
    warmup: int | None = None
    replicates: int | None = None


@dataclass(frozen=True)
class Plan:
    """How the times are taken: each replicate starts ``variants`` afresh and runs ``rounds`` rounds."""

    variants: tuple[str, ...]
    replicates: int
    rounds: int
    """Even, so that every round has its counterpart in the opposite order."""
    steps: int
    """Timed steps in a block."""
    lead: int
    """Untimed steps before them, in which caches and the device's clock recover from the pause."""
    warmup: int
    """The fewest steps before the first block."""
    most_warmup: int
    """The most, where times do not become steady."""
    dropped: tuple[str, ...] = ()
    """The variants that the budget has no time for."""


@dataclass(frozen=True)
class Costs:
    """What the examination of the variants showed, in seconds."""

    step: float
    startup: float
    """From the start of a process to its first step."""
    parallel: int = 1
    """How many processes can start at once without slowing each other down."""

    def replicate(self, plan: Plan) -> float:
        """The time of one replicate."""
        count = len(plan.variants)
        steps = plan.warmup + plan.rounds * (plan.lead + plan.steps)
        return self.startup * math.ceil(count / self.parallel) + count * steps * self.step


def plan(
    needed: Sequence[str],
    alone: Sequence[str],
    costs: Costs,
    wishes: Wishes,
    budget: float,
    total: int | None,
) -> Plan:
    """The most that ``budget`` seconds allow.

    First fewer rounds are run, down to ``ROUNDS``, and fewer replicates; then still fewer rounds; and at
    last variants of ``alone`` are left out, from the end of the list. ``needed`` stays, whatever it
    costs. ``total`` is the number of steps that the program has in all, None if it has more than anybody
    asks for.
    """
    full = _shape(costs.step, wishes, total)
    most = wishes.replicates or REPLICATES
    fewest = wishes.replicates or LEAST_REPLICATES
    least_rounds = full.rounds if wishes.steps is not None else min(full.rounds, LEAST_ROUNDS)
    for kept in range(len(alone), -1, -1):
        dropped = tuple(alone[kept:])
        variants = (*needed, *alone[:kept])
        for replicates, rounds in _extents(full.rounds, least_rounds, most, fewest):
            made = replace(full, variants=variants, replicates=replicates, rounds=rounds, dropped=dropped)
            if replicates * costs.replicate(made) <= budget:
                return made
    return made


def _extents(rounds: int, least_rounds: int, most: int, fewest: int) -> Iterator[tuple[int, int]]:
    """Numbers of replicates and of rounds, the best first.

    Replicates that differ from each other widen an interval more than anything, and only more of them narrow
    it; but the middle of a handful of blocks is luck.
    """
    enough = max(least_rounds, min(rounds, ROUNDS[0]))
    for replicates in range(most, fewest - 1, -1):
        for number in range(rounds, enough - 1, -2):
            yield replicates, number
    for replicates in range(most, fewest - 1, -1):
        for number in range(enough - 2, least_rounds - 1, -2):
            yield replicates, number


def _shape(step: float, wishes: Wishes, total: int | None) -> Plan:
    """A plan for no variants yet: steps in a block, rounds, lead and warm-up."""
    # A long step recovers from the pause by itself, and does not take ten steps to warm up.
    lead = int(step < LONG_STEP)
    warmup = wishes.warmup if wishes.warmup is not None else WARMUP[0 if lead else 1]
    steps = max(1, math.ceil(BLOCK_SECONDS / max(step, 1e-9)))
    rounds = _even(REPLICATE_SECONDS / (steps * max(step, 1e-9)))
    if wishes.steps is not None:
        rounds = min(_even(wishes.steps), ROUNDS[1])
        steps = max(1, wishes.steps // rounds)
    most_warmup = max(warmup, min(MOST_WARMUPS * warmup, int(WARMUP_SECONDS / max(step, 1e-9))))
    # The first step is over before anything is counted.
    if total is not None and 1 + warmup + rounds * (lead + steps) > total:
        # A short program: every step counts.
        lead, warmup = 0, min(warmup, total // 4)
        steps = max(1, min(steps, (total - 1 - warmup) // rounds))
        rounds = max(2, min(rounds, (total - 1 - warmup) // steps) // 2 * 2)
    if total is not None:
        most_warmup = max(warmup, min(most_warmup, total - 1 - rounds * (lead + steps)))
    return Plan((), 0, rounds, steps, lead, warmup, most_warmup)


def _even(rounds: float) -> int:
    """An even number of rounds within the limits."""
    return min(max(int(rounds), ROUNDS[0]), ROUNDS[1]) // 2 * 2

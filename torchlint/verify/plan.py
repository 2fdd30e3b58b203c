"""How a budget is divided: among variants, the processes of each, and the blocks of a process.

Starting a process costs seconds, and timing a block costs a third of one; but blocks of one process share
what that process was dealt (addresses, kernels chosen by trial), so that no number of them replaces a second
process. The best number of blocks in a process is that of two-stage sampling: the root of what a process
costs over what a block costs, times the deviation of blocks over that of processes (W. G. Cochran, *Sampling
Techniques*, 3rd edition, chapter 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

BLOCK_SECONDS = 0.25
"""The least length of a block. Processors of a virtual machine differ in speed, and a step is about as fast
as those in the 50 ms before it: several short blocks tell more than a long one, but each needs its lead."""
BLOCK_STEPS = 10
"""The fewest steps of a block, unless they take longer than ``LONG_BLOCK``."""
LONG_BLOCK = 1.0
LEAD_SECONDS = 0.05
"""The least length of the untimed steps before a block, in which the program wakes up from its pause."""
SPREAD = 3
"""How many times as long the lead is, and"""
SPREAD_BLOCK = 2
"""the block behind it, where the threads of a program use several processors at once: its steps get a third
faster in the first 150 ms after a pause, until the system has spread the threads again."""
LONG_STEP = 0.1
"""Seconds from which on a step recovers from the pause by itself."""
LEAST_ROUNDS = 4
"""The fewest rounds of a process: the middle of fewer blocks is luck."""
FIRST_ROUNDS = 12
"""The rounds of the first processes of the variants, and of the second ones where several others follow: then
it is known how long these are best kept. Also of all processes where the user says how many there are."""
WARMUP = (10, 4)
"""The least warm-up of short and of long steps, where nobody says how much."""
MOST_WARMUPS = 4
"""How many times that is run at most,"""
WARMUP_SECONDS = 0.5
"""and for how long, where there are more steps and nobody says how many."""
LEAST_REPLICATES = 2
"""The fewest processes of a variant: one does not show by how much processes differ."""
REPLICATES = 12
"""The most, where nobody says how many. So many are only run of a program that is over soon."""


@dataclass(frozen=True)
class Wishes:
    """What the user asked for; None where the plan decides."""

    steps: int | None = None
    warmup: int | None = None
    replicates: int | None = None


@dataclass(frozen=True)
class Plan:
    """How the times are taken: each replicate starts ``variants`` anew, and they take turns in rounds."""

    variants: tuple[str, ...]
    rounds: int | None
    """The most rounds of a replicate; None if the program has steps for as many as anybody wants. It is even:
    every round has its counterpart in the opposite order."""
    steps: int
    """Timed steps in a block."""
    lead: int
    """Untimed steps before them, in which caches and the device's clock recover from the pause."""
    warmup: int
    """Untimed steps before the first block."""
    dropped: tuple[str, ...] = ()
    """The variants that the budget has no time for."""

    @property
    def least_rounds(self) -> int:
        """The fewest rounds of a replicate that are of use."""
        return LEAST_ROUNDS if self.rounds is None else min(LEAST_ROUNDS, self.rounds)


@dataclass(frozen=True)
class Costs:
    """What the examination of the variants showed, in seconds."""

    step: float
    startup: float
    """From the start of a process to its first step."""
    parallel: int = 1
    """How many processes can start at once without slowing each other down."""
    examination: float = 0.0
    """From the first step of a variant to the end of its examination."""
    copy: float = 0.0
    """For the copy of the project that a process gets."""
    started: float | None = None
    """What it took, for each variant, from the start of a replicate to its first block; None before one."""
    spreads: bool = False
    """Whether the threads of a program use several processors at once."""

    def examine(self, plan: Plan) -> float:
        """Return the time of the examination of all variants but the original."""
        count = len(plan.variants) - 1
        return self.copy * count + (self.startup + self.examination) * math.ceil(count / self.parallel)

    def start(self, plan: Plan) -> float:
        """Return the time from the start of a replicate to its first block."""
        count = len(plan.variants)
        if self.started is not None:
            return count * self.started
        turns = math.ceil(count / self.parallel)
        return self.copy * count + turns * (self.startup + plan.warmup * self.step)

    def round(self, plan: Plan) -> float:
        """Return the time of one round."""
        return len(plan.variants) * (plan.lead + plan.steps) * self.step

    def replicate(self, plan: Plan) -> float:
        """Return the least time of a replicate."""
        return self.start(plan) + plan.least_rounds * self.round(plan)


def plan(
    needed: Sequence[str],
    alone: Sequence[str],
    costs: Costs,
    wishes: Wishes,
    budget: float,
    total: int | None,
    *,
    examined: bool = True,
) -> Plan:
    """Return the plan with as many variants as ``budget`` seconds allow.

    Variants of ``alone`` are left out from the end of the list if there is no time for the fewest rounds and
    replicates of all. ``needed`` stays, whatever it costs. ``total`` is the number of steps that the program
    has in all, None if it has more than anybody asks for. Unless they are ``examined`` already, they take the
    time for that as well.
    """
    shape = _shape(costs, wishes, total)
    replicates = wishes.replicates or LEAST_REPLICATES
    for kept in range(len(alone), -1, -1):
        made = replace(shape, variants=(*needed, *alone[:kept]), dropped=tuple(alone[kept:]))
        examination = 0.0 if examined else costs.examine(made)
        if examination + replicates * costs.replicate(made) <= budget:
            return made
    return made


def replicates(costs: Costs, plan: Plan, left: float, done: int, spread: float) -> int:
    """Return how many more replicates the ``left`` seconds are best divided among;
    0 if there is no time for any.

    Args:
        costs: what they cost.
        plan: what they do.
        left: the rest of the budget.
        done: how many there are already.
        spread: the deviation of blocks over that of processes; infinite if processes do not differ.
    """
    if costs.replicate(plan) > left or done >= REPLICATES:
        return 0
    if done < LEAST_REPLICATES:
        return LEAST_REPLICATES - done
    start, turn = costs.start(plan), costs.round(plan)
    rounds = max(spread * math.sqrt(start / turn), plan.least_rounds)
    if plan.rounds is not None:
        rounds = min(rounds, plan.rounds)
    best = round(left / (start + rounds * turn)) if math.isfinite(rounds) else 1
    if plan.rounds is None and start > 0:
        # Two thirds of the time are for blocks, unless the program is over too soon for that.
        best = min(best, int(left / (3 * start)))
    return max(min(best, REPLICATES - done), 1)


def _shape(costs: Costs, wishes: Wishes, total: int | None) -> Plan:
    """Return a plan for no variants yet: steps in a block, rounds, lead and warm-up."""
    step = max(costs.step, 1e-9)
    block, wakes = BLOCK_SECONDS, LEAD_SECONDS
    if costs.spreads:
        block, wakes = SPREAD_BLOCK * block, SPREAD * wakes
    steps = max(math.ceil(block / step), min(BLOCK_STEPS, math.ceil(LONG_BLOCK / step)))
    lead = math.ceil(wakes / step) if step < LONG_STEP else 0
    warmup = wishes.warmup if wishes.warmup is not None else WARMUP[0 if lead else 1]
    rounds = FIRST_ROUNDS if wishes.replicates is not None else None
    if wishes.steps is not None:
        rounds = max(min(wishes.steps, FIRST_ROUNDS) // 2 * 2, 2)
        steps = max(1, wishes.steps // rounds)
    more = min(MOST_WARMUPS * warmup, int(WARMUP_SECONDS / step)) if wishes.warmup is None else 0
    if total is not None:
        # The first step is over before anything is counted.
        free = total - 1
        if warmup + (rounds or LEAST_ROUNDS) * (lead + steps) > free:
            # A short program: every step counts.
            lead, warmup = 0, min(warmup, total // 4)
            steps = max(1, min(steps, (free - warmup) // (rounds or LEAST_ROUNDS)))
        fitting = max(2, (free - warmup) // (lead + steps) // 2 * 2)
        rounds = fitting if rounds is None else min(rounds, fitting)
        more = min(more, free - rounds * (lead + steps))
    return Plan((), rounds, steps, lead, max(warmup, more))

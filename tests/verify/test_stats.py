"""Ratios and intervals: recovered where they are known, and not fooled by drift and bursts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from torchlint.verify import judge, stats
from torchlint.verify.results import AGAIN, ORIGINAL, TOGETHER, Block, Interval, Verdict

TRIALS = 120


def timings(
    seed: int,
    ratio: float,
    *,
    replicates: int = 4,
    rounds: int = 12,
    noise: float = 0.02,
    between: float = 0.003,
    disturb: Callable[[np.random.Generator, int], float] = lambda random, tick: 0.0,
) -> list[Block]:
    """Blocks of the original, of its copy and of a fix that makes it ``ratio`` times as fast."""
    random = np.random.default_rng(seed)
    speeds = {ORIGINAL: 1.0, AGAIN: 1.0, TOGETHER: 1 / ratio}
    blocks = []
    tick = 0
    for replicate in range(replicates):
        dealt = {name: random.normal(0, between) for name in speeds}
        order = list(random.permutation(list(speeds)))
        for turn in range(rounds):
            for place, name in enumerate(order if turn % 2 == 0 else order[::-1]):
                tick += 1
                error = dealt[name] + random.normal(0, noise) + disturb(random, tick)
                wall = 0.02 * speeds[name] * float(np.exp(error))
                blocks.append(Block(str(name), replicate, turn, place, 4, wall))
    return blocks


def verdict(blocks: list[Block]) -> Verdict:
    wall = stats.interval(blocks, ORIGINAL, TOGETHER)
    assert wall is not None
    return judge.timed(wall, judge.noise(blocks))[0]


@pytest.mark.parametrize("ratio", [1.0, 1.05, 1.5])
@pytest.mark.parametrize(("replicates", "between"), [(2, 0.003), (2, 0.02), (3, 0.003), (4, 0.02)])
def test_a_known_ratio_lies_in_its_interval(ratio: float, replicates: int, between: float) -> None:
    held = 0
    for seed in range(TRIALS):
        blocks = timings(seed, ratio, replicates=replicates, between=between)
        found = stats.interval(blocks, ORIGINAL, TOGETHER)
        assert found is not None
        held += found.low <= ratio <= found.high
    assert held >= 0.93 * TRIALS


def test_identical_programs_are_not_told_apart() -> None:
    verdicts = [verdict(timings(seed, 1.0)) for seed in range(TRIALS)]
    fit = [item for item in verdicts if item is not Verdict.UNFIT]
    assert len(fit) >= 0.9 * TRIALS
    assert sum(item in (Verdict.SAME, Verdict.UNCLEAR) for item in fit) >= 0.95 * len(fit)
    assert sum(item is Verdict.FASTER for item in verdicts) <= 0.025 * TRIALS


@pytest.mark.parametrize("between", [0.003, 0.02])
def test_looking_again_until_the_verdict_is_clear_fools_nobody(between: float) -> None:
    faster = 0
    for seed in range(TRIALS):
        blocks = timings(seed, 1.0, replicates=6, between=between)
        looks = [(replicate, turn) for replicate in range(1, 6) for turn in range(4, 14, 2)]
        for look in looks:
            found = verdict([block for block in blocks if (block.replicate, block.round) < look])
            if found not in (Verdict.UNCLEAR, Verdict.UNFIT):
                break
        faster += found is Verdict.FASTER
    assert faster <= 0.025 * TRIALS


def test_the_original_against_itself_is_within_its_interval() -> None:
    trials = 3 * TRIALS
    for replicates in (2, 3, 6):
        held = 0
        for seed in range(trials):
            found = stats.interval(timings(seed, 1.0, replicates=replicates, between=0.02), ORIGINAL, AGAIN)
            assert found is not None
            held += found.low <= 1 <= found.high
        assert held >= 0.92 * trials


def test_how_much_processes_differ_beside_blocks_is_estimated() -> None:
    apart = [
        stats.spread(timings(seed, 1.0, between=0.05, rounds=40), ORIGINAL, TOGETHER) for seed in range(40)
    ]
    # Of two blocks each, the ratio of pairs of them deviates by 0.02.
    assert 0.2 < float(np.median(apart)) < 0.8
    alike = [stats.spread(timings(seed, 1.0, between=0.0), ORIGINAL, TOGETHER) for seed in range(40)]
    assert float(np.median(alike)) > 3
    assert stats.spread(timings(0, 1.0)[:2], ORIGINAL, TOGETHER) == float("inf")


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(lambda random, tick: 0.002 * tick, id="drift"),
        pytest.param(lambda random, tick: 0.7 * (random.random() < 0.08), id="bursts"),
        pytest.param(lambda random, tick: 0.3 * (40 < tick % 90 < 60), id="slow spells"),
    ],
)
def test_disturbances_make_nothing_faster(disturb: Callable[[np.random.Generator, int], float]) -> None:
    verdicts = [verdict(timings(seed, 1.0, disturb=disturb)) for seed in range(TRIALS // 2)]
    assert sum(item is Verdict.FASTER for item in verdicts) <= 0.025 * len(verdicts)


def test_a_clear_gain_is_seen() -> None:
    verdicts = [verdict(timings(seed, 1.5)) for seed in range(20)]
    assert verdicts.count(Verdict.FASTER) == 20


def test_a_steady_drift_cancels_out() -> None:
    blocks = timings(0, 1.0, noise=0.0, between=0.0, disturb=lambda random, tick: 0.01 * tick)
    found = stats.interval(blocks, ORIGINAL, TOGETHER)
    assert found is not None
    assert found.ratio == pytest.approx(1.0, abs=1e-9)


def test_processes_weigh_by_their_blocks() -> None:
    found, plain = [], []
    for seed in range(TRIALS // 2):
        blocks = timings(seed, 1.0, replicates=3, rounds=32, noise=0.1, between=0.0)
        uneven = [block for block in blocks if block.replicate == 2 or block.round < 8]
        interval = stats.interval(uneven, ORIGINAL, TOGETHER)
        assert interval is not None
        found.append(np.log(interval.ratio))
        taken = stats.samples(uneven, ORIGINAL, TOGETHER)
        plain.append(float(np.mean([np.mean(of) for of in taken.values()])))
    assert float(np.std(found)) < 0.92 * float(np.std(plain))


def test_few_blocks_do_not_make_an_interval_wider_than_they_are_noisy() -> None:
    blocks = [timings(seed, 1.0, replicates=4, rounds=12, noise=0.1, between=0.0) for seed in range(TRIALS)]
    found = [stats.interval(item, ORIGINAL, TOGETHER) for item in blocks]
    widths = [item.half_width for item in found if item is not None]
    apart = float(np.std([np.log(item.ratio) for item in found if item is not None]))
    assert float(np.median(widths)) < 2.8 * apart


def test_the_same_samples_give_the_same_interval() -> None:
    blocks = timings(3, 1.05)
    assert stats.interval(blocks, ORIGINAL, TOGETHER) == stats.interval(blocks, ORIGINAL, TOGETHER)
    assert stats.interval([], ORIGINAL, TOGETHER) is None


def test_a_round_without_its_counterpart_gives_no_sample() -> None:
    blocks = [block for block in timings(0, 1.0, replicates=1, rounds=4) if block.round < 3]
    assert {key: len(group) for key, group in stats.samples(blocks, ORIGINAL, TOGETHER).items()} == {0: 1}


def test_a_throttled_block_is_left_out_and_counted() -> None:
    blocks = [Block(ORIGINAL, 0, turn, 0, 1, 1.0, clock=1980) for turn in range(4)]
    blocks.append(Block(ORIGINAL, 0, 4, 0, 1, 2.0, clock=1200))
    kept = stats.discard(blocks)
    assert [block.discarded is not None for block in kept] == [False] * 4 + [True]
    assert "1200 MHz" in str(kept[-1].discarded)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(1.10, 1.05, 1.15), Verdict.FASTER),
        (Interval(0.90, 0.85, 0.95), Verdict.SLOWER),
        (Interval(1.00, 0.98, 1.02), Verdict.SAME),
        (Interval(1.04, 1.01, 1.08), Verdict.UNCLEAR),
    ],
)
def test_verdicts(interval: Interval, expected: Verdict) -> None:
    assert judge.verdict(interval, 0.03) is expected


def test_a_machine_that_differs_from_itself_is_unfit() -> None:
    blocks = timings(0, 1.0, between=0.0)
    slow = [
        Block(
            b.variant, b.replicate, b.round, b.position, b.steps, b.wall * (1.1 if b.variant == AGAIN else 1)
        )
        for b in blocks
    ]
    noise = judge.noise(slow)
    assert noise is not None
    assert not noise.fit
    assert "run twice, differs by" in noise.reason


def test_all_variants_tell_how_much_processes_differ() -> None:
    """With others beside it, the interval of a variant is narrower, and holds as often."""
    alone, beside, held = [], [], 0
    for seed in range(TRIALS):
        blocks = timings(seed, 1.0, replicates=2, between=0.02)
        others = []
        for number in range(3):
            further = timings(1000 * (number + 1) + seed, 1.0, replicates=2, between=0.02)
            others += [replace(block, variant=f"TL{number}") for block in further if block.variant == AGAIN]
        one = stats.interval(blocks, ORIGINAL, TOGETHER)
        several = stats.interval([*blocks, *others], ORIGINAL, TOGETHER)
        assert one is not None and several is not None
        alone.append(one.half_width)
        beside.append(several.half_width)
        held += several.low <= 1 <= several.high
    assert float(np.median(beside)) < 0.85 * float(np.median(alone))
    assert held >= 0.92 * TRIALS

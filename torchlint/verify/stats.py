"""From block times to a ratio with an interval.

A round runs one block of every variant; every other round runs them in the opposite order, so that two
rounds in a row are an ABBA (with more than two variants: a palindrome) and a clock that drifts steadily
favours nobody. One sample is the log of time before over time after, averaged over such a pair of rounds;
blocks of one round cover the same steps of the program. The estimate is the median of the samples. Its
interval comes from a bootstrap that draws replicates first and samples within them second, since blocks of
one process share what that process was dealt (addresses, kernels chosen by trial); it never gets narrower
than the spread of the replicates among themselves allows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Literal

import numpy as np
import numpy.typing as npt

from torchlint.verify.results import Block, Interval

Clock = Literal["wall", "device"]

RESAMPLES = 10_000
CONFIDENCE = 0.95
THROTTLED = 0.02
"""A block whose SM clock is this far below the median of its variant ran on a throttled device."""

# Two-sided 95 % quantiles of Student's t by degrees of freedom; further ones are near enough to the last.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def discard(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks, with those marked that ran on a throttled clock.

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


def samples(blocks: Iterable[Block], before: str, after: str, clock: Clock = "wall") -> list[list[float]]:
    """Log ratios of the time of ``before`` over that of ``after``, for each replicate that has any.

    Rounds without a usable block of both, and a last round without its counterpart, give none.
    """
    times: dict[int, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for block in blocks:
        seconds = block.wall if clock == "wall" else block.device
        if block.variant in (before, after) and seconds and seconds > 0 and block.discarded is None:
            times[block.replicate][block.round][block.variant] = seconds / block.steps
    found = []
    for _, rounds in sorted(times.items()):
        ratios = {
            number: float(np.log(pair[before] / pair[after]))
            for number, pair in rounds.items()
            if before in pair and after in pair
        }
        pairs = [
            (ratios[number] + ratios[number + 1]) / 2
            for number in sorted(ratios)
            if number % 2 == 0 and number + 1 in ratios
        ]
        if pairs:
            found.append(pairs)
    return found


def interval(replicates: Sequence[Sequence[float]], seed: int = 0) -> Interval | None:
    """The median ratio and its 95 % interval from log ratios grouped by replicate; None without any.

    The same samples and seed give the same interval.
    """
    groups = [np.asarray(group, dtype=float) for group in replicates if len(group)]
    if not groups:
        return None
    center = float(np.median(np.concatenate(groups)))
    medians = _resampled_medians(groups, np.random.default_rng(seed))
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(end) for end in np.quantile(medians, (tail, 1 - tail)))
    spread = _spread_of_replicates(groups)
    low, high = min(low, center - spread), max(high, center + spread)
    return Interval(float(np.exp(center)), float(np.exp(low)), float(np.exp(high)))


def _resampled_medians(
    groups: Sequence[npt.NDArray[np.float64]], random: np.random.Generator
) -> npt.NDArray[np.float64]:
    """The medians of ``RESAMPLES`` hierarchical resamples."""
    lengths = np.array([len(group) for group in groups])
    table = np.full((len(groups), int(lengths.max())), np.nan)
    for row, group in zip(table, groups, strict=True):
        row[: len(group)] = group
    chosen = random.integers(len(groups), size=(RESAMPLES, len(groups)))
    sizes = lengths[chosen][..., None]
    columns = (random.random((*chosen.shape, table.shape[1])) * sizes).astype(int)
    drawn = table[chosen[..., None], columns]
    # A shorter replicate is drawn from as often as it is long.
    drawn[np.broadcast_to(np.arange(table.shape[1]), drawn.shape) >= sizes] = np.nan
    found: npt.NDArray[np.float64] = np.nanmedian(drawn.reshape(RESAMPLES, -1), axis=1)
    return found


def _spread_of_replicates(groups: Sequence[npt.NDArray[np.float64]]) -> float:
    """Half the width of Student's interval for the mean of the replicates' medians; 0 for a single one.

    Few replicates are too few for a bootstrap over replicates: of three, each resample sees two at most
    in seven cases of nine.
    """
    if len(groups) < 2:
        return 0.0
    middles = np.array([np.median(group) for group in groups])
    quantile = _STUDENT[min(len(groups) - 2, len(_STUDENT) - 1)]
    return float(quantile * middles.std(ddof=1) / np.sqrt(len(groups)))

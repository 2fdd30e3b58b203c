"""Steps that do more than the others at regular distances: they evaluate, log or save, or begin an epoch.

A process reports the steps that took much longer than those around them, by their numbers. All variants do
the same work in the step of the same number, so that what is slow in nearly all processes of the original is
the program's own, and what is slow in one is noise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import median

from torchlint.verify.results import AGAIN, ORIGINAL, Block, Periodic

AGREED = 0.75
"""The share of the processes in which a step has to be slow,"""
FEWEST = 2
"""and how many have to have run it."""
REGULAR = 0.7
"""The share of the distances between slow steps that have to be the same."""
Place = tuple[str, int]
"""A file and a row."""


def periodic(blocks: Iterable[Block], news: Mapping[int, Place]) -> Periodic | None:
    """Return the slow steps of a program, if they come at regular distances.

    ``news`` has, for steps in which lines ran for the first time, the first of these lines.
    """
    blocks = [block for block in blocks if block.since]
    extra: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for block in blocks:
        for number, seconds in block.slow:
            extra[number][block.variant].append(seconds)
    own = [block for block in blocks if block.variant in (ORIGINAL, AGAIN)]
    special = [number for number in sorted(extra) if _agreed(number, extra[number], own)]
    distances = Counter(after - before for before, after in pairwise(special))
    if not distances:
        return None
    every, often = distances.most_common(1)[0]
    # Two are enough where they count from the beginning: what runs after a step is part of the next.
    if often < REGULAR * distances.total() or every < 2 or (often < 2 and special[0] - every not in (0, 1)):
        return None
    phase = special[0] % every
    regular = [number for number in special if number % every == phase]
    # The first of them may have been over before anything was timed.
    before = (number for number in range(2, special[0] + 1) if number % every == phase)
    file, row = next((news[number] for number in before if number in news), ("", 0))
    longer: dict[str, float] = {}
    for name in dict.fromkeys(block.variant for block in blocks):
        own = [block for block in blocks if block.variant == name]
        covered = [number for number in regular if any(_covers(block, number) for block in own)]
        if covered:
            longer[name] = median(median(extra[number].get(name) or [0.0]) for number in covered)
    return Periodic(every, longer, file, row)


def _agreed(number: int, slow: Mapping[str, list[float]], own: Iterable[Block]) -> bool:
    """Return whether a step is slow in nearly all processes of the original that ran it."""
    ran = sum(_covers(block, number) for block in own)
    return ran >= FEWEST and sum(len(slow.get(name, ())) for name in (ORIGINAL, AGAIN)) >= AGREED * ran


def _covers(block: Block, number: int) -> bool:
    return block.since <= number <= block.until

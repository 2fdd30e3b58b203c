"""What is alive when the memory is at its peak: the lines that allocated it, and activations."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ALLOCATED, FREED = "alloc", "free_requested"
"""What the allocator's history calls it. A block counts as allocated until it is asked to be freed."""
GRANULE = 512
"""Bytes of which every block is a multiple."""
MOST = 10
"""How many lines are told."""


def at_peak(history: Sequence[Mapping[str, Any]], project: Path) -> list[dict[str, Any]]:
    """Return what was allocated since the history begins and is alive at the peak, by the program's line.

    The lines are as ``results.Allocation`` has them, most bytes first. One without a file stands for what no
    line of the project asked for: the backward pass, whose thread knows no Python, above all.
    """
    sizes: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for event in _alive(history[: _peak(history)]):
        sizes[_place(event.get("frames", ()), project)].append(_size(event))
    places = sorted(filter(any, sizes), key=lambda place: -sum(sizes[place]))[:MOST]
    places += [place for place in sizes if not any(place)]
    return [
        {
            "file": file,
            "row": row,
            "size": sum(sizes[file, row]),
            "count": len(sizes[file, row]),
            "text": linecache.getline(str(project / file), row).strip() if file else "",
        }
        for file, row in places
    ]


def activations(history: Sequence[Mapping[str, Any]], backward_passes: Sequence[tuple[int, int]]) -> int:
    """Return the bytes that are alive at the peak and that a backward pass releases.

    Each backward pass is given by how many allocations and releases came before its begin and its end. What
    one allocates itself is its workspace. What a variable of the program holds on to does not count, though
    the backward pass may use it: it would be there without.
    """

    def within(number: int) -> bool:
        return any(begin < number <= end for begin, end in backward_passes)

    peak = _peak(history)
    waiting: dict[int, int] = {}
    found = number = 0
    for place, event in enumerate(history, start=1):
        if event["action"] == ALLOCATED:
            number += 1
            if place <= peak and not within(number):
                waiting[event["addr"]] = _size(event)
            else:
                waiting.pop(event["addr"], None)
        elif event["action"] == FREED:
            number += 1
            size = waiting.pop(event["addr"], 0)
            if place > peak and within(number):
                found += size
    return found


def _peak(history: Sequence[Mapping[str, Any]]) -> int:
    """Return how many events it takes to the peak."""
    total = most = count = 0
    for number, event in enumerate(history, start=1):
        if event["action"] == ALLOCATED:
            total += _size(event)
        elif event["action"] == FREED:
            total -= _size(event)
        if total > most:
            most, count = total, number
    return count


def _alive(history: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the allocations that were not freed again."""
    alive: dict[int, Mapping[str, Any]] = {}
    for event in history:
        if event["action"] == ALLOCATED:
            alive[event["addr"]] = event
        elif event["action"] == FREED:
            alive.pop(event["addr"], None)
    return list(alive.values())


def _size(event: Mapping[str, Any]) -> int:
    return -(-int(event["size"]) // GRANULE) * GRANULE


def _place(frames: Sequence[Mapping[str, Any]], project: Path) -> tuple[str, int]:
    """Return the innermost line of the project among the frames, which begin with the innermost."""
    prefix = f"{project}/"
    for frame in frames:
        if frame["filename"].startswith(prefix):
            return frame["filename"][len(prefix) :], frame["line"]
    return "", 0

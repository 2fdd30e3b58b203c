"""Runs blocks of steps when told to, and times them."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from torchlint.verify.worker.boundary import Stopper
from torchlint.verify.worker.channel import Channel
from torchlint.verify.worker.device import Device
from torchlint.verify.worker.evidence import Work

OUTSTANDING = 3.0
"""From how many times the usual time on a step is slow,"""
LEAST_SECONDS = 2e-3
"""and by how much."""


def outstanding(marks: Sequence[float], first: int) -> list[tuple[int, float]]:
    """Return the steps that took much longer than the others, by their numbers, with how much longer.

    Args:
        marks: when the first began and when each ended, in seconds.
        first: the number of the first.
    """
    taken = [after - before for before, after in itertools.pairwise(marks)]
    usual = median(taken) if taken else 0.0
    return [
        (first + place, round(seconds - usual, 5))
        for place, seconds in enumerate(taken)
        if seconds > OUTSTANDING * usual and seconds - usual > LEAST_SECONDS
    ]


class Blocks:
    """A boundary at which the program waits for orders.

    Between the orders a step costs a decrement, a look at the clock and a mark on the device: the program is
    synchronised only around a block. ``meet`` waits for the other processes of the program: their blocks
    begin at the same time.
    """

    def __init__(
        self,
        channel: Channel,
        device: Device,
        stopper: Stopper,
        began: float,
        meet: Callable[[], None] = lambda: None,
    ) -> None:
        self._channel, self._device, self._stopper = channel, device, stopper
        self._meet = meet
        self._left = 1
        self._next: Callable[[], None] = self._ready
        self._began = began
        self._steps = 0
        self._done = 0
        # When the program went on, and when each step since then ended.
        self._marks = [time.perf_counter()]
        self._start = 0.0
        # The same on the device, of the steps that are timed; None while none are.
        self._ends: list[Any] | None = None
        self._work = Work()

    def __call__(self) -> None:
        self._left -= 1
        self._marks.append(time.perf_counter())
        if self._ends is not None:
            self._ends.append(self._device.mark())
        if self._left <= 0:
            self._next()

    def _ready(self) -> None:
        self._device.synchronize()
        # A copy starts with frozen objects, which garbage collection would cost nothing for.
        gc.unfreeze()
        gc.collect()
        self._channel.send(event="ready", startup_seconds=time.perf_counter() - self._began)
        self._wait()

    def _wait(self) -> None:
        """Take the next order; a steering process that is gone wants the program to end."""
        order = self._channel.receive()
        if order is None or order["do"] == "stop":
            self._stopper.stop()
        self._steps = order["steps"]
        self._done += len(self._marks) - 1
        self._marks = [time.perf_counter()]
        begin = self._watch if order["do"] == "work" else self._begin
        if order["lead"]:
            self._left, self._next = order["lead"], begin
        else:
            begin()

    def _begin(self) -> None:
        self._left, self._next = self._steps, self._end
        self._device.synchronize()
        self._meet()
        self._ends = [self._device.mark()]
        self._start = time.perf_counter()

    def _end(self) -> None:
        self._device.synchronize()
        wall = time.perf_counter() - self._start
        ends, self._ends = self._ends or [None], None
        self._channel.send(
            event="block",
            steps=self._steps,
            wall=wall,
            device=self._device.between(ends[0], ends[-1]),
            clock=self._device.clock(),
            times=self._times(ends),
            since=self._done + 1,
            until=self._done + len(self._marks) - 1,
            slow=outstanding(self._marks, self._done + 1),
        )
        self._wait()

    def _times(self, ends: Sequence[Any]) -> list[float]:
        """Return the seconds of each step, on the clock of the device if it has one."""
        marks = [self._start, *self._marks[-self._steps :]]
        return [
            round(after - before if taken is None else taken, 7)
            for (before, after), taken in zip(
                itertools.pairwise(marks),
                itertools.starmap(self._device.between, itertools.pairwise(ends)),
                strict=True,
            )
        ]

    def _watch(self) -> None:
        """Let the profiler record what the device does."""
        self._left, self._next = self._steps, self._watched
        self._device.synchronize()
        self._start = time.perf_counter()
        self._work.start()

    def _watched(self) -> None:
        self._device.synchronize()
        wall = time.perf_counter() - self._start
        self._channel.send(
            event="block",
            steps=self._steps,
            wall=wall,
            device=self._work.seconds(),
            clock=self._device.clock(),
        )
        self._wait()

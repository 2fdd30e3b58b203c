"""Runs blocks of steps when told to, and times them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from torchlint.verify.worker.boundary import Stopper
from torchlint.verify.worker.channel import Channel
from torchlint.verify.worker.device import Device
from torchlint.verify.worker.evidence import Work


class Blocks:
    """A boundary at which the program waits for orders.

    Between the orders a step costs one decrement: the program is synchronised only around a block. ``meet``
    waits for the other processes of the program: their blocks begin at the same time.
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
        self._start = 0.0
        self._mark: Any = None
        self._work = Work()

    def __call__(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._next()

    def _ready(self) -> None:
        self._device.synchronize()
        # What start-up left behind is no longer searched whenever the garbage collector looks at everything.
        gc.collect()
        gc.freeze()
        self._channel.send(event="ready", startup_seconds=time.perf_counter() - self._began)
        self._wait()

    def _wait(self) -> None:
        """Take the next order; a steering process that is gone wants the program to end."""
        order = self._channel.receive()
        if order is None or order["do"] == "stop":
            self._stopper.stop()
        self._steps = order["steps"]
        begin = self._watch if order["do"] == "work" else self._begin
        if order["lead"]:
            self._left, self._next = order["lead"], begin
        else:
            begin()

    def _begin(self) -> None:
        self._left, self._next = self._steps, self._end
        self._device.synchronize()
        self._meet()
        self._mark = self._device.mark()
        self._start = time.perf_counter()

    def _end(self) -> None:
        mark = self._device.mark()
        self._device.synchronize()
        wall = time.perf_counter() - self._start
        between = self._device.between(self._mark, mark)
        self._channel.send(
            event="block", steps=self._steps, wall=wall, device=between, clock=self._device.clock()
        )
        self._wait()

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

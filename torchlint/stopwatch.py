"""Where the CPU time of a check goes: by rule, and by what is done besides. Nothing is measured unless asked.

What several rules ask of the model is counted as the time of the first that asks.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

Seconds = Counter[str]
"""Seconds of CPU time by the code of a rule, or by a part of the work in words."""

_running: _Stopwatch | None = None


class _Stopwatch:
    """Counts the time of what is under way innermost."""

    def __init__(self) -> None:
        self.seconds: Seconds = Counter()
        self._under_way: list[str] = []
        self._since = 0.0

    def lap(self) -> None:
        """Count the time since the last lap."""
        # Of the thread: workers that wait for a processor take no longer than others.
        now = time.thread_time()
        if self._under_way:
            self.seconds[self._under_way[-1]] += now - self._since  # type: ignore[assignment]
        self._since = now

    def start(self, name: str) -> None:
        self.lap()
        self._under_way.append(name)

    def stop(self) -> None:
        self.lap()
        self._under_way.pop()


@contextlib.contextmanager
def recording() -> Iterator[Seconds]:
    """Measure everything that is done meanwhile, in one thread at a time."""
    global _running
    before, _running = _running, _Stopwatch()
    try:
        yield _running.seconds
    finally:
        _running = before


class _Measured:
    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        if _running is not None:
            _running.start(self._name)

    def __exit__(self, *_: Any) -> None:
        if _running is not None:
            _running.stop()


def of(name: str) -> contextlib.AbstractContextManager[None]:
    """Count the time of the block as that of ``name``, and no longer as that of a block around it."""
    return _Measured(name)

"""A progress bar for runs that are long enough to make somebody wait."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE = 1.0
"""Seconds before the bar appears."""


class Progress:
    """Called with the number of files done and their total; shows a bar on standard error after a while."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._started = time.monotonic()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        if not self._enabled or time.monotonic() - self._started < PATIENCE:
            return
        if self._bar is None:
            self._bar, self._task = _bar(total)
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total)


def _bar(total: int) -> tuple[Bar, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("Checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.start()
    return bar, bar.add_task("Checking", total=total)

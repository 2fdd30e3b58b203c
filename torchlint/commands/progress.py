"""A progress bar for runs that are long enough to make somebody wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

PATIENCE = 1.0
"""Seconds before the bar appears."""


class Progress:
    """Called with the number of files done and their total; shows a bar on standard error after a while.

    A timer shows the bar, since the first file may be what takes long.
    """

    def __init__(self, total: int, *, enabled: bool) -> None:
        self._done, self._total = 0, total
        self._shown: tuple[Bar, TaskID] | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE, self._show) if enabled else None

    def __enter__(self) -> Progress:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        with self._lock:
            if self._shown is not None:
                self._shown[0].stop()
            # A timer that has just gone off finds nothing left to show.
            self._done = self._total

    def __call__(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total = done, total
            if self._shown is not None:
                bar, task = self._shown
                bar.update(task, completed=done, total=total)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("Checking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with self._lock:
            if self._done >= self._total:
                return
            bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._shown = bar, bar.add_task("Checking", total=self._total, completed=self._done)
            bar.start()

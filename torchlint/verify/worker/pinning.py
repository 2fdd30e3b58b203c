"""The processors that a program runs on while it is timed.

On a virtual machine processors differ in speed from second to second, with what their neighbours on the host
do. A program that is at work on one processor at a time is as fast as the one that the system chose for it;
on one such machine, runs of the same code differed by 15 %, and by 1 % once all ran on the same two
processors.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

_AUTOGRAD = "pt_autograd"
"""How torch names the threads of its backward passes."""
_PARALLEL = 1 << 20
"""Numbers enough for torch to share their sum out among its threads."""


def pin(processors: Sequence[int], tasks: Path = Path("/proc/self/task")) -> None:
    """Keep the threads that run the program on ``processors``.

    Those that share out single operations, and processes that the program starts from now on by forking, such
    as loader workers, keep all that this process may use.

    Args:
        processors: their numbers; nothing is done if there are none.
        tasks: where the threads of this process are found.
    """
    if not processors or not hasattr(os, "sched_setaffinity"):
        return
    usual = os.sched_getaffinity(0)
    # The threads for single operations are made at the first of them, and run where their maker may.
    torch.zeros(_PARALLEL).sum()
    for thread in _threads(tasks):
        os.sched_setaffinity(thread, processors)
    os.register_at_fork(after_in_child=lambda: os.sched_setaffinity(0, usual))


def _threads(tasks: Path) -> Iterator[int]:
    """Python's threads, and those of backward passes."""
    known = {thread.native_id for thread in threading.enumerate()}
    for task in tasks.iterdir():
        if int(task.name) in known or (task / "comm").read_text(encoding="utf-8").startswith(_AUTOGRAD):
            yield int(task.name)

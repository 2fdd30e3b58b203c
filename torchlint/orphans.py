"""Worker processes that end with the process that started them, whatever ends that.

A process that is killed tells nobody. Its workers would wait for work for ever: what they wait for is held
open by each other.
"""

from __future__ import annotations

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """End this process as soon as the one is gone that `multiprocessing` says has started it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), name="torchlint-parent", daemon=True).start()


def _follow(parent: multiprocessing.process.BaseProcess) -> None:
    # The system closes a pipe, or on Windows signals a handle, when the process ends.
    parent.join()
    os._exit(1)

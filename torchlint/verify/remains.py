"""Ends what programs have left running, whatever sessions they have put it into, and removes their folder.

Every program gets a temporary folder in the scratch place of its run, and what it starts inherits that: so
its processes are known by their environment. Linux only; elsewhere just the process groups are ended.

Also run by itself, as ``python remains.py FOLDER``: it then waits for the end of its standard input, which
comes when the process that holds the other end is gone. Standard library only, and nothing of torchlint.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

PATIENCE = 5.0
"""Seconds that killed processes have to be gone."""


def end(folder: str) -> None:
    """Kill every process whose temporary folder is ``folder`` or in it, and what they start meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while (found := running(folder)) and time.monotonic() < deadline:
        for number in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.01)


def running(folder: str) -> list[int]:
    """Return the user's processes that have their temporary folder there; none where that cannot be known."""
    marks = tuple(b"\0TMPDIR=" + os.fsencode(folder) + end for end in (b"\0", b"/"))
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        # A process may end while it is looked at, and those of other users are nobody's business.
        with contextlib.suppress(OSError):
            if place.stat().st_uid == os.getuid():
                environment = b"\0" + (place / "environ").read_bytes() + b"\0"
                if any(mark in environment for mark in marks):
                    found.append(int(place.name))
    return found


def main() -> None:
    """Wait until the process that is watched over has ended, then leave nothing of its programs."""
    sys.stdin.buffer.read()
    end(sys.argv[1])
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()

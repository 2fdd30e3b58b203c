"""Processes that have torch imported already, and have nothing of each other's but that.

Importing torch takes seconds of a processor, and a bench run wants hundreds of processes. A nursery imports
it once and then only copies itself: what a copy does on the device, and all that it imports besides, is its
own. What all variants of a program import from elsewhere is imported once, too, when its first run has shown
what that is. Copies of one nursery have their code at the same addresses. That is a part of what a process is
dealt by chance, so that the variants of one replicate come from one nursery, and in a bench run each
replicate has another.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SUPPORTED = sys.platform == "linux"
"""Elsewhere a process that only copies another must not use some of the system's libraries."""
_NURSERY = "from torchlint.verify.worker.nursery import main; main()"
_POLL = 0.01
"""Seconds between two looks whether a process has ended."""
LONGEST_ANSWER = 1 << 16


class Nursery:
    """A process that imports torch and then waits to be copied."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        """Start it; orders wait until it has imported torch.

        Args:
            environment: what it has for variables while it imports torch.
            log: where it writes what it has to say, which should be nothing.
        """
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._orders = 0
        with theirs, log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _NURSERY, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
                cwd=log.parent,
                env=dict(environment),
            )

    def copy(self, files: Sequence[int], folder: str, environment: Mapping[str, str]) -> Copy:
        """Return a copy that does one job, in a session of its own.

        Args:
            files: the descriptors that orders come from, that answers go to, and that it prints to.
            folder: where it works.
            environment: its variables.

        Raises:
            OSError: the nursery has ended.
        """
        answer = self._ask({"do": "copy", "folder": folder, "environment": dict(environment)}, files)
        return Copy(self, answer["pid"])

    def become(
        self, files: Sequence[int], folder: str, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Do one job itself, and nothing for anybody else any more; the arguments are those of ``copy``.

        Raises:
            OSError: the nursery has ended.
        """
        self._ask({"do": "become", "folder": folder, "environment": dict(environment)}, files)
        self._socket.close()
        return self._process

    def load(self, file: Path) -> bool:
        """Import the modules that a file lists; whether copies made from now on can be used.

        Raises:
            OSError: the nursery has ended.
        """
        usable: bool = self._ask({"do": "import", "file": str(file)})["usable"]
        return usable

    def status(self, pid: int) -> int | None:
        """Return how a copy has ended, as ``subprocess.Popen.returncode`` has it; None while it runs."""
        try:
            status: int | None = self._ask({"do": "status", "pid": pid})["status"]
        except OSError:
            # Nobody can tell any more; what a nursery leaves behind is killed with the scratch place.
            return -9
        return status

    @property
    def alive(self) -> bool:
        """Whether it can still be asked."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the nursery. Its copies do not end with it."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _ask(self, order: Mapping[str, Any], files: Sequence[int] = ()) -> dict[str, Any]:
        with self._lock:
            self._orders += 1
            numbered = {**order, "number": self._orders}
            socket.send_fds(self._socket, [json.dumps(numbered).encode()], list(files))
            while answer := self._socket.recv(LONGEST_ANSWER):
                made: dict[str, Any] = json.loads(answer)
                # Whoever was interrupted while it waited has left the answer to its order behind.
                if made["number"] == self._orders:
                    return made
        raise ConnectionError("the process that preloads torch has ended")


class Copy:
    """A copy of a nursery, with as much of ``subprocess.Popen`` as is wanted of it."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return how it has ended, or None."""
        if self._status is None:
            self._status = self._nursery.status(self.pid)
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it has not ended in ``timeout`` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if timeout is not None and deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_POLL)
        return status

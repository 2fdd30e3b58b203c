"""Runs one command and says what it took; see `benchmarks.processes`.

    python -I -S launcher.py LIMIT REPORT COMMAND…

A process of its own, since the peak memory of a program counts what the process had that started it: this one
has next to nothing. On Linux it adopts what the command leaves behind, such as the workers of a fork server,
and waits for that too, so that nobody's time is lost. The report is one line: seconds of CPU, seconds of wall
time until the command ended, the largest resident set as the system counts it, the exit status, and 1 if all
was ended after LIMIT seconds (0: never), else 0.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time

_BECOME_REAPER = 36  # PR_SET_CHILD_SUBREAPER


def _expired(*_: object) -> None:
    raise TimeoutError


def main(limit: str, report: str, *command: str) -> None:
    """Run a command in a process group of its own, which is ended as a whole."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_BECOME_REAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGALRM, _expired)
    expired = status = 0
    wall = None
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, setpgroup=0)
    try:
        signal.setitimer(signal.ITIMER_REAL, float(limit))
        _, status = os.waitpid(child, 0)
        wall = time.perf_counter() - started
        _wait_for_all()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if not isinstance(error, TimeoutError):
            raise
        expired = 1
        _wait_for_all()
    wall = wall or time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = os.waitstatus_to_exitcode(status)
    with open(report, "w") as stream:  # noqa: PTH123 (pathlib takes memory)
        print(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss, code, expired, file=stream)


def _wait_for_all() -> None:
    """Wait until no process is left that the command started."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])

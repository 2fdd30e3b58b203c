"""Runs one command and says what it took; see `benchmarks.processes`.

    python -I -S launcher.py LIMIT REPORT COMMAND…

A process of its own, since the peak memory of a program counts what the process had that started it: this one
has next to nothing. The report is one line: seconds of CPU, seconds of wall time, the largest resident set as
the system counts it, the exit status, and 1 if the command was ended after LIMIT seconds (0: never), else 0.
"""

import os
import signal
import sys
import time


def _expired(*_: object) -> None:
    raise TimeoutError


def main(limit: str, report: str, *command: str) -> None:
    """Run a command in a process group of its own, which is ended as a whole."""
    signal.signal(signal.SIGALRM, _expired)
    expired = 0
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, setpgroup=0)
    try:
        signal.setitimer(signal.ITIMER_REAL, float(limit))
        _, status, usage = os.wait4(child, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except BaseException as error:
        os.killpg(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
        if not isinstance(error, TimeoutError):
            raise
        expired = 1
    wall = time.perf_counter() - started
    code = os.waitstatus_to_exitcode(status)
    with open(report, "w") as stream:  # noqa: PTH123 (pathlib takes memory)
        print(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss, code, expired, file=stream)


if __name__ == "__main__":
    main(*sys.argv[1:])

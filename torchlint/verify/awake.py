"""Processors that do not fall asleep while something is timed.

On a virtual machine an idle processor is handed back to the host, and waking it takes longer than launching
most kernels. Autograd, loaders and the program hand their work from thread to thread all the time, so that
where the threads happen to run decides about a step more than what they do. On one such machine a small
training step took 0.54 ms with its processors awake, give or take 2 %; with sleeping ones 0.93 ms, give or
take 10 %, in runs that differed by 25 % from each other.

A kernel that groups tasks by session shares a processor out among the groups first: without a small weight of
its group, a spinner took a third of the time from a program of another session, whatever its own priority.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_SPIN = """
import ctypes, os, signal
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
os.sched_setaffinity(0, {{{processor}}})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
try:
    with open("/proc/self/autogroup", "w") as group:
        group.write("19")
except OSError:
    pass
if os.getppid() != {parent}:
    os._exit(0)
while True:
    pass
"""
"""Runs only while nothing else wants the processor, and ends with the process that started it."""


@contextlib.contextmanager
def processors_awake(root: Path = Path("/")) -> Iterator[int]:
    """Keep the processors of a virtual machine from going to sleep; yields how many, 0 for none.

    Processors that share a core with another are left alone: a busy one takes from its neighbour. So are
    those of a machine that is not virtual, where waking is quick, and of a container whose time is counted.

    Args:
        root: where the files of ``/proc`` and ``/sys`` are found.
    """
    spinning = [_spin(processor) for processor in _sleepy(root)]
    try:
        yield len(spinning)
    finally:
        for process in spinning:
            process.kill()
        for process in spinning:
            process.wait()


def _spin(processor: int) -> subprocess.Popen[bytes]:
    code = _SPIN.format(processor=processor, parent=os.getpid())
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code],
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        # The group of tasks whose weight is small is that of a session.
        start_new_session=True,
    )


def _sleepy(root: Path) -> list[int]:
    """Return the processors of this process that would have to be kept awake."""
    if not hasattr(os, "SCHED_IDLE") or not _virtual(root) or _rationed(root):
        return []
    mine = sorted(os.sched_getaffinity(0))
    return mine if all(_alone(root, processor) for processor in mine) else []


def _virtual(root: Path) -> bool:
    """Return whether the processors say that a hypervisor runs them."""
    try:
        text = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return "hypervisor" in flags.split()


def _alone(root: Path, processor: int) -> bool:
    """Return whether a processor has its core for itself, as far as this machine can see."""
    siblings = root / f"sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list"
    try:
        return siblings.read_text(encoding="ascii").strip() == str(processor)
    except OSError:
        return False


def _rationed(root: Path) -> bool:
    """Return whether the control groups limit the processor time: busy processors would use it up.

    Source: the kernel's documentation of control groups, ``cpu.max`` (v2) and ``cpu.cfs_quota_us`` (v1).
    """
    groups = root / "sys/fs/cgroup"
    limits = [*groups.glob("cpu.max"), *groups.glob("cpu*/cpu.cfs_quota_us")]
    own = _own_group(root)
    if own:
        limits += [parent / "cpu.max" for parent in (groups / own, *(groups / own).parents)]
    for path in limits:
        with contextlib.suppress(OSError):
            if path.read_text(encoding="ascii").split()[0] not in ("max", "-1"):
                return True
    return False


def _own_group(root: Path) -> str:
    """Return the control group (v2) of this process, relative to the top; empty if there is none."""
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            if line.startswith("0::"):
                return line[3:].strip().lstrip("/")
    return ""

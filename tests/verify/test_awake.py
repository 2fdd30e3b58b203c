"""Processors that are kept awake: only where they sleep, and only as long as asked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.verify.awake import processors_awake

VIRTUAL = "processor\t: 0\nflags\t\t: fpu vme hypervisor lahf_lm\n"
PHYSICAL = "processor\t: 0\nflags\t\t: fpu vme lahf_lm\nmodel name\t: hypervisor\n"


def machine(root: Path, cpuinfo: str = VIRTUAL, siblings: str = "{}", **files: str) -> Path:
    """The files of a machine with the processors of this one."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text(cpuinfo)
    (root / "proc/self/cgroup").write_text("4:cpu:/\n0::/job/step\n")
    for processor in os.sched_getaffinity(0):
        topology = root / f"sys/devices/system/cpu/cpu{processor}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(siblings.format(processor) + "\n")
    (root / "sys/fs/cgroup/job/step").mkdir(parents=True)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("make", "awake"),
    [
        (lambda root: machine(root), True),
        (lambda root: machine(root, PHYSICAL), False),
        (lambda root: machine(root, siblings="{},99"), False),
        (lambda root: machine(root, cpu_DOT_max="max 100000\n"), True),
        (lambda root: machine(root, job__cpu_DOT_max="150000 100000\n"), False),
        (lambda root: machine(root, cpu__cpu_DOT_cfs_quota_us="-1\n"), True),
        (lambda root: machine(root, cpu__cpu_DOT_cfs_quota_us="50000\n"), False),
        (lambda root: root, False),
    ],
    ids=[
        "virtual",
        "physical",
        "shared core",
        "no limit",
        "limit on a parent",
        "no old limit",
        "old limit",
        "nothing known",
    ],
)
def test_only_sleepy_processors_are_kept_awake(
    make: Callable[[Path], Path], awake: bool, tmp_path: Path
) -> None:
    with processors_awake(make(tmp_path)) as count:
        assert count == (len(os.sched_getaffinity(0)) if awake else 0)


def children(pid: int) -> set[int]:
    """The processes that a process has started and not buried."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(after_name[1]) == pid and after_name[0] != "Z":
            found.add(int(entry.parent.name))
    return found


def test_they_yield_to_everything_and_end_with_the_block(tmp_path: Path) -> None:
    before = children(os.getpid())
    with processors_awake(machine(tmp_path)) as count:
        spinning = children(os.getpid()) - before
        assert len(spinning) == count
        deadline = time.monotonic() + 30
        while any(os.sched_getscheduler(pid) != os.SCHED_IDLE for pid in spinning):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert sorted(set().union(*(os.sched_getaffinity(pid) for pid in spinning))) == sorted(
            os.sched_getaffinity(0)
        )
    assert not children(os.getpid()) & spinning


def test_they_end_with_a_killed_process(tmp_path: Path) -> None:
    root = machine(tmp_path)
    code = (
        "import sys, time; from pathlib import Path\n"
        "from torchlint.verify.awake import processors_awake\n"
        f"with processors_awake(Path({str(root)!r})):\n"
        "    print('spinning', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "spinning\n"
        spinning = children(process.pid)
        assert spinning
        deadline = time.monotonic() + 30
        # Only then have they asked to be killed with it.
        while any(os.sched_getscheduler(pid) != os.SCHED_IDLE for pid in spinning):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
    while any(Path(f"/proc/{pid}").exists() for pid in spinning):
        assert time.monotonic() < deadline
        time.sleep(0.05)


_BUSY = """
import os, sys, time
from pathlib import Path

os.sched_setaffinity(0, {int(sys.argv[2])})


def used():
    fields = Path(f"/proc/{sys.argv[1]}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


began, own = used(), time.process_time()
while time.process_time() < own + 0.5:
    pass
print(used() - began)
"""


def test_programs_of_other_sessions_keep_their_processors(tmp_path: Path) -> None:
    before, first = children(os.getpid()), min(os.sched_getaffinity(0))
    with processors_awake(machine(tmp_path)):
        deadline = time.monotonic() + 30
        while True:
            spinning = children(os.getpid()) - before
            beside = [pid for pid in spinning if os.sched_getaffinity(pid) == {first}]
            if beside and os.sched_getscheduler(beside[0]) == os.SCHED_IDLE:
                break
            assert time.monotonic() < deadline
            time.sleep(0.05)
        ended = subprocess.run(
            [sys.executable, "-c", _BUSY, str(beside[0]), str(first)],
            check=True,
            capture_output=True,
            text=True,
            start_new_session=True,
        )
    assert float(ended.stdout) < 0.1, "beside half a second of the program"

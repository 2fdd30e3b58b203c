"""Processes that are copied instead of started, on Linux: they are as good as fresh ones."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from torchlint.verify import remains
from torchlint.verify.nursery import Nursery
from torchlint.verify.processes import Failure, Nurseries, Process, Spares
from torchlint.verify.subjects import Script
from torchlint.verify.worker.job import Job
from torchlint.verify.workspace import Workspace

CASE = """
import os, tempfile, threading

import torch


def setup(device, size):
    thread = threading.Thread(target=torch.set_num_threads, args=(1,))
    thread.start()
    thread.join()
    print(torch.get_num_threads(), "threads in the main one")
    print("in", os.getcwd(), os.getsid(0) == os.getpid(), tempfile.gettempdir(), os.environ["PYTHONHASHSEED"])
    if size == "failing":
        raise RuntimeError("no such size")
    if size == "dying":
        os.kill(os.getpid(), 11)
    return [torch.ones(3, requires_grad=True)]


def step(state):
    loss = state[0].square().sum()
    loss.backward()
    state[0].grad = None
    return loss
"""


@pytest.fixture
def job(scratch: Path) -> Job:
    """The examination of a case."""
    folder = scratch / "run" / "case"
    folder.mkdir(parents=True)
    (folder / "case.py").write_text(CASE, encoding="utf-8")
    return Job(
        task="examine",
        form="case",
        path=str(folder / "case.py"),
        folder=str(folder),
        function="step",
        device="cpu",
        size="small",
        project=str(folder),
        scratch=str(folder.parent),
        trace=str(scratch / "trace.pt"),
        role="reference",
    )


def started(
    job: Job, nurseries: Nurseries | None, name: str = "output", spare: Nursery | None = None
) -> Process:
    """A process for the job: a copy, one that was started early, or a fresh one."""
    nursery = nurseries.get(0) if nurseries else None
    return Process(job, Path(job.scratch) / f"{name}.log", nursery=nursery, spare=spare)


def test_copies_and_processes_started_early_find_what_a_fresh_one_finds(
    job: Job, nurseries: Nurseries, scratch: Path
) -> None:
    found, said = [], []
    with Spares(scratch, "cpu", 2) as spares:
        for made, spare, name in (
            (nurseries, None, "copy"),
            (None, spares.take(), "early"),
            (None, None, "fresh"),
        ):
            with started(job, made, name, spare) as process:
                process.run()
                examined = process.examined(60)
                found.append({key: examined[key] for key in ("found_by", "steps", "ended")})
            said.append((Path(job.scratch) / f"{name}.log").read_text().partition("\n"))
        assert spares.take() is not None
        assert spares.take() is None
    assert found[0] == found[1] == found[2]
    assert said[0][2] == said[1][2] == said[2][2]
    assert f"in {job.folder} True {job.scratch}/tmp 0" in said[0][2]
    # In a copy, the main thread has as many threads as there are processors, whatever another one sets.
    assert said[1][0] == said[2][0] == "1 threads in the main one"


def test_a_copy_can_be_paused_timed_and_run_again(job: Job, nurseries: Nurseries) -> None:
    with started(replace(job, task="time"), nurseries) as process:
        for size in ("small", "medium"):
            process.run(size=size)
            process.ready(60)
            times = process.block(2, 3, 60)
            assert times is not None and times.wall > 0
            # Two untimed steps are not among them.
            assert len(times.times) == 3 and sum(times.times) == pytest.approx(times.wall, rel=0.5)
            process.halt()
        assert process.alive
    assert not process.alive


def test_garbage_collection_costs_as_much_as_in_the_program(job: Job, nurseries: Nurseries) -> None:
    counting = CASE.replace(
        "def step(state):\n", "def step(state):\n    print(gc.get_freeze_count(), 'frozen')\n"
    )
    Path(job.path).write_text(f"import gc\n{counting}", encoding="utf-8")
    with started(replace(job, task="time"), nurseries) as process:
        process.run()
        process.ready(60)
        process.block(2, 3, 60)
        process.halt()
    counted = (Path(job.scratch) / "output.log").read_text().split(" frozen")[-2].split()[-1]
    assert counted == "0"


def test_a_copy_says_why_it_failed(job: Job, nurseries: Nurseries) -> None:
    with started(replace(job, size="failing"), nurseries) as process:
        process.run()
        with pytest.raises(Failure, match="RuntimeError: no such size"):
            process.examined(60)


def test_the_signal_that_ended_a_copy_is_known(job: Job, nurseries: Nurseries) -> None:
    with started(replace(job, size="dying"), nurseries) as process:
        process.run()
        with pytest.raises(Failure, match="it was killed by SIGSEGV"):
            process.examined(60)


def test_copies_of_one_nursery_do_not_share_what_they_change(job: Job, nurseries: Nurseries) -> None:
    changes = """    print(torch.get_default_dtype())
    torch.set_default_dtype(torch.half)
"""
    failing = '    if size == "failing"'
    changing = CASE.replace(failing, changes + failing)
    Path(job.path).write_text(changing, encoding="utf-8")
    for name in ("first", "second"):
        with started(job, nurseries, name) as process:
            process.run()
            process.examined(60)
        assert "torch.float32" in (Path(job.scratch) / f"{name}.log").read_text()


def test_a_copy_searches_the_copies_of_the_folders_that_a_user_names(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("", encoding="utf-8")
    (tmp_path / "setup.py").write_text("", encoding="utf-8")
    (tmp_path / "train.py").write_text("import helper\nprint('from', helper.__file__)\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    made = Script(Workspace(tmp_path / "train.py", scratch), device="cpu").job("original", "time")
    with Nurseries(scratch, "cpu") as nurseries, started(made, nurseries) as process:
        process.run()
        with pytest.raises(Failure, match="ended without a step"):
            process.ready(60)
    assert f"from {made.project}/lib/helper.py" in (Path(made.scratch) / "output.log").read_text()


def test_an_interrupted_order_leaves_no_answer_to_the_next(job: Job, scratch: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with Nurseries(scratch, "cpu") as nurseries, started(job, nurseries) as process:
        nursery = nurseries.get(0)
        assert nursery is not None
        before = signal.signal(signal.SIGALRM, interrupt)
        os.kill(nursery._process.pid, signal.SIGSTOP)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with pytest.raises(KeyboardInterrupt):
                process.alive  # noqa: B018  - it asks the nursery
        finally:
            signal.signal(signal.SIGALRM, before)
            os.kill(nursery._process.pid, signal.SIGCONT)
        with started(replace(job, task="time"), nurseries, "next") as following:
            assert following.alive
        process.run()
        assert process.examined(60)["found_by"]


def test_a_nursery_that_was_killed_is_replaced_and_nothing_is_left(job: Job, scratch: Path) -> None:
    with Nurseries(scratch, "cpu") as nurseries:
        first = nurseries.get(0)
        assert first is not None
        # It is known by its environment, which a process has only once it runs its own program.
        deadline = time.monotonic() + 60
        while first.alive and time.monotonic() < deadline:
            for pid in remains.running(str(scratch / "nursery0")):
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        with pytest.raises(OSError):
            first.copy((0, 1, 2), "/", {})
        process = started(replace(job, task="time"), nurseries)
        process.run()
        process.ready(60)
        assert len(remains.running(str(scratch))) == 2
        process.close()
    assert remains.running(str(scratch)) == []

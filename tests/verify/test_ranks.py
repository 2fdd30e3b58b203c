"""Programs with several ranks: started, timed, compared and ended as one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchlint.render import measurements
from torchlint.verify import judge, remains, report, words
from torchlint.verify.cases import read
from torchlint.verify.processes import Failure, Nurseries, Times
from torchlint.verify.ranks import Group, slowest, together, variables
from torchlint.verify.results import Agreement, Machine, load
from torchlint.verify.subjects import Bench, Script
from torchlint.verify.worker.job import Job
from torchlint.verify.workspace import Workspace

CASE = """
import os, time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIZES = {"small": 4}
RANKS = 2


@dataclass
class State:
    inputs: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer
    size: str
    turn: list


def setup(device, size):
    rank = dist.get_rank()
    print("rank", rank, "of", os.environ["WORLD_SIZE"], "has", torch.get_num_threads(), "thread")
    inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(rank)).to(device)
    model = DistributedDataParallel(nn.Linear(4, 1).to(device))
    return State(inputs, model, torch.optim.SGD(model.parameters(), lr=0.1), size, [0])


def step(state):
    rank = dist.get_rank()
    state.turn[0] += 1
    late = state.turn[0] == 3 and rank == 1
    if late and state.size == "raising":
        raise ValueError("no more data")
    if late and state.size == "hanging":
        wait()
    if late and state.size == "dying":
        os.kill(os.getpid(), 11)
    if rank == 1 and state.size == "slow":
        time.sleep(0.02)
    state.optimizer.zero_grad()
    loss = state.model(state.inputs).square().mean()
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def wait():
    time.sleep(600)


def step_fixed(state):
    result = step(state)
    return result + 1 if dist.get_rank() == 1 and state.size == "wrong" else result
"""


@pytest.fixture
def job(scratch: Path) -> Job:
    """The timing of a case in two ranks."""
    folder = scratch / "run" / "case"
    folder.mkdir(parents=True)
    (folder / "case.py").write_text(CASE, encoding="utf-8")
    return Job(
        task="time",
        form="case",
        path=str(folder / "case.py"),
        folder=str(folder),
        function="step",
        device="cpu",
        size="small",
        ranks=2,
        project=str(folder),
        scratch=str(folder.parent),
    )


def started(job: Job, nurseries: Nurseries) -> Group:
    """The ranks of a job."""
    return Group(job, Path(job.scratch) / "output.log", nursery=nurseries.get(0))


def examined(job: Job, nurseries: Nurseries, trace: Path, **changes: Any) -> dict[str, Any]:
    """What an examination finds; the first one, that of the original, writes the traces."""
    role = "compared" if trace.exists() else "reference"
    run = Path(job.scratch) / f"run{len(list(Path(job.scratch).iterdir()))}"
    run.mkdir()
    with started(replace(job, task="examine", scratch=str(run)), nurseries) as group:
        group.run(trace=str(trace), role=role, **changes)
        return group.examined(60)


# --- time ------------------------------------------------------------------------------------------------


def test_ranks_are_timed_together_and_run_again(job: Job, nurseries: Nurseries) -> None:
    with started(job, nurseries) as group:
        for size in ("small", "medium"):
            group.run(size=size)
            group.ready(60)
            assert group.startup_seconds
            times = group.block(1, 3, 60)
            assert times is not None and 0 < times.wall < 1
            group.halt()
        assert group.alive
        processes = group.groups
    assert not any(alive(number) for number in processes)
    for rank in range(2):
        said = (Path(job.scratch) / f"output.rank{rank}.log").read_text()
        assert said.count(f"rank {rank} of 2 has 1 thread") == 2


def test_the_slowest_rank_decides(job: Job, nurseries: Nurseries) -> None:
    with started(replace(job, size="slow"), nurseries) as group:
        group.run()
        group.ready(60)
        times = group.block(0, 4, 60)
    assert times is not None and times.wall >= 4 * 0.02
    fast, slow = Times(0.1, 0.09, 1900), Times(0.3, 0.01, 1700)
    assert slowest([fast, slow]) == Times(0.3, 0.09, 1700)
    assert slowest([Times(0.1, None, None)] * 2) == Times(0.1, None, None)


# --- failures --------------------------------------------------------------------------------------------


def test_a_rank_that_raises_ends_the_others(job: Job, nurseries: Nurseries) -> None:
    with started(replace(job, size="raising"), nurseries) as group:
        group.run()
        group.ready(60)
        began = time.monotonic()
        with pytest.raises(
            Failure, match=r"^rank 1 of 2: the program failed: ValueError: no more data"
        ) as error:
            group.block(0, 4, 60)
        assert time.monotonic() - began < 10
        assert "case.py" in error.value.reason
        assert not group.alive
    assert remains.running(job.scratch) == []


def test_the_rank_that_was_killed_is_to_blame_and_not_those_that_miss_it(
    job: Job, nurseries: Nurseries
) -> None:
    with started(replace(job, size="dying"), nurseries) as group:
        group.run()
        group.ready(60)
        with pytest.raises(Failure, match=r"^rank 1 of 2: the program failed: it was killed by SIGSEGV"):
            group.block(0, 4, 60)


def test_a_rank_that_hangs_is_shown_with_its_line(job: Job, nurseries: Nurseries) -> None:
    with started(replace(job, size="hanging"), nurseries) as group:
        group.run()
        group.ready(60)
        with pytest.raises(Failure, match=r"within 1 s; .*rank 1 at case\.py:\d+, in wait\(\)"):
            group.block(0, 4, 1.0)
        processes = group.groups
    assert not any(alive(number) for number in processes)
    assert remains.running(job.scratch) == []


def alive(group: int) -> bool:
    """Whether a process group has a member that is more than a dead one nobody has asked about."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, number = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(number) == group and state != "Z":
            return True
    return False


# --- results ---------------------------------------------------------------------------------------------


def test_results_are_compared_on_every_rank(job: Job, nurseries: Nurseries, tmp_path: Path) -> None:
    trace = tmp_path / "trace.pt"
    original = examined(job, nurseries, trace)
    assert original["evidence"]["collectives"] >= 1
    assert original["step_seconds"] > 0
    same = examined(job, nurseries, trace, function="step_fixed")
    assert judge.agreement(same["results"], {}, 1e-3).agreement is Agreement.IDENTICAL
    wrong = examined(job, nurseries, trace, function="step_fixed", size="wrong")
    found = judge.agreement(wrong["results"], {}, 1e-3)
    assert found.agreement is Agreement.DIFFERENT
    assert found.where.startswith("rank 1's result of step")


def test_the_examinations_of_ranks_become_one() -> None:
    def found(**changes: Any) -> dict[str, Any]:
        results = {
            "steps": 8,
            "bitwise": True,
            "kinds_agree": True,
            "streams_differ": False,
            "differences": {},
        }
        evidence = {"peak_allocated": 5, "peak_reserved": 9, "syncs": 1.0, "missing": []}
        made = {"step_seconds": 0.1, "startup_seconds": 2.0, "busy": 1.0, "found_by": "calls of step()"}
        return {**made, "evidence": evidence, "results": results} | changes

    other = found(step_seconds=0.2, evidence={"peak_allocated": 7, "peak_reserved": 8, "syncs": 3.0})
    made = together([found(), other])
    assert made["step_seconds"] == 0.2 and made["busy"] == 2.0
    assert made["evidence"] == {"peak_allocated": 7, "peak_reserved": 9, "syncs": 1.0, "missing": []}
    # What the memory is for is that of the rank that needs most.
    made = together([found(), {**other, "evidence": {**other["evidence"], "roles": {"weights": 3}}}])
    assert made["evidence"]["roles"] == {"weights": 3}
    different = {"steps": 8, "bitwise": False, "kinds_agree": True, "streams_differ": False}
    made = together([found(), found(results={**different, "differences": {"loss of step 2": 0.5}})])
    assert made["results"]["bitwise"] is False
    assert made["results"]["differences"] == {"rank 1's loss of step 2": 0.5}


# --- where they run --------------------------------------------------------------------------------------


def test_ranks_have_the_variables_of_torchrun() -> None:
    found = variables(1, 2, 1234)
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    assert [found[name] for name in names] == ["1", "1", "2", "2", "127.0.0.1", "1234"]


@pytest.mark.parametrize(("gpus", "device", "notes"), [(1, "cpu", 1), (2, "cuda", 0), (4, "cuda", 0)])
def test_ranks_without_a_gpu_each_run_on_the_processor_and_it_is_said(
    gpus: int, device: str, notes: int, tmp_path: Path
) -> None:
    bench = Bench(case_of(tmp_path), tmp_path)
    machine, said = bench.place(Machine("cuda", gpu="GPU", gpu_memory=1 << 37, gpus=gpus))
    assert machine.device == device and (machine.gpu is None) == bool(notes)
    assert len(said) == notes
    assert bench.job("original", "time").device == ("cpu" if notes else "auto")


def case_of(folder: Path) -> Any:
    """The case as one of a rule."""
    from torchlint.registry import catalogue

    path = folder / "case.py"
    path.write_text(CASE, encoding="utf-8")
    return read(catalogue()["TL202"], path)


def test_a_case_says_how_many_ranks_it_has(tmp_path: Path) -> None:
    case = case_of(tmp_path)
    assert case.ranks == case.ranks_fixed == 2 and case.has_step_fixed


# --- a whole measurement ---------------------------------------------------------------------------------

DRIVER = """
import sys
from pathlib import Path

from torchlint.commands.measuring import measured
from torchlint.registry import catalogue
from torchlint.verify.cases import read
from torchlint.verify.measure import Settings
from torchlint.verify.plan import Wishes
from torchlint.verify.results import dump
from torchlint.verify.runs import Run

case = read(catalogue()["TL202"], Path(sys.argv[1]))
wishes = Wishes(steps=6, warmup=1, replicates=int(sys.argv[2]))
run = Run("bench", Settings(device="cpu", wishes=wishes), lambda text, share: print(text, flush=True))
results = measured(run, lambda: run.bench([case]))
Path(sys.argv[1]).with_suffix(".json").write_text(dump(results))
"""


@pytest.fixture
def driver(tmp_path: Path, scratch: Path) -> Callable[[int], subprocess.Popen[str]]:
    """Starts a measurement of the case, with as many replicates as it is told."""
    case_of(tmp_path)
    environment = {**os.environ, "TMPDIR": str(scratch)}

    def start(replicates: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", DRIVER, str(tmp_path / "case.py"), str(replicates)]
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)

    return start


def test_a_case_of_two_ranks_is_measured(
    driver: Callable[[int], subprocess.Popen[str]], tmp_path: Path, scratch: Path
) -> None:
    with driver(1) as run:
        run.communicate(timeout=120)
    assert run.returncode == 0
    results = load(tmp_path / "case.json")
    (measurement,) = results.measurements
    assert measurement.ranks == 2 and measurement.device == "cpu" and not measurement.notes
    sameness = {item.variant: item.sameness.agreement for item in measurement.examinations}
    assert set(sameness.values()) <= {Agreement.IDENTICAL, Agreement.CLOSE}
    assert {block.variant for block in measurement.blocks} == {"original", "again", "together"}
    assert " ranks on " in words.where(results.machine, measurement)
    table = measurements.render(results, 160)
    assert "2 × CPU" in table and "collectives" in table
    assert "2 × CPU" in report.render(results)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_measurement_leaves_no_rank_behind(
    number: int, driver: Callable[[int], subprocess.Popen[str]], tmp_path: Path, scratch: Path
) -> None:
    with driver(1000) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if "timing" in line:
                break
        time.sleep(0.5)
        assert remains.running(str(scratch))
        run.send_signal(number)
        run.communicate(timeout=60)
    assert load(tmp_path / "case.json").interrupted
    assert not remains.running(str(scratch))
    assert not list(scratch.iterdir())


# --- scripts ---------------------------------------------------------------------------------------------

SCRIPT = """
import sys, time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 1 and "--fail" in sys.argv:
    raise ValueError("no data for this rank")
model = DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10000):
    if rank == 1:
        late = time.sleep(0.02)
    optimizer.zero_grad()
    model(torch.ones(8, 4) * rank).square().mean().backward()
    optimizer.step()
"""


def script_of(folder: Path, scratch: Path, *arguments: str) -> Script:
    """A script that makes its process group by itself."""
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    workspace = Workspace(folder / "train.py", scratch)
    return Script(workspace, arguments, device="cpu", directory=folder, ranks=2)


def test_a_script_runs_as_torchrun_starts_it_and_its_slowest_rank_decides(
    nurseries: Nurseries, tmp_path: Path, scratch: Path
) -> None:
    script = script_of(tmp_path, scratch)
    found = examined(script.job("original", "examine"), nurseries, tmp_path.parent / "trace.pt")
    assert found["found_by"] == "optimizer steps" and found["results"]["steps"] == 8
    row = SCRIPT[: SCRIPT.index("late =")].count("\n") + 1
    assert row in found["lines"]["train.py"], "it ran in a single rank"
    with started(script.job("original", "time"), nurseries) as group:
        group.run()
        group.ready(60)
        times = group.block(0, 4, 60)
    assert times is not None and times.wall >= 4 * 0.02
    assert len(times.times) == 4 and min(times.times) >= 0.02


def test_a_script_that_fails_in_a_rank_says_in_which(
    nurseries: Nurseries, tmp_path: Path, scratch: Path
) -> None:
    with started(script_of(tmp_path, scratch, "--fail").job("original", "time"), nurseries) as group:
        group.run()
        with pytest.raises(Failure, match=r"^rank 1 of 2: the program failed: ValueError: no data for"):
            group.ready(60)

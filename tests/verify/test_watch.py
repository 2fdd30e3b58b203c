"""`verify --syncs`: the whole program is watched, and its phases are told apart."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import torch

from torchlint import registry
from torchlint.config import Resolver
from torchlint.source import Source
from torchlint.verify.predictions import join
from torchlint.verify.results import Evidence, Line, SyncStatus
from torchlint.verify.worker.boundary import Stop, Stopper
from torchlint.verify.worker.device import Cuda
from torchlint.verify.worker.evidence import PAGEABLE, Waits, _pageable
from torchlint.verify.worker.job import Job
from torchlint.verify.worker.programs import Program
from torchlint.verify.worker.watch import Watch

PROGRAM = """\
import time
import warnings

import torch


def read(value):
    warnings.warn("called a synchronizing CUDA operation")
    time.sleep(0.01)
    return value


def train(model, optimizer):
    for _ in range(5):
        loss = model(torch.ones(2, 3)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        read(loss)


def evaluate(model):
    with torch.no_grad():
        for _ in range(3):
            result = model(torch.ones(2, 3))
            warnings.warn("called a synchronizing CUDA operation")


def never(loss):
    return loss.item()


def main():
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        train(model, optimizer)
        evaluate(model)


main()
"""


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a program under a watch, as if there were a GPU."""
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)

    def run(text: str, seconds: float = 60.0) -> dict[str, Any]:
        (tmp_path / "train.py").write_text(text, encoding="utf-8")
        job = Job(
            "watch",
            "script",
            str(tmp_path / "train.py"),
            str(tmp_path),
            project=str(tmp_path),
            scratch=str(tmp_path),
            watch_seconds=seconds,
        )
        watch = Watch(job, Cuda(), Stopper(), time.perf_counter())
        program = Program(job, "cuda", watch)
        watch.start()
        ended = True
        try:
            program.run()
        except Stop:
            ended = False
        assert program._steps is not None
        program._steps.close()
        return watch.outcome(found_by=program.found_by, ended=ended)

    return run


def test_the_whole_program_is_watched_and_its_phases_are_told_apart(watched: Any) -> None:
    found = watched(PROGRAM)
    assert found["ended"] and found["steps"] == 10
    phases = {item["name"]: item["calls"] for item in found["phases"]}
    assert phases == {"start-up": 0, "training in train()": 10, "inference in evaluate()": 6}
    assert all(item["seconds"] > 0 for item in found["phases"])
    told = {line["row"]: line for line in found["evidence"]["sync_lines"]}
    assert told[8]["phases"] == ["training in train()"] and told[8]["calls"] == 10
    assert told[8]["per_step"] == 1.0
    assert told[26]["phases"] == ["inference in evaluate()"] and told[26]["calls"] == 6
    if sys.version_info >= (3, 12):
        # From where the line begins to wait to the next one.
        assert told[8]["seconds"] < 0.01
    assert 30 not in found["lines"]["train.py"] and 26 in found["lines"]["train.py"]


def test_the_watch_ends_with_its_time_in_a_long_evaluation_too(watched: Any) -> None:
    text = PROGRAM.replace("range(3)", "range(10**9)")
    found = watched(text, seconds=1.0)
    assert not found["ended"] and found["steps"] == 5
    assert [item["name"] for item in found["phases"]][-1] == "inference in evaluate()"


def test_a_program_that_never_trains_only_infers(watched: Any) -> None:
    text = "import torch\nmodel = torch.nn.Linear(3, 1)\nfor _ in range(4):\n    model(torch.ones(3))\n"
    found = watched(text)
    assert [item["name"] for item in found["phases"]] == ["start-up", "inference"]


def test_what_is_compiled_does_not_break_at_the_watch(watched: Any) -> None:
    text = PROGRAM.replace(
        "model = torch.nn.Linear(3, 1)",
        "model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))\n"
        '    model = torch.compile(model, backend="eager", fullgraph=True)',
    )
    found = watched(text)
    assert found["ended"] and found["steps"] == 10
    assert {item["name"]: item["calls"] for item in found["phases"]} == {
        "start-up": 0,
        "training in train()": 10,
        "inference in evaluate()": 6,
    }


def test_copies_from_pageable_memory_count_as_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Copied(torch.Tensor):  # type: ignore[misc]
        """A tensor that says that it is on a GPU."""

        device = torch.device("cuda")

    moved = torch.ones(3).as_subclass(Copied)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *_, **__: moved)
    file = tmp_path / "train.py"
    file.write_text(
        "def step(batch):\n    batch.to('cuda')\n    batch.to('cuda', non_blocking=True)\n"
        "    batch.to('cuda', None, True)\n"
    )
    program: dict[str, Any] = {}
    exec(compile(file.read_text(), file, "exec"), program)
    waits = Waits(tmp_path)
    waits.start()
    program["step"](torch.ones(3))
    waits.stop()
    assert [(line["row"], line["what"]) for line in waits.lines(1)] == [(3, PAGEABLE), (4, PAGEABLE)]
    assert not _pageable(moved, moved)
    assert torch.Tensor.to is not None and not hasattr(torch.Tensor.cuda, "__wrapped__")


def test_predictions_are_confirmed_reached_or_not() -> None:
    text = (
        "import torch\n\nmodel = torch.nn.Linear(3, 1).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n\n\n"
        "def train(loader):\n    for batch in loader:\n        loss = model(batch).sum()\n"
        "        loss.backward()\n        optimizer.step()\n        print(loss.item())\n"
        "        if loss > 3:\n            print(loss.item())\n\n\ntrain([])\n"
    )
    sources = {PurePosixPath("train.py"): Source(Path("train.py"), text)}

    resolver = Resolver(registry.catalogue(), {}, (), isolated=True)
    settings = lambda source: resolver.lint(source.path)  # noqa: E731

    def statuses(ran: dict[str, set[int]] | None) -> dict[int, SyncStatus]:
        waited = Line("train.py", 12, 1.0, calls=3, phases=("training in train()",))
        evidence = Evidence(3, syncs=1.0, sync_lines=(waited,))
        report = join(evidence, ran, sources, settings)
        return {row.row: row.status for row in report.rows}

    found = statuses({"train.py": {8, 9, 10, 11, 12, 13}})
    assert found[12] is SyncStatus.CONFIRMED
    assert found[13] is SyncStatus.REACHED
    assert statuses({"train.py": {8, 9, 10, 11, 12}})[13] is SyncStatus.NOT_REACHED
    assert statuses(None)[13] is SyncStatus.NOT_SEEN


def test_warnings_of_others_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    waits = Waits(tmp_path)
    waits.start()
    warnings.warn("something else", stacklevel=1)
    waits.stop()
    assert not waits.lines(1)

"""The timeline of one step before and after: what is recorded, and what is written of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from torchlint.config import Resolver
from torchlint.registry import catalogue
from torchlint.source import Source
from torchlint.verify.processes import Nurseries, Process
from torchlint.verify.ranks import Group
from torchlint.verify.results import ORIGINAL
from torchlint.verify.subjects import Script
from torchlint.verify.timeline import AFTER, BEFORE, Recording, trace
from torchlint.verify.worker.job import ANCHOR
from torchlint.verify.workspace import Workspace

TRAIN = """
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = model(torch.ones(2, 3, 8, 8)).square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
"""
ZEROED = TRAIN.replace("set_to_none=False", "set_to_none=True")


def settings_for(source: Source) -> Any:
    return Resolver(catalogue(), {}, (), isolated=True).lint(source.path)


def sources(text: str) -> dict[PurePosixPath, Source]:
    return {PurePosixPath("train.py"): Source(Path("train.py"), text)}


def event(name: str, begin: float, end: float, **fields: Any) -> dict[str, Any]:
    """An event as torch's profiler exports it; without ``pid`` it is the host's."""
    of_host = {"ph": "X", "cat": "cpu_op", "pid": 4711, "tid": 4711}
    return {**of_host, "name": name, "ts": begin, "dur": end - begin, **fields}


def group(recording: Recording, text: str) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The events with a place in time of a single recording, and the names of the tracks."""
    told = json.loads(trace([recording], {recording.name: sources(text)}, settings_for))["traceEvents"]
    names = {item["tid"]: item["args"]["name"] for item in told if item["name"] == "thread_name"}
    return [item for item in told if item["ph"] != "M"], names


@pytest.fixture
def record(tmp_path: Path, nurseries: Nurseries) -> Callable[..., tuple[dict[str, Any], Path]]:
    """Runs a script to record one of its steps: what it says, and the file that it writes."""

    def run(text: str, lead: int) -> tuple[dict[str, Any], Path]:
        script = tmp_path / "train.py"
        script.write_text(text, encoding="utf-8")
        (tmp_path / "scratch").mkdir()
        job = Script(Workspace(script, tmp_path / "scratch"), device="cpu").job(ORIGINAL, "record")
        written = tmp_path / "timeline"
        with Process(job, tmp_path / "log.txt", nursery=nurseries.get(0)) as process:
            process.run(timeline=str(written), lead_steps=lead)
            return process.recorded(300), written

    return run


def test_a_step_is_recorded_with_the_lines_that_ran(record: Any) -> None:
    said, written = record(TRAIN, 2)
    assert said == {"step": 3, "missing": ""}
    events, tracks = group(Recording(BEFORE, 3, found=json.loads(written.read_text())), TRAIN)
    (step,) = [item for item in events if item["name"] == "step 3"]
    assert step["ts"] == 0
    (silent,) = step["args"].values()
    assert [text.partition(":")[0] for text in silent] == ["TL401 train.py"]
    (mark,) = [item for item in events if item["name"] == "TL302 train.py:9"]
    assert tracks[mark["tid"]] == "torchlint findings"
    # What zeroes the gradients ran while the line did.
    zeroing = [item for item in events if item["name"] == "Optimizer.zero_grad#SGD.zero_grad"]
    assert [tracks[item["tid"]] for item in zeroing] == ["host"]
    assert mark["ts"] - 1 <= zeroing[0]["ts"]
    assert zeroing[0]["ts"] + zeroing[0]["dur"] <= mark["ts"] + mark["dur"] + 1
    assert mark["ts"] + mark["dur"] <= step["dur"]
    assert any(item["name"] == "aten::convolution" for item in events)
    assert all(item["ts"] >= 0 and item["ts"] + item.get("dur", 0) <= step["dur"] + 0.01 for item in events)


def test_of_several_ranks_the_first_is_recorded(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN, encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    made = Script(Workspace(script, tmp_path / "scratch"), device="cpu", ranks=2)
    with Group(made.job(ORIGINAL, "record"), tmp_path / "log.txt") as ranks:
        ranks.run(timeline=str(tmp_path / "timeline"), lead_steps=1)
        assert ranks.recorded(300) == {"step": 2, "missing": ""}
    assert json.loads((tmp_path / "timeline").read_text())["spans"]


@pytest.mark.parametrize(
    ("text", "lead", "missing"),
    [
        (TRAIN, 10, "the program ended after 5 steps, before one could be recorded"),
        (
            TRAIN.replace("    loss.b", "    with torch.profiler.profile(): torch.ones(1)\n    loss.b"),
            1,
            "the program uses a profiler itself",
        ),
        (
            "import torch.profiler\ntorch.profiler.profile = None\ndel torch.profiler.profile\n" + TRAIN,
            1,
            "torch.profiler is not available: cannot import name 'profile'",
        ),
    ],
    ids=["ended", "own profiler", "no profiler"],
)
def test_what_cannot_be_recorded_is_said(text: str, lead: int, missing: str, record: Any) -> None:
    said, written = record(text, lead)
    assert said["missing"].startswith(missing)
    assert not written.exists()


def test_launches_kernels_and_copies_have_tracks_of_their_own() -> None:
    events = [
        event("aten::old", 90.0, 99.0),
        event(ANCHOR, 100.0, 100.5),
        event("cudaLaunchKernel", 110.0, 112.0, cat="cuda_runtime"),
        event("ac2g", 110.0, 0, ph="s", cat="ac2g", id=7),
        event("ac2g", 150.0, 0, ph="f", cat="ac2g", id=7, pid=0, tid=13),
        event("gemm", 150.0, 400.0, cat="kernel", pid=0, tid=13),
        event("Memcpy HtoD", 160.0, 170.0, cat="gpu_memcpy", pid=0, tid=14),
        event("aten::mm_backward", 180.0, 190.0, tid=4800),
        event("Optimizer.step", 290.0, 350.0),
        event("cudaDeviceSynchronize", 301.0, 400.0, cat="cuda_runtime"),
        event("PyTorch Profiler (0)", 100.0, 400.0, pid="Spans", tid="PyTorch Profiler"),
    ]
    found = {"events": events, "spans": [["train.py", 9, 120.0, 130.0]], "begin": 100.0, "end": 300.0}
    told, tracks = group(Recording(AFTER, 4, found=found), ZEROED)
    places = {item["name"]: (tracks[item["tid"]], item["ts"], item.get("dur")) for item in told}
    assert "aten::old" not in places and "cudaDeviceSynchronize" not in places and ANCHOR not in places
    assert places["step 4"] == ("host", 0, 200)
    assert places["cudaLaunchKernel"] == ("host", 10, 2)
    assert places["aten::mm_backward"][0] == "host thread 4800"
    assert places["Optimizer.step"] == ("host", 190, 10)
    # The device is still at work when the host is done with the step.
    assert places["gemm"] == ("GPU 0 stream 13", 50, 250)
    assert places["Memcpy HtoD"][0] == "GPU 0 stream 14"
    arrow = [item for item in told if item["name"] == "ac2g"]
    assert [item["id"] for item in arrow] == ["after 7", "after 7"]
    assert [tracks[item["tid"]] for item in arrow] == ["host", "GPU 0 stream 13"]
    assert not [name for name in places if name.startswith("TL302")], "the fix is made"


def test_both_groups_begin_at_0_and_share_no_track() -> None:
    found = {"events": [event(ANCHOR, 5.0, 5.0), event("aten::mm", 7.0, 8.0)], "begin": 5.0, "end": 9.0}
    spans = [["train.py", 9, 6.0, 6.5], ["train.py", 9, 6.5, 7.0], ["train.py", 9, 8.0, 8.5]]
    recordings = [Recording(name, 1, found={**found, "spans": spans}) for name in (BEFORE, AFTER)]
    texts = {BEFORE: sources(TRAIN), AFTER: sources(ZEROED)}
    told = json.loads(trace(recordings, texts, settings_for))["traceEvents"]
    groups = {item["pid"]: item["args"]["name"] for item in told if item["name"] == "process_name"}
    assert list(groups.values()) == ["before", "after"]
    tracks = [{item["tid"] for item in told if item["pid"] == pid and item["tid"]} for pid in groups]
    assert tracks[0].isdisjoint(tracks[1])
    marks = [item for item in told if item["name"] == "TL302 train.py:9"]
    assert [(groups[item["pid"]], item["ts"], item["dur"]) for item in marks] == [
        ("before", 1, 1),
        ("before", 3, 0.5),
    ]
    lacking = [recordings[0], Recording(AFTER, missing="there are no fixes")]
    told = json.loads(trace(lacking, texts, settings_for))["traceEvents"]
    assert {item["pid"] for item in told} == {1}

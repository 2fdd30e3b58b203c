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
from torchlint.verify.results import ORIGINAL, TOGETHER, Slice, Timeline, Total, TrackKind
from torchlint.verify.subjects import Script
from torchlint.verify.timeline import AFTER, BEFORE, Recording, brief, steadiest, trace
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
    found = {"events": events, "spans": [["train.py", 9, 120.0, 130.0]], "steps": [[100.0, 300.0]]}
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
    found = {"events": [event(ANCHOR, 5.0, 5.0), event("aten::mm", 7.0, 8.0)], "steps": [[5.0, 9.0]]}
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


def tracks(*events: dict[str, Any], spans: Any = (), changed: Any = frozenset()) -> dict[Any, list[Any]]:
    """What the page gets of a step of 10 ms, by the kinds and details of its tracks."""
    found = {"events": [event(ANCHOR, 0.0, 0.0), *events], "spans": spans, "steps": [[0.0, 10_000.0]]}
    told = brief(Recording(BEFORE, 3, found=found), ORIGINAL, sources(TRAIN), changed)
    assert (told.variant, told.step, told.seconds, told.missing) == (ORIGINAL, 3, 0.01, "")
    return {
        (track.kind, track.detail): [
            (item.name, round(1e6 * item.begin), round(1e6 * item.end), item.count) for item in track.slices
        ]
        for track in told.tracks
    }


def test_the_page_shows_each_thing_on_the_track_of_its_kind() -> None:
    told = tracks(
        event("autograd::engine::evaluate_function: MmBackward0", 200.0, 900.0, tid=4800),
        event("aten::linear", 0.0, 190.0),
        event("aten::mm", 50.0, 150.0),
        event("Optimizer.step#SGD.step", 0.0, 9000.0, cat="user_annotation"),
        event("cudaLaunchKernel", 60.0, 100.0, cat="cuda_runtime"),
        event("cuLaunchKernel", 300.0, 400.0, cat="cuda_driver"),
        event("cudaStreamSynchronize", 1000.0, 9000.0, cat="cuda_runtime"),
        event("cudaLaunchKernel", 12_000.0, 12_040.0, cat="cuda_runtime"),
        event("void gemm<float>(int)", 500.0, 11_000.0, cat="kernel", pid=0, tid=7),
        event("ncclAllReduce", 600.0, 700.0, cat="kernel", pid=1, tid=7),
        event("Memcpy HtoD", 100.0, 200.0, cat="gpu_memcpy", pid=0, tid=7),
        event("Memset", 9000.0, 9100.0, cat="gpu_memset", pid=0, tid=7),
        event("forward", 100.0, 9000.0, cat="gpu_user_annotation", pid=0, tid=7),
    )
    assert told == {
        (TrackKind.OPERATORS, ""): [("aten::linear", 0, 190, 1)],
        (TrackKind.OPERATORS, "other threads"): [("MmBackward0", 200, 900, 1)],
        (TrackKind.LAUNCHES, ""): [("cudaLaunchKernel", 60, 100, 1), ("cuLaunchKernel", 300, 400, 1)],
        (TrackKind.WAITS, ""): [("cudaStreamSynchronize", 1000, 9000, 1)],
        (TrackKind.KERNELS, "stream 7"): [("gemm<float>(int)", 500, 11_000, 1)],
        (TrackKind.KERNELS, "GPU 1, stream 7"): [("ncclAllReduce", 600, 700, 1)],
        (TrackKind.COPIES, ""): [("Memcpy HtoD", 100, 200, 1), ("Memset", 9000, 9100, 1)],
    }


def test_a_line_that_is_all_of_the_step_makes_way_for_those_that_it_calls() -> None:
    whole = ["train.py", 11, 0.0, 9900.0]
    inside = [["train.py", 8, 100.0, 4000.0], ["train.py", 10, 4000.0, 9000.0]]
    assert [line[0][:10] for line in tracks(spans=[whole])[TrackKind.LINES, ""]] == ["train.py:1"]
    (forward, backward) = tracks(spans=[whole, *inside])[TrackKind.LINES, ""]
    assert (forward[1:3], backward[1:3]) == ((100, 4000), (4000, 9000))
    few = tracks(spans=[whole, inside[0]])[TrackKind.LINES, ""]
    assert [line[1:3] for line in few] == [(0, 9900)], "most of it is its own"


def test_of_the_recorded_steps_the_least_disturbed_is_shown() -> None:
    kernels = [
        event(f"kernel {number}", 100.0 * number + 10, 100.0 * number + 110, cat="kernel", pid=0, tid=7)
        for number in range(3)
    ]
    spans = [["train.py", 9, 95.0, 120.0], ["train.py", 8, 120.0, 150.0], ["train.py", 9, 190.0, 260.0]]
    events = [event(ANCHOR, 1.0, 1.0), *kernels]
    before = {"events": events, "spans": spans, "steps": [[5.0, 95.0], [100.0, 160.0], [200.0, 255.0]]}
    after = {**before, "steps": [[5.0, 50.0], [100.0, 140.0], [200.0, 290.0]]}
    recordings = [Recording(BEFORE, 3, found=before), Recording(AFTER, 3, found=after)]
    one, other = steadiest(recordings)
    assert (one.step, one.chosen, other.step) == (4, 1, 4)
    told = brief(one, ORIGINAL, sources(TRAIN))
    assert told.step == 4 and told.seconds == 60e-6
    lines, kernel = told.tracks
    assert [(round(1e6 * item.begin), round(1e6 * item.end)) for item in lines.slices] == [(0, 20), (20, 50)]
    assert [(item.name, round(1e6 * item.begin)) for item in kernel.slices] == [("kernel 1", 10)]
    (alone, lacking) = steadiest([recordings[0], Recording(AFTER, missing="there are no fixes")])
    assert alone.step == 5 and lacking == Recording(AFTER, missing="there are no fixes")
    nothing = [Recording(BEFORE, missing="the time was up"), lacking]
    assert steadiest(nothing) == nothing


def test_lines_are_those_of_the_step_and_those_that_fixes_change() -> None:
    spans = [["net.py", 3, 200.0, 300.0], ["train.py", 8, 100.0, 900.0], ["train.py", 9, 900.0, 1000.0]]
    told = tracks(spans=spans, changed={("net.py", 3)})
    assert told == {
        (TrackKind.LINES, ""): [
            ("train.py:8: loss = model(torch.ones(2, 3, 8, 8)).square().mean()", 100, 900, 1),
            ("train.py:9: optimizer.zero_grad(set_to_none=False)", 900, 1000, 1),
        ],
        (TrackKind.CHANGED, ""): [("net.py:3: ", 200, 300, 1)],
    }


def test_what_is_too_short_for_a_figure_is_put_together() -> None:
    # Of a step of 9 ms, 30 µs are a place: kernels of 10 µs are put together to at most four of them.
    kernels = [
        event(f"kernel {number}", 20.0 * number, 20.0 * number + 10, cat="kernel", pid=0, tid=7)
        for number in range(100)
    ]
    long = event("long", 2000.0, 9000.0, cat="kernel", pid=0, tid=7)
    found = {"events": [event(ANCHOR, 0.0, 0.0), *kernels, long], "spans": [], "steps": [[0.0, 9000.0]]}
    (track,) = brief(Recording(AFTER, 3, found=found), TOGETHER, {}).tracks
    assert sum(item.count for item in track.slices) == 101
    assert track.slices[-1] == Slice("long", 0.002, 0.009, 0.007)
    assert 10 < len(track.slices) < 25
    assert track.slices[0].busy == pytest.approx(10e-6 * track.slices[0].count)
    assert track.busy == pytest.approx(0.008)
    assert track.longest[0] == Total("long", 0.007, 1) and len(track.longest) == 5


def test_a_step_that_was_not_recorded_has_no_tracks() -> None:
    told = brief(Recording(AFTER, missing="there are no fixes"), TOGETHER, {})
    assert told == Timeline(TOGETHER, missing="there are no fixes")

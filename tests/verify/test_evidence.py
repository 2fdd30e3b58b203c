"""What is counted in runs that are never timed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from torchlint.verify.worker.evidence import Waits, Work, recorded


def begun() -> profile:
    made = profile(activities=[ProfilerActivity.CPU])
    made.__enter__()
    return made


def test_a_profile_tells_what_ran_meanwhile() -> None:
    running = begun()
    torch.ones(3).sum()
    events = recorded(running)
    assert events is not None
    assert any(event.name == "aten::sum" for event in events)


def test_a_program_that_profiles_itself_is_no_failure() -> None:
    running = begun()
    with profile(record_shapes=True):
        torch.ones(3).sum()
    events = recorded(running)
    assert not events


class Event:
    """One event as the profiler has recorded it."""

    def __init__(self, device: Any, nanoseconds: int, *, annotation: bool = False) -> None:
        self.device_type = lambda: device
        self.duration_ns = lambda: nanoseconds
        self.is_user_annotation = lambda: annotation


class Recorded:
    """A profile that has come to its end with some events, or fails to."""

    def __init__(self, *events: Event, fails: bool = False) -> None:
        self.profiler = SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: events))
        self._fails = fails

    def __exit__(self, *_: object) -> None:
        if self._fails:
            raise RuntimeError("another profiler has ended it")


def test_the_work_of_a_device_is_the_time_of_what_ran_on_it() -> None:
    host, device = torch.autograd.DeviceType.CPU, torch.autograd.DeviceType.CUDA
    work = Work()
    work._profile = Recorded(
        Event(host, 7_000),
        Event(device, 2_000_000),
        Event(device, 500_000),
        Event(device, 9, annotation=True),
    )
    assert work.seconds() == pytest.approx(0.0025)
    # What is read of an event is there in this torch.
    made = begun()
    torch.ones(3).sum()
    made.__exit__(None, None, None)
    event = made.profiler.kineto_results.events()[0]
    assert event.duration_ns() >= 0 and event.device_type() == host and event.is_user_annotation() is False


def test_the_work_of_a_program_that_profiles_itself_is_unknown() -> None:
    work = Work()
    work._profile = Recorded(fails=True)
    assert work.seconds() is None


def test_waits_that_a_program_asks_for_are_counted_at_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: run.append("device"))
    monkeypatch.setattr(torch.cuda.Stream, "synchronize", lambda stream: run.append("stream"))
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    file = tmp_path / "train.py"
    file.write_text("def step(torch):\n    torch.cuda.synchronize()\n    Stream.synchronize(None)\n")
    program: dict[str, Any] = {"Stream": torch.cuda.Stream}
    exec(compile(file.read_text(), file, "exec"), program)
    harness: dict[str, Any] = {"__name__": "torchlint.verify.worker.device"}
    exec("def wait(torch):\n    torch.cuda.synchronize()\n", harness)
    waits = Waits(tmp_path)
    waits.start()
    for _ in range(2):
        program["step"](torch)
        harness["wait"](torch)
    waits.stop()
    program["step"](torch)
    assert waits.lines(2) == [
        {"file": "train.py", "row": 2, "per_step": 1.0, "what": ""},
        {"file": "train.py", "row": 3, "per_step": 1.0, "what": ""},
    ]
    assert run == ["device", "stream", "device"] * 2 + ["device", "stream"]

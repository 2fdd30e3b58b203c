"""What is counted in runs that are never timed."""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from torchlint.verify.worker.evidence import recorded


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

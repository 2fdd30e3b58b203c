"""What the memory of a step is for, told apart by role."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import optimizer as optimizers

from torchlint.render.measurements import render
from torchlint.verify import report, words
from torchlint.verify.report import figures
from torchlint.verify.results import (
    ORIGINAL,
    TOGETHER,
    Allocation,
    Comparison,
    Evidence,
    Examination,
    Machine,
    Measurement,
    Results,
    Roles,
    Variant,
    Verdict,
    dump,
    load,
)
from torchlint.verify.worker import allocations, examine, roles
from torchlint.verify.worker.device import MOST_ALLOCATIONS, Cuda, Device

MIB = 1 << 20


class Counting(Device):
    """A device whose peak rises when the test says so."""

    def __init__(self) -> None:
        self.most = 0
        self.kept: list[dict[str, Any]] = []

    def history(self) -> list[dict[str, Any]]:
        return self.kept

    def peak(self) -> tuple[int, int]:
        return self.most, self.most


@pytest.fixture
def device() -> Counting:
    return Counting()


def program() -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model of 64 × 64 and 64 numbers, with a running mean and a tied weight."""
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.BatchNorm1d(64, affine=False))
    model[1].weight, model[1].bias = model[0].weight, model[0].bias
    return model, torch.optim.Adam(model.parameters())


def step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    late: bool = False,
    in_place: bool = False,
    before: Callable[[], None] = lambda: None,
    during: Callable[[], None] = lambda: None,
) -> None:
    if not late:
        optimizer.zero_grad(set_to_none=not in_place)
    loss = model(torch.ones(8, 64)).square().sum()
    before()
    if late:
        optimizer.zero_grad(set_to_none=not in_place)
    loss.register_hook(lambda gradient: during())
    loss.backward()
    optimizer.step()


WEIGHTS = 4 * (64 * 64 + 64)


def test_tensors_are_told_apart_and_counted_once() -> None:
    model, optimizer = program()
    step(model, optimizer)
    found = roles.Roles(Device(), [model, model[0]], [optimizer]).now()
    assert found["weights"] == found["gradients"] == WEIGHTS
    # Two moments for each number, and the count of the steps.
    assert found["states"] == 2 * WEIGHTS + 2 * 4
    assert found["buffers"] == 2 * 64 * 4 + 8
    # Only the weight is large enough; a scale for each block of 256.
    assert found["spared_8bit"] == 2 * (3 * 64 * 64 - 4 * 16)
    # The first moments of all, and the second ones of the weight but for its rows and columns.
    assert found["spared_factored"] == 2 * WEIGHTS - 4 * (64 + 64) - 4 * 64


def test_gradients_on_another_device_are_not_counted() -> None:
    model, optimizer = program()
    step(model, optimizer)
    elsewhere = Device()
    elsewhere.kind = "cuda"
    assert not any(roles.Roles(elsewhere, [model], [optimizer]).now().values())


@pytest.mark.parametrize(
    ("late", "in_place", "where", "gradients", "droppable"),
    [
        (False, False, "before", 0, 0),
        (False, False, "during", 0, 0),
        (True, False, "before", WEIGHTS, WEIGHTS),
        (False, True, "before", WEIGHTS, WEIGHTS),
        (False, True, "during", WEIGHTS, WEIGHTS),
    ],
)
def test_gradients_count_if_they_were_there_at_the_peak(
    late: bool, in_place: bool, where: str, gradients: int, droppable: int, device: Counting
) -> None:
    model, optimizer = program()
    step(model, optimizer)
    watched = roles.Roles(device, [model], [optimizer])
    backward = torch.autograd.backward
    watched.start()
    for most in (10, 20):

        def rises(most: int = most) -> None:
            device.most = most

        if where == "before":
            step(model, optimizer, late=late, in_place=in_place, before=rises)
        else:
            step(model, optimizer, late=late, in_place=in_place, during=rises)
    found = watched.stop(2)
    assert found["when"] == {"before": "forward pass", "during": "backward pass"}[where]
    assert found["differentiates"]
    assert (found["gradients"], found["droppable"]) == (gradients, droppable)
    assert torch.autograd.backward is backward and Roles(**found).weights == WEIGHTS


def test_in_the_step_of_the_optimizer_gradients_are_needed(device: Counting) -> None:
    model, optimizer = program()
    step(model, optimizer)
    watched = roles.Roles(device, [model], [optimizer])
    watched.start()

    def rises(*_: object) -> None:
        device.most = 10

    optimizer.register_step_pre_hook(rises)
    step(model, optimizer)
    found = watched.stop(1)
    assert (found["when"], found["gradients"], found["droppable"]) == ("optimizer step", WEIGHTS, 0)
    assert not found["differentiates"]


def test_it_starts_and_stops_where_a_step_ends(device: Counting) -> None:
    model, optimizer = program()
    step(model, optimizer)
    watched = roles.Roles(device, [model], [optimizer])
    found: list[dict[str, Any]] = []

    def boundary(*_: object) -> None:
        # As the steps of a program are found: by torch's own list of hooks, which must not change meanwhile.
        if not found:
            found.append({})
            watched.start()
        else:
            found.append(watched.stop(1))

    handle = optimizers.register_optimizer_step_post_hook(boundary)
    step(model, optimizer)
    step(model, optimizer, late=True, before=lambda: setattr(device, "most", 10))
    handle.remove()
    assert (found[1]["when"], found[1]["gradients"]) == ("forward pass", WEIGHTS)
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks


def test_accumulated_gradients_cannot_be_dropped(device: Counting) -> None:
    model, optimizer = program()
    step(model, optimizer)
    watched = roles.Roles(device, [model], [optimizer])
    watched.start()
    optimizer.zero_grad()
    for most in (10, 20):
        loss = model(torch.ones(8, 64)).sum()
        device.most = most
        loss.backward()
    optimizer.step()
    found = watched.stop(1)
    assert found["gradients"] == WEIGHTS and "droppable" not in found


# --- what is said of it ----------------------------------------------------------------------------------


def measured(before: Evidence, after: Evidence | None = None) -> Measurement:
    examinations = [Examination(ORIGINAL, evidence=before)]
    if after is not None:
        examinations.append(Examination(TOGETHER, evidence=after))
    variants = (Variant(ORIGINAL), Variant(TOGETHER, ("TL302", "TL402")))
    return Measurement("train.py", variants=variants, examinations=tuple(examinations))


def told_of(found: Measurement) -> Results:
    return Results("verify", "0", "2026-01-01T00:00:00+00:00", 1.0, Machine("cuda"), (found,))


SEEN = Evidence(
    peak_allocated=1000 * MIB,
    peak_reserved=1200 * MIB,
    roles=Roles(
        weights=100 * MIB,
        gradients=100 * MIB,
        states=200 * MIB,
        when="backward pass",
        differentiates=True,
        droppable=100 * MIB,
        spared_8bit=149 * MIB,
        spared_factored=99 * MIB,
    ),
)
UNSEEN = Evidence(roles=Roles(weights=MIB, gradients=MIB, states=2 * MIB, spared_8bit=MIB))


def test_the_rest_of_the_peak_is_activations_and_beyond_it_the_cache() -> None:
    told = words.memory_told(measured(SEEN), ORIGINAL)
    assert told == (
        "memory at the peak of a step (backward pass): weights 100 MiB, gradients 100 MiB, optimizer state "
        "200 MiB, activations and workspace 600 MiB, cache and fragmentation 200 MiB."
    )


def test_without_a_peak_the_rest_is_said_not_to_be_seen() -> None:
    told = words.memory_told(measured(UNSEEN), ORIGINAL)
    assert told.startswith("memory at the end of a step: weights 1.00 MiB, gradients 1.00 MiB,")
    assert told.endswith("activations are not seen here.")
    assert words.memory_advice(measured(UNSEEN)) == []
    assert words.memory_told(measured(Evidence()), ORIGINAL) == ""


def test_advice_has_the_bytes_and_only_considerable_ones() -> None:
    dropped, states, activations, half, sharded = words.memory_advice(measured(SEEN))
    assert dropped.startswith("`zero_grad(set_to_none=True)`") and dropped.endswith(
        "100 MiB (10 % of the peak)"
    )
    assert states == "the optimizer's state in 8 bits would take about 149 MiB less (15 % of the peak)"
    assert activations == "checkpointing of activations could spare 600 MiB at most (60 % of the peak)"
    assert half.startswith("half the batch") and half.endswith("300 MiB at most (30 % of the peak)")
    assert sharded == (
        "sharding weights, gradients and states over 2 GPUs (FSDP) could take 200 MiB less on each "
        "(20 % of the peak)"
    )
    assert SEEN.roles is not None
    inferring = replace(SEEN, roles=Roles(weights=100 * MIB, when="forward pass"))
    assert words.memory_advice(measured(inferring)) == []


def test_activations_are_told_apart_where_the_allocator_says_what_became_of_them() -> None:
    assert SEEN.roles is not None
    found = measured(replace(SEEN, roles=replace(SEEN.roles, activations=400 * MIB, full_precision=True)))
    assert "activations 400 MiB, workspace and inputs 200 MiB, cache" in words.memory_told(found, ORIGINAL)
    told = words.memory_advice(found)
    assert "checkpointing of activations could spare 400 MiB at most (40 % of the peak)" in told
    assert (
        "activations in bfloat16, with autocast, could take 200 MiB less at most (20 % of the peak)" in told
    )
    # Half of a batch needs half of the inputs and of the workspace, too.
    assert any(text.startswith("half the batch") and "300 MiB" in text for text in told)
    drawing = figures.memory(found, [ORIGINAL], "m1")
    assert drawing is not None and ">workspace and inputs<" in drawing.svg and words.REST not in drawing.svg
    most = measured(replace(SEEN, roles=replace(SEEN.roles, activations=5000 * MIB)))
    assert "activations 600 MiB, workspace and inputs 0" not in words.memory_told(most, ORIGINAL)
    assert "activations 600 MiB, cache" in words.memory_told(most, ORIGINAL)


def test_advice_on_sharding_is_for_programs_that_train_and_do_not_shard() -> None:
    assert SEEN.roles is not None

    def told(ranks: int, **changed: Any) -> str:
        seen = replace(SEEN, roles=replace(SEEN.roles or Roles(), **changed))
        advice = words.memory_advice(replace(measured(seen), ranks=ranks))
        return "".join(text for text in advice if "sharding" in text)

    assert "over 4 GPUs (FSDP) could take 300 MiB less" in told(4)
    assert told(4, sharded=True) == ""
    assert told(1, differentiates=False, states=0, weights=800 * MIB) == ""


@pytest.mark.parametrize(
    ("peak", "became"),
    [(910 * MIB, "makes the peak 90.0 MiB lower"), (1000 * MIB, "does not make the peak lower"), (None, "")],
)
def test_advice_that_a_fix_follows_says_what_that_did(peak: int | None, became: str) -> None:
    found = measured(SEEN)
    examined = Examination("TL302", evidence=Evidence(peak_allocated=peak))
    tried = replace(
        found,
        variants=(*found.variants, Variant("TL302", ("TL302",))),
        examinations=(*found.examinations, examined),
    )
    told = words.memory_advice(tried)[0]
    assert told.endswith(f"(10 % of the peak); the fix of TL302, tried here, {became}" if became else "peak)")
    assert "tried" not in "".join(words.memory_advice(tried)[1:])


def test_the_terminal_tells_of_both_programs_where_they_differ() -> None:
    assert SEEN.roles is not None
    after = replace(SEEN, peak_allocated=900 * MIB, roles=replace(SEEN.roles, gradients=0))
    found = replace(
        measured(SEEN, after), comparisons=(Comparison(TOGETHER, Verdict.UNMEASURED, "no time was left"),)
    )
    results = told_of(found)
    text = " ".join(render(results, 120).split())
    assert "Memory at the peak of a step (backward pass): weights 100 MiB, gradients 100 MiB" in text
    assert "All fixes: memory at the peak of a step (backward pass): weights 100 MiB, optimizer" in text
    assert "Checkpointing of activations could spare 600 MiB at most" in text
    assert "Checkpointing" not in render(replace(results, command="bench"), 120)


def test_the_figure_stacks_the_parts() -> None:
    drawing = figures.memory(measured(SEEN, Evidence(peak_allocated=MIB)), [ORIGINAL, TOGETHER], "m1")
    assert drawing is not None
    for name in ("weights", "gradients", "optimizer state", words.REST, words.CACHE):
        assert f">{name}<" in drawing.svg
    assert "buffers" not in drawing.svg
    assert "told apart by what it is for" in drawing.caption and "weights 100 MiB" in drawing.caption


def test_tensors_that_do_not_answer_cost_the_program_nothing() -> None:
    examination = object.__new__(examine.Examination)
    examination._evidence = {"missing": []}

    def ask() -> None:
        raise TypeError("no storage")

    assert examination._of_roles(ask) is None
    assert examination._evidence["missing"] == ["memory by role: TypeError: no storage"]
    assert examination._of_roles(lambda: {"weights": 8}) == {"weights": 8}


# --- the lines that allocated it -------------------------------------------------------------------------


def allocated(address: int, mib: int, *frames: tuple[str, int]) -> dict[str, Any]:
    """An event of the allocator's history, as torch tells it: the innermost frame first."""
    told = [{"filename": file, "line": line, "name": "forward"} for file, line in frames]
    return {"action": "alloc", "addr": address, "size": mib * MIB - 5, "stream": 0, "frames": told}


def freed(address: int, mib: int) -> list[dict[str, Any]]:
    event = {"addr": address, "size": mib * MIB - 5, "stream": 0, "frames": []}
    return [{**event, "action": "free_requested"}, {**event, "action": "free_completed"}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "net.py").write_text("import torch\n    hidden = self.layer(x)\n    return hidden.relu()\n")
    return tmp_path


def history(project: Path) -> list[dict[str, Any]]:
    """Of a step whose peak is in the backward pass; the block at 1 is given out a second time behind it."""
    net, library = str(project / "net.py"), "/site-packages/torch/nn/modules/linear.py"
    return [
        {"action": "segment_alloc", "addr": 0, "size": 512 * MIB, "stream": 0},
        *freed(99, 50),  # from the step before
        allocated(1, 100, (library, 134), (net, 2), (str(project / "train.py"), 7)),
        allocated(2, 100, (library, 134), (net, 2), (str(project / "train.py"), 7)),
        allocated(3, 300, (net, 3)),
        allocated(4, 40, (library, 9)),
        *freed(4, 40),
        allocated(5, 30),
        *freed(1, 100),
        allocated(1, 50, (net, 3)),
    ]


def test_what_is_alive_at_the_peak_is_told_by_the_line_of_the_program(project: Path) -> None:
    assert allocations.at_peak(history(project), project) == [
        {"file": "net.py", "row": 3, "size": 300 * MIB, "count": 1, "text": "return hidden.relu()"},
        {"file": "net.py", "row": 2, "size": 200 * MIB, "count": 2, "text": "hidden = self.layer(x)"},
        {"file": "", "row": 0, "size": 40 * MIB, "count": 1, "text": ""},
    ]
    assert allocations.at_peak([], project) == []
    assert allocations.at_peak(freed(1, 5), project) == [], "the peak was before"


def test_of_many_lines_the_largest_are_told_and_what_has_none(project: Path) -> None:
    net = str(project / "net.py")
    many = [allocated(row, row, (net, row)) for row in range(1, 30)]
    found = allocations.at_peak([*many, allocated(99, 1)], project)
    assert [line["row"] for line in found] == [*range(29, 19, -1), 0]


def test_lines_come_with_the_roles(device: Counting, project: Path) -> None:
    model, optimizer = program()
    step(model, optimizer)
    device.kept = history(project)
    watched = roles.Roles(device, [model], [optimizer], project)
    watched.start()
    step(model, optimizer, before=lambda: setattr(device, "most", 10))
    lines = watched.stop(1)["lines"]
    assert [(line["file"], line["row"]) for line in lines] == [("net.py", 3), ("net.py", 2), ("", 0)]


def test_activations_are_what_a_backward_pass_releases() -> None:
    events = [
        allocated(1, 10),  # an input, which outlives the step
        allocated(2, 20),
        allocated(3, 30),
        *freed(3, 30),  # a temporary of the forward pass
        allocated(3, 40),
        allocated(4, 50),  # the workspace of the backward pass, at its peak
        *freed(4, 50),
        *freed(3, 40),
        allocated(5, 5),
        *freed(2, 20),
        *freed(1, 10),
    ]
    # Allocations and releases; "free_completed" is none.
    before, end = 5, 10
    assert allocations.activations(events, [(before, end)]) == (20 + 40) * MIB
    assert allocations.activations(events, [(before, 8), (8, end)]) == (20 + 40) * MIB
    assert allocations.activations(events, []) == 0
    assert allocations.activations([], [(before, end)]) == 0


def test_what_was_released_before_the_peak_is_no_activation_of_it() -> None:
    events = [
        allocated(1, 10),
        *freed(1, 10),
        allocated(1, 20),
        allocated(2, 70),
        *freed(2, 70),
        *freed(1, 20),
    ]
    assert allocations.activations(events, [(3, 6)]) == 20 * MIB


def test_backward_passes_are_placed_in_the_history(device: Counting, project: Path) -> None:
    model, optimizer = program()
    step(model, optimizer)
    counts = iter([100, 103, 107])
    device.allocator_events = lambda: next(counts)  # type: ignore[method-assign]
    device.kept = [
        *(allocated(number, 10) for number in (1, 2, 3)),
        allocated(4, 20),
        *freed(1, 10),
        *freed(2, 10),
        *freed(4, 20),
        *freed(3, 10),
    ]
    watched = roles.Roles(device, [model], [optimizer], project)
    watched.start()
    step(model, optimizer, before=lambda: setattr(device, "most", 10))
    assert watched.stop(1)["activations"] == 20 * MIB, "the third goes when the pass has ended"


def test_without_a_backward_pass_activations_are_not_told_apart(device: Counting, project: Path) -> None:
    model, optimizer = program()
    device.kept = history(project)
    watched = roles.Roles(device, [model], [optimizer], project)
    watched.start()
    model(torch.ones(8, 64))
    assert "activations" not in watched.stop(1), "a graph that nobody uses may hold them"


def test_full_precision_is_float32_without_autocast(
    device: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)

    def found(model: nn.Module, *, autocast: bool = False) -> bool:
        watched = roles.Roles(device, [model], [])
        watched.start()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            pass
        return bool(watched.stop(1)["full_precision"])

    assert found(nn.Linear(2, 2))
    assert not found(nn.Linear(2, 2, dtype=torch.bfloat16))
    assert not found(nn.Linear(2, 2), autocast=True)
    assert not found(nn.ReLU())
    compiled = SimpleNamespace(counters={"frames": {"ok": 1}})
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", compiled)
    assert not found(nn.Linear(2, 2)), "what compiled code does is not seen"


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What torch is asked of its allocator, which has a history of two devices."""
    asked: dict[str, Any] = {"traces": [[], freed(1, 5)], "enabled": False}

    def record(enabled: str | None = "all", **options: Any) -> None:
        asked["enabled"] = enabled is not None
        asked.update(options)

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: asked["enabled"], raising=False)
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", record)
    monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: {"device_traces": asked["traces"]})
    return asked


def test_the_allocator_keeps_a_history_for_as_long_as_it_is_wanted(allocator: dict[str, Any]) -> None:
    device = Cuda()
    assert device.history() == []
    device.keep_history()
    assert allocator["enabled"] and allocator["stacks"] == "python"
    assert device.history() == freed(1, 5) and not allocator["enabled"]
    assert device.history() == [], "nobody keeps it any more"
    device.keep_history()
    allocator["traces"][1] = freed(1, 5) * (MOST_ALLOCATIONS // 2)
    assert device.history() == [], "the first of them are lost"


def test_a_history_that_the_program_keeps_is_left_to_it(allocator: dict[str, Any]) -> None:
    allocator["enabled"] = True
    device = Cuda()
    device.keep_history()
    assert device.history() == [] and allocator["enabled"] and "stacks" not in allocator


WITH_LINES = replace(
    SEEN,
    roles=Roles(
        weights=100 * MIB,
        when="forward pass",
        lines=(
            Allocation("net.py", 3, 300 * MIB, 1, "return hidden.relu()"),
            Allocation("net.py", 9, 10 * MIB, 7, "x = <b>x</b>"),
            Allocation("", 0, 40 * MIB, 2),
        ),
    ),
)


def test_lines_are_told_where_they_allocate_enough() -> None:
    told = words.memory_lines_told(measured(WITH_LINES), ORIGINAL)
    assert told == (
        "allocated in the step and alive at its peak: net.py:3 300 MiB, "
        "the backward pass and libraries 40.0 MiB."
    )
    assert words.memory_lines_told(measured(SEEN), ORIGINAL) == ""
    results = Results(
        "verify", "0", "2026-01-01T00:00:00+00:00", 1.0, Machine("cuda"), (measured(WITH_LINES),)
    )
    assert "Allocated in the step and alive at its peak: net.py:3 300 MiB" in " ".join(
        render(results, 120).split()
    )
    page = report.render(results)
    assert "<code>return hidden.relu()</code>" in page and "30 %" in page
    assert "net.py:9" not in page


def test_results_keep_the_lines(tmp_path: Path) -> None:
    results = Results(
        "verify", "0", "2026-01-01T00:00:00+00:00", 1.0, Machine("cuda"), (measured(WITH_LINES),)
    )
    (tmp_path / "results.json").write_text(dump(results), encoding="utf-8")
    assert load(tmp_path / "results.json") == results

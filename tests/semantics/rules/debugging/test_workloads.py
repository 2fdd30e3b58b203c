"""What trains in a block, and which profilers record all of it."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.debugging.profiler_left_on.profiling import profiled_training
from torchlint.rules.debugging.workloads import training_in
from torchlint.semantics.module import Module

HEAD = """\
import itertools, torch
from torch import nn
from torch.profiler import profile, schedule
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(x):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
def epoch_of(loader):
    for x in loader:
        step(x.cuda())
"""


@pytest.mark.parametrize(
    ("code", "some", "whole"),
    [
        ("for x in loader:\n    step(x)", True, True),
        ("epoch_of(loader)", True, True),
        ("for e in range(epochs):\n    epoch_of(loader)", True, True),
        ("step(x)", True, False),
        ("for x in itertools.islice(loader, 10):\n    step(x)", True, False),
        ("for i in range(10):\n    step(x)", True, False),
        ("for i in range(steps):\n    step(x)", True, True),
        ("for epoch in range(10):\n    epoch_of(loader)", True, True),
        ("for epoch in range(10):\n    epoch_of(loader)\n    if done:\n        break", True, True),
        ("for i, x in enumerate(loader):\n    step(x)\n    if i > 5:\n        break", True, False),
        ("trainer.fit(data)", True, True),
        ("trainer.train()", True, True),
        ("model.train()", False, False),
        ("for x in loader:\n    model(x)", False, False),
    ],
)
def test_what_trains(semantic_model: Callable[[str], Module], code: str, some: bool, whole: bool) -> None:
    body = code.replace("\n", "\n    ")
    module = semantic_model(f"{HEAD}with something:\n    {body}\n")
    (block,) = module.tree.nodes(cst.With)
    assert (training_in(module, block.body) is not None) is some
    assert (training_in(module, block.body, whole=True) is not None) is whole


@pytest.mark.parametrize(
    ("profiler", "found"),
    [
        ("profile()", True),
        ("profile(with_stack=True)", True),
        ("profile([torch.profiler.ProfilerActivity.CPU], schedule(wait=1, warmup=1, active=1))", False),
        ("profile(schedule=None if quick else schedule(wait=1, warmup=1, active=1))", False),
        ("torch.autograd.profiler.profile(True)", True),
        ("torch.autograd.profiler.profile(enabled)", False),
        ("torch.autograd.profiler.emit_nvtx()", True),
        ("torch.autograd.profiler.emit_itt(False)", False),
        ("torch.profiler.record_function('x')", False),
    ],
)
def test_what_is_profiled(semantic_model: Callable[[str], Module], profiler: str, found: bool) -> None:
    module = semantic_model(f"{HEAD}with {profiler}:\n    epoch_of(loader)\n")
    assert any(profiled_training(module, call) is not None for call in module.tree.nodes(cst.Call)) is found

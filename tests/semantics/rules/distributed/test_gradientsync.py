"""Which backward passes exchange gradients for nothing, and where that can be left to the last one."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent

import libcst as cst
import pytest

from torchlint.rules.distributed.all_reduce_every_micro_step.gradientsync import (
    exchange_once,
    needless_exchange,
)
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name

Model = Callable[[str], Module]

HEAD = """
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, loader, criterion, n, args):
    model = DDP(nn.Linear(10, 10).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    count = 0
    for i, (x, y) in enumerate(loader):
"""
STEP = "if (i + 1) % n == 0:\n    optimizer.step()\n    optimizer.zero_grad()"
PASS = "loss = criterion(model(x), y) / n\nloss.backward()\n"

# By the condition of the last pass.
MENDED = {
    PASS + STEP: "(i + 1) % n == 0",
    "last = (i + 1) % n == 0\n" + PASS + STEP.replace("(i + 1) % n == 0", "last"): "last",
    PASS + STEP.replace("i + 1", "count + 1") + "\ncount += 1": "(count + 1) % n == 0",
    PASS + STEP.replace("(i + 1) % n == 0", "not (i + 1) % n or i + 1 == len(loader)"): (
        "not (i + 1) % n or i + 1 == len(loader)"
    ),
    PASS + STEP.replace("% n", "% args.n"): "(i + 1) % args.n == 0",
    "with torch.autocast('cuda'):\n    loss = criterion(model(x), y) / n\nloss.backward()\n" + STEP: (
        "(i + 1) % n == 0"
    ),
}
# Found, but left to the author.
LEFT = {
    "the condition changes": PASS + "i = i + 1\n" + STEP.replace("i + 1", "i"),
    "the number changes": PASS + "if i > 9:\n    n = 8\n" + STEP,
    "counted behind the passes": PASS + "count += 1\n" + STEP.replace("i + 1", "count"),
    "set behind the passes": PASS + "last = (i + 1) % n == 0\n" + STEP.replace("(i + 1) % n == 0", "last"),
    "asks an object": PASS + STEP.replace("== 0", "== 0 and args.ready()"),
    "over two lines": PASS
    + STEP.replace("(i + 1) % n == 0", "((i + 1) % n == 0\n        or i + 1 == len(loader))"),
    "a step within a condition": PASS
    + STEP.replace("    optimizer.step()", "    if args.go:\n        optimizer.step()"),
    "a step in the other branch": (
        PASS + "if (i + 1) % n:\n    pass\nelse:\n    optimizer.step()\n    optimizer.zero_grad()"
    ),
    "a step behind continue": PASS + "if (i + 1) % n:\n    continue\noptimizer.step()\noptimizer.zero_grad()",
    "a pass that may fail": "try:\n" + indent(PASS, "    ") + "except RuntimeError:\n    continue\n" + STEP,
    "a pass on condition": "loss = criterion(model(x), y) / n\nif loss > 0:\n    loss.backward()\n" + STEP,
    "two passes": "loss = criterion(model(x), y)\nloss.backward(retain_graph=True)\nloss.backward()\n" + STEP,
    "gradients looked at": PASS + "print(model.module.weight.grad.norm())\n" + STEP,
    "gradients clipped": PASS + "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n" + STEP,
    "the model is run elsewhere": "with torch.no_grad():\n    model(x)\n" + PASS + STEP,
    "a name is taken": "contextlib = 3\n" + PASS + STEP,
}
# Not found.
GOOD = {
    "a step in each round": PASS + "optimizer.step()\noptimizer.zero_grad()",
    "no_sync": "with model.no_sync():\n" + indent(PASS, "    ") + STEP,
    "the flag": "model.require_backward_grad_sync = i % n == 0\n" + PASS + STEP,
    "cleared in each round": "optimizer.zero_grad()\n" + PASS + "if (i + 1) % n == 0:\n    optimizer.step()",
    "another model": PASS.replace("model(x)", "model.module(x)") + STEP,
}


def asked(semantic_model: Model, body: str) -> tuple[Module, cst.Call]:
    """The program with this loop, and its last backward pass."""
    module = semantic_model(HEAD + indent(dedent(body), " " * 8) + "\n")
    return module, [call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "backward"][-1]


@pytest.mark.parametrize("body", MENDED)
def test_exchanged_in_the_last_pass(semantic_model: Model, body: str) -> None:
    module, backward = asked(semantic_model, body)
    found = needless_exchange(module, backward)
    assert found is not None
    edits = exchange_once(module, found)
    assert edits is not None
    header = f"with contextlib.nullcontext() if {MENDED[body]} else model.no_sync():"
    assert any(edit.content.strip() == header for edit in edits)


@pytest.mark.parametrize("why", LEFT)
def test_left_to_the_author(semantic_model: Model, why: str) -> None:
    module, backward = asked(semantic_model, LEFT[why])
    found = needless_exchange(module, backward)
    assert found is not None
    assert exchange_once(module, found) is None


@pytest.mark.parametrize("why", GOOD)
def test_nothing_is_exchanged_for_nothing(semantic_model: Model, why: str) -> None:
    module, backward = asked(semantic_model, GOOD[why])
    assert needless_exchange(module, backward) is None

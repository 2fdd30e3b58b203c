"""Whether the host has waited shortly before a place, so that one more wait there costs little."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import libcst as cst
import pytest

from torchlint.rules.host_device.waits import after_a_guard, after_a_wait
from torchlint.semantics.module import Module

HEAD = """
import torch


def train(model, loader, optimizer):
    model.cuda()
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        out = model(x)
        out.sum().backward()
        optimizer.step()
"""

WAITS = {
    "none": ("here()", False),
    "above": ("out.max().item()\nhere()", True),
    "a model between": ("out.max().item()\nz = model(x)\nhere()", False),
    "in one branch": ("if flag:\n    out.max().item()\nhere()", False),
    "in both branches": ("if flag:\n    out.max().item()\nelse:\n    out[out > 0]\nhere()", True),
    "a model in a branch between": ("out.max().item()\nif flag:\n    z = model(x)\nhere()", False),
    "above the branch": ("out.max().item()\nif flag:\n    here()", True),
    "the decision": ("if out.max() > 0:\n    z = 1\nhere()", True),
    "in front in the statement": ("f(out.max().item(), here())", True),
    "behind in the statement": ("f(here(), out.max().item())", False),
    "the iteration before": ("for i in y:\n    here()\n    out.max().item()", False),
    "above a loop": ("out.max().item()\nfor i in range(3):\n    print(i)\nhere()", True),
    "in a handler": ("try:\n    f(x)\nexcept ValueError:\n    out.max().item()\nhere()", False),
}


def place(semantic_model: Callable[[str], Module], body: str) -> tuple[Module, cst.Call]:
    module = semantic_model(HEAD + indent(body, " " * 8) + "\n")
    return module, next(c for c in module.tree.nodes(cst.Call) if module.source(c) == "here()")


@pytest.mark.parametrize(("body", "expected"), WAITS.values(), ids=WAITS)
def test_waits_before(semantic_model: Callable[[str], Module], body: str, expected: bool) -> None:
    assert after_a_wait(*place(semantic_model, body)) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if not out.any():\n    continue\nhere()", True),
        ("if not out.any():\n    continue\nz = model(x)\nhere()", False),
        ("out.max().item()\nhere()", False),
    ],
)
def test_guards_before(semantic_model: Callable[[str], Module], body: str, expected: bool) -> None:
    assert after_a_guard(*place(semantic_model, body)) is expected

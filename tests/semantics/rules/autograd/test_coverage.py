"""TL302: which steps certainly reach the same parameters each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchlint.checker import check
from torchlint.diagnostics import Applicability
from torchlint.options import LintSettings
from torchlint.source import Source

PROGRAM = """
import random
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, deep):
        super().__init__()
        self.one = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)
        self.layers = nn.ModuleList([self.one, self.other])
        self.deep = deep

    def encode(self, x):
        return self.one(x)

    def forward(self, x, n=1):
        {forward}


def train(batches, steps):
    model = Net(True)
    optimizer = torch.optim.AdamW(model.parameters())
    for step, x in enumerate(batches):
        optimizer.zero_grad(set_to_none=False)
        {step}
        optimizer.step()
"""
FORWARD = "return self.other(self.one(x))"
STEP = "model(x).sum().backward()"
COUNTED = "model(x, step % 2).sum().backward()"
RULE = "TL302"

SAME = {
    "plain": (FORWARD, STEP),
    "built with": ("return self.other(self.one(x) if self.deep else x)", STEP),
    "all layers": ("for layer in self.layers: x = layer(x)|return x", STEP),
    "counted": ("for i in range(2): x = self.layers[i](x)|return x", STEP),
    "reported": (
        FORWARD,
        "loss = model(x).sum()|loss.backward()|if step % 9 == 0: print(loss.item())",
    ),
}
UNLIKE = {
    "another method": (FORWARD, "(model.encode(x) if step % 2 else model(x)).sum().backward()"),
    "a layer": (FORWARD, "(model.one(x) if step % 2 else model(x)).sum().backward()"),
    "by name": (FORWARD, "getattr(model, 'one' if step % 2 else 'other')(x).sum().backward()"),
    "one of two losses": (FORWARD, "[model.one(x).sum(), model.other(x).sum()][step % 2].backward()"),
    "a summand": (
        FORWARD,
        "loss = model.one(x).sum()|if step % 2: loss = loss + model.other(x).sum()|loss.backward()",
    ),
    "cut": (FORWARD, "y = model.one(x)|if step % 2: y = y.detach()|model.other(y).sum().backward()"),
    "handed on": (FORWARD, "steps(model, x, step)"),
    "drawn": ("return random.choice([self.one, self.other])(x)", STEP),
    "drawn before": ("f = random.choice([self.one, self.other])|return f(x)", STEP),
    "dropped": (
        "for layer in self.layers:|    if random.random() < 0.5: continue|    x = layer(x)|return x",
        STEP,
    ),
    "ends early": ("for layer in self.layers:|    x = layer(x)|    if x.sum() > 3: break|return x", STEP),
    "the first few": ("for layer in self.layers[:n]: x = layer(x)|return x", COUNTED),
    "of its children": ("for layer in list(self.children())[:n]: x = layer(x)|return x", COUNTED),
    "picked": ("return self.layers[n](x)", COUNTED),
    "either": ("return (self.one if n else self.other)(x)", COUNTED),
    "returns early": (
        "y = self.one(x)|if y.sum() > 0: return y|return self.other(y)",
        STEP,
    ),
}


def grade(forward: str, step: str) -> Applicability:
    lines = {"forward": forward, "step": step}
    text = PROGRAM.format_map({name: lines[name].replace("|", "\n        ") for name in lines})
    compile(text, "program.py", "exec")
    found = check(Source(Path("program.py"), text), LintSettings(rules=(RULE,), fixable=frozenset({RULE})))
    assert [item.code for item in found] == [RULE]
    assert found[0].fix is not None
    return found[0].fix.applicability


@pytest.mark.parametrize("case", SAME.values(), ids=SAME)
def test_every_step_reaches_the_same(case: tuple[str, str]) -> None:
    assert grade(*case) is Applicability.SAFE


@pytest.mark.parametrize("case", UNLIKE.values(), ids=UNLIKE)
def test_steps_may_differ(case: tuple[str, str]) -> None:
    assert grade(*case) is Applicability.UNSAFE

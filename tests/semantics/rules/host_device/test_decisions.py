"""What depends on a decision by a tensor, and how much is at stake in it."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.host_device import stakes
from torchlint.rules.host_device.branch_on_tensor.rule import branch_on_tensor
from torchlint.rules.host_device.decisions import Outcome, outcome
from torchlint.semantics import model
from torchlint.semantics.module import Module
from torchlint.semantics.synchronisation import truth_tests
from torchlint.syntax import SyntaxTree

PROGRAM = """
import torch

model = torch.nn.Linear(8, 8).cuda()


def train(loader, optimizer, flag, cache):
    for x in loader:
        x = model(x.cuda())
        n = x.sum()
        {body}
        x.mean().backward()
        optimizer.step()


def grow(x):
    x = x.cuda()
    with torch.no_grad():
        while True:
            x = model(x)
            {body}
"""


def build(body: str) -> Module:
    indented = body.replace("\n", "\n        ")
    program = PROGRAM.replace("{body}", indented, 1).replace("{body}", "pass")
    settings = LintSettings()
    return model.build(SyntaxTree(program), settings)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if n > 3:\n    x = x / 2", Outcome.CHOICE),
        ("if n > 3:\n    x = x / 2\nelif n < 1:\n    x.zero_()\nelse:\n    x *= 2", Outcome.CHOICE),
        ("if n > 3:\n    if flag:\n        x = x / 2", Outcome.CHOICE),
        ("x = x / 2 if n > 3 else x", Outcome.CHOICE),
        ("if n > 3:\n    x = x[:4]", Outcome.ACTION),
        ("if n > 3:\n    x = cache(x)", Outcome.ACTION),
        ("if n > 3:\n    x = model(x)", Outcome.ACTION),
        ("if n > 3:\n    self.x = x", Outcome.ACTION),
        ("if n > 3:\n    print('large')", Outcome.CHECK),
        ("if n > 3:\n    print('large')\n    x = x / 2", Outcome.ACTION),
        ("if n > 3:\n    print('large')\nelse:\n    print('small')", Outcome.ACTION),
        ("if n > 3:\n    break", Outcome.ACTION),
        ("if n > 3:\n    return x", Outcome.ACTION),
        ("if n > 3:\n    x = x / 2\nelse:\n    continue", Outcome.ACTION),
        ("if n > 3:\n    for i in range(3):\n        x = x / 2", Outcome.ACTION),
        ("name = 'large' if n > 3 else 'small'", Outcome.ACTION),
        ("while n > 3:\n    n = n / 2", Outcome.ACTION),
        ("rows = [row for row in x if row.sum() > 3]", Outcome.ACTION),
        ("if n > 3:\n    raise ValueError", Outcome.CHECK),
        ("if n > 3: raise ValueError", Outcome.CHECK),
        ("if n > 3: break", Outcome.ACTION),
        ("assert n > 3", Outcome.CHECK),
        ("if n > 0:\n    x = x / n", Outcome.GUARD),
        ("x = x / n if n else x", Outcome.GUARD),
        ("if n > 0:\n    x /= n", Outcome.GUARD),
        ("x = x / (n + 1) if n > 0 else x", Outcome.CHOICE),
        ("if n == float('Inf'):\n    x = x / 2", Outcome.GUARD),
        ("if torch.isnan(n):\n    x = x / 2", Outcome.GUARD),
        ("flag = not n", None),
    ],
)
def test_outcome(body: str, expected: Outcome | None) -> None:
    """A decision only chooses where it computes values, none of which is infinite, and does nothing else."""
    module = build(body)
    found = [outcome(module, tensor) for node in module.tree.order for tensor in truth_tests(module, node)]
    assert found
    assert found[0] is expected


def test_waits_of_decoding_are_worth_more() -> None:
    """Where a model is fed its own output, and in a server, each wait counts."""
    module = build("pass")
    training, decoding = (
        call for call in module.tree.nodes(cst.Call) if module.source(call) in ("model(x.cuda())", "model(x)")
    )
    assert stakes.slight(module, training, stakes.NEEDED) == stakes.NEEDED
    assert stakes.slight(module, decoding, stakes.NEEDED) is None


def test_what_ends_a_generation_is_not_put_off_for_long() -> None:
    """What is generated behind the end has to be cut off."""
    program = """
import torch


class Decoder(torch.nn.Module): ...


def generate(model: Decoder, tokens, end):
    model.cuda()
    tokens = tokens.cuda()
    for i in range(100):
        token = model(tokens)[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat((tokens, token), dim=1)
        if (token == end).all():
            {}
    return tokens
"""
    for body, words in (("break", "cut off"), ("print(i)", "every 100 steps")):
        module = model.build(SyntaxTree(program.format(body)), LintSettings())
        (decision,) = module.tree.nodes(cst.If)
        (finding,) = branch_on_tensor.check(decision, module)
        assert words in (finding.remedy or "")


def test_what_may_be_none_is_compared_with_none() -> None:
    """The truth of a tensor is hardly meant where a function gives one or nothing."""
    program = """
import torch
from torch import nn


def clipped(loss, limit):
    norm = None
    if limit:
        norm = loss.norm()
    return norm


class Model(nn.Module):
    def forward(self, x: torch.Tensor):
        norm = clipped(x.cuda(), 3)
        if norm:
            x = x / norm
        return x
"""
    module = model.build(SyntaxTree(program), LintSettings())
    decision = module.tree.nodes(cst.If)[1]
    (finding,) = branch_on_tensor.check(decision, module)
    assert "`norm is not None`" in (finding.remedy or "")

"""Whether an expression would give at another place what it gives where it stands."""

from __future__ import annotations

from textwrap import dedent, indent

import libcst as cst
import pytest

from tests.semantics.conftest import model
from torchlint.semantics.constancy import same_later, unwritten
from torchlint.semantics.module import Module

HEADER = """
import torch
import torch.nn as nn
import torch.nn.functional as F


def reads(t):
    return t.sum()


def writes(t):
    t.mul_(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.bound = 1.0, 2.0
        self.linear = nn.Linear(2, 2)
        self.relu = nn.ReLU(inplace=True)
        self.block = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))

    def reset(self):
        self.scale = 2.0

    def forward(self, x, y, items, fill):
        p = torch.softmax({given}, -1)
{between}
        return torch.log({read})
"""


def places(given: str, between: str, read: str = "p") -> tuple[Module, cst.BaseExpression, cst.Call]:
    """The model, what softmax is given, and the call of the logarithm."""
    program = HEADER.format(given=given, between=indent(dedent(between), " " * 8), read=read)
    module = model(program)
    calls = module.tree.nodes(cst.Call)
    softmax = next(call for call in calls if module.source(call.func) == "torch.softmax")
    log = next(call for call in calls if module.source(call.func) == "torch.log")
    return module, softmax.args[0].value, log


SAME = [
    ("x", ""),
    ("x", "y = x + 1"),
    ("x", "z = x\nz = reads(z)"),
    ("x", "z = x.sum()\nz += 1"),
    ("x", "z = x.clone()\nz.zero_()"),
    ("x", "y = F.relu(x)"),
    ("x", "y = self.linear(x)"),
    ("x", "print(x)"),
    ("x * self.scale", "y = y + self.bound"),
    ("x.view(-1)", "y = x.shape[0]"),
    ("x", "z = [x for x in items]"),
    ("x", "z = lambda x: x + 1"),
    ("x", "z = y * 2\nz.zero_()"),
    ("x", "z = y.clone()\nz[0] = x.mean()\nz.add_(x)"),
    ("x", "z = []\nz.append(y)"),
]
CHANGED = [
    # Two parameters may be one object.
    ("x", "y[0] = x.mean()"),
    ("x", "y.add_(x)"),
    ("x", "items.append(y)"),
    ("x", "y = y * 2; y.zero_()"),
    ("x", "x = y"),
    ("x", "x += 1"),
    ("x", "x, y = y, x"),
    ("x", "x: torch.Tensor = y"),
    ("x", "x[0] = 1"),
    ("x", "x[0] += 1"),
    ("x", "x.data = y"),
    ("x", "x.add_(1)"),
    ("x", "x.view(-1).zero_()"),
    ("x", "z = x\nz.zero_()"),
    ("x", "z = x.view(-1)[0]\nz += 1"),
    ("x", "(first, second) = x.chunk(2)\nsecond.zero_()"),
    ("x", "for row in x:\n    row.zero_()"),
    ("x", "z = [x, y]\nz[0].zero_()"),
    ("x", "self.kept = x\nself.kept.zero_()"),
    ("x", "torch.mul(y, 2, out=x)"),
    ("x", "F.relu(x, inplace=True)"),
    ("x", "F.relu_(x)"),
    ("x", "self.relu(x)"),
    ("x", "self.block(x)"),
    ("x", "writes(x)"),
    ("x", "fill(x)"),
    ("x", "fill([x])"),
    ("x", "fill(*x)"),
    ("x", "del x"),
    ("x", "(x := y)"),
    ("x", "for x in items:\n    pass"),
    ("x", "with items as x:\n    pass"),
    ("x", "try:\n    pass\nexcept ValueError as x:\n    pass"),
    ("x", "match items:\n    case [x]:\n        pass"),
    ("x", "import x"),
    ("x", "def x(): pass"),
    ("x", "z = [x := v for v in items]"),
    ("x", "if y.any():\n    x = y"),
    ("x", "while y.any():\n    x = x * 2"),
    ("x", "def f():\n    nonlocal x\n    x = y\nf()"),
    ("x * self.scale", "self.scale = 3.0"),
    ("x * self.scale", "self.reset()"),
    ("x * self.scale", "fill(self)"),
    ("x * items['a']", "items['a'] = 1"),
    ("F.dropout(x)", "y = F.dropout(y)"),
    ("fill(x)", "y = fill(y)"),
    ("(z := x)", ""),
]


@pytest.mark.parametrize(("given", "between"), SAME)
def test_same_later(given: str, between: str) -> None:
    module, node, at = places(given, between)
    assert same_later(module, node, at)


@pytest.mark.parametrize(("given", "between"), CHANGED)
def test_changed_before(given: str, between: str) -> None:
    module, node, at = places(given, between)
    assert not same_later(module, node, at)


def test_a_statement_that_is_taken_out_changes_nothing() -> None:
    module, node, at = places("x", "x = y")
    (gone,) = (a for a in module.tree.nodes(cst.Assign) if module.source(a) == "x = y")
    assert same_later(module, node, at, [gone])


def test_the_own_statement_of_an_expression_counts() -> None:
    module, node, at = places("p", "")
    assert not same_later(module, node, at)
    own = module.tree.enclosing(node, cst.Assign)
    assert own is not None and same_later(module, node, at, [own])


@pytest.mark.parametrize(
    ("between", "expected"),
    [("", True), ("p = p * 1", True), ("p.mul_(2)", False), ("z = p\nz += 1", False), ("fill(p)", False)],
)
def test_unwritten(between: str, expected: bool) -> None:
    module, _, at = places("x", between)
    name = at.args[0].value
    assert isinstance(name, cst.Name)
    assert unwritten(module, name) is expected

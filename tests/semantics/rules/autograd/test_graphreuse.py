"""Whether a second backward pass may go through a graph that the first one was told to keep."""

from __future__ import annotations

from textwrap import dedent, indent

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.autograd.backward_retains_graph.graphreuse import retained_for_nothing
from torchlint.semantics import model
from torchlint.syntax import SyntaxTree

HEAD = """
import torch
from elsewhere import Net, collect, process, train_further
from torch import nn
from torch.utils.data import DataLoader

model, other = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
unknown = Net().cuda()
loader = DataLoader([])

class Stateful(nn.Module):
    def forward(self, x):
        self.state = model(x) + self.state
        return self.state

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))
    def forward(self, x):
        h = self.layer(x) * self.scale
        return h if self.training else h.detach()

stateful, plain = Stateful(), Plain()

def helper(x):
    return model(x).mean()

for x, y in loader:
"""
RETAINED = ".backward(retain_graph=True)"

PROGRAMS = {
    "made anew": ("loss = model(x).mean()\nloss" + RETAINED, True),
    "by a function": ("helper(x)" + RETAINED, True),
    "by a function of another file": ("loss = process(model(x)).mean()\nloss" + RETAINED, True),
    "by a class of another file": ("loss = Net(model(x)).mean()\nloss" + RETAINED, False),
    "by a model of this file": ("plain(x).mean()" + RETAINED, True),
    "by a model with a state": ("stateful(x).mean()" + RETAINED, False),
    "by a model of another file": ("unknown(x).mean()" + RETAINED, False),
    "by a distribution": (
        "d = torch.distributions.Categorical(logits=model(x))\nd.log_prob(y).mean()" + RETAINED,
        True,
    ),
    "in a comprehension": ("loss = sum(m(x).mean() for m in (model, other))\nloss" + RETAINED, True),
    "added up": ("loss = model(x).mean()\nloss += other(x).mean()\nloss" + RETAINED, True),
    "once more": ("loss = model(x).mean()\nloss" + RETAINED + "\nloss.backward()", False),
    "once more, after a part of it": (
        "h = model(x)\nh.mean()" + RETAINED + "\nother(h).mean().backward()",
        False,
    ),
    "once more, detached": (
        "h = model(x)\nh.mean()" + RETAINED + "\nother(h.detach()).mean().backward()",
        True,
    ),
    "a graph of its own": ("model(x).mean()" + RETAINED + "\nmodel(x).sum().backward()", True),
    "before it": ("h = model(x)\nh.sum().backward(retain_graph=False)\nh.mean()" + RETAINED, True),
    "gradients of a part": ("h = model(x)\nh.mean()" + RETAINED + "\ntorch.autograd.grad(h.sum(), x)", False),
    "handed on": ("h = model(x)\nh.mean()" + RETAINED + "\ntrain_further(h)", False),
    "told of": ("h = model(x)\nh.mean()" + RETAINED + "\ntrain_further(h.item())", True),
    "kept in an object": ("h = model(x)\nh.mean()" + RETAINED + "\noptimizer.last = h", False),
    "from before the loop": ("(model(x) + features).mean()" + RETAINED, False),
    "carried along": ("h = model(x + h)\nh.mean()" + RETAINED, False),
    "carried along, detached": ("h = model(x + h).mean()\nh" + RETAINED + "\nh = h.detach()", True),
    "by a module of another file": ("loss = collect.of(x).mean()\nloss" + RETAINED, True),
    "by an engine": ("unknown.backward(model(x).mean(), retain_graph=True)", False),
    "by a function of torch": ("torch.autograd.backward(model(x).mean(), retain_graph=True)", True),
}


@pytest.mark.parametrize(("program", "expected"), PROGRAMS.values(), ids=PROGRAMS)
def test_whether_a_graph_is_used_again(program: str, expected: bool) -> None:
    text = HEAD + indent(dedent(program), "    ") + "\n"
    module = model.build(SyntaxTree(text), LintSettings())
    call = next(c for c in module.tree.nodes(cst.Call) if module.source(c).endswith("retain_graph=True)"))
    assert retained_for_nothing(module, call) is expected


LOOP = """
def f():
    for x, y in loader:
        h = model(x).mean()
        h.backward(retain_graph=True)
"""
OUTSIDE = {
    "nobody repeats it": ("def f(x):\n    model(x).mean().backward(retain_graph=True)", False),
    "a function that a loop calls": (
        "def f(x):\n    model(x).mean().backward(retain_graph=True)\nfor x, y in loader:\n    f(x)",
        True,
    ),
    "a part is returned": (LOOP + "\n    return h", False),
    "a number is returned": (LOOP + "\n    return h.item()", True),
}


@pytest.mark.parametrize(("program", "expected"), OUTSIDE.values(), ids=OUTSIDE)
def test_graphs_of_functions(program: str, expected: bool) -> None:
    text = HEAD + "    pass\n" + program + "\n"
    module = model.build(SyntaxTree(text), LintSettings())
    call = next(c for c in module.tree.nodes(cst.Call) if module.source(c).endswith("retain_graph=True)"))
    assert retained_for_nothing(module, call) is expected

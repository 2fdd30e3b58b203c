"""Which layers of a class its forward passes can get to."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent

import pytest

from torchlint.semantics.module import Module
from torchlint.semantics.program import Program

PROGRAM = """
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from nets import Base, init_weights

class Block(nn.Module):
{body}

model = Block().cuda()
optimizer = torch.optim.Adam(model.parameters())
for x in loader():
    loss = model(x.cuda()).mean()
    {used}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
INIT = """
def __init__(self):
    super().__init__()
    self.one = nn.Conv2d(1, 1, 1)
    self.two = nn.Conv1d(1, 1, 1)
"""
ONE, TWO = "Conv2d", "Conv1d"

# The methods, what the loop does with the model besides, and the layers that count.
METHODS = {
    "only one is called": (INIT, "return self.one(x)", "", {ONE}),
    "both are called": (INIT, "return self.two(self.one(x))", "", {ONE, TWO}),
    "handed on": (INIT, "return checkpoint(self.one, x)", "", {ONE}),
    "its weight is used": (INIT, "return x @ self.one.weight", "", {ONE}),
    "by a method": (INIT + "def run(self, x): return self.two(x)", "return self.run(x)", "", {TWO}),
    "by a method of no use": (INIT + "def run(self, x): return self.two(x)", "return self.one(x)", "", {ONE}),
    "by a method that the loop calls": (
        INIT + "def run(self, x): return self.two(x)",
        "return self.one(x)",
        "loss += model.run(x)",
        {ONE, TWO},
    ),
    "by the loop": (INIT, "return self.one(x)", "loss += model.two(x)", {ONE, TWO}),
    "by no name": (INIT, "return getattr(self, name)(x)", "", {ONE, TWO}),
    "each in turn": (INIT, "for layer in self.children(): x = layer(x)", "", {ONE, TWO}),
    "through self": (INIT, "return run(self, x)", "", {ONE, TWO}),
    "asked what it is": (INIT + "    print(self.two)\n", "return self.one(x)", "", {ONE}),
    "as wide as another": (
        INIT + "    self.head = nn.Linear(self.one.out_channels, 1)\n",
        "return self.head(x)",
        "",
        {"Linear"},
    ),
    "weights of the constructor": (
        INIT + "    nn.init.zeros_(self.two.weight)\n",
        "return self.one(x)",
        "",
        {ONE},
    ),
    "weights in a loop": (
        INIT + "    for layer in self.modules():\n        nn.init.zeros_(layer.weight)\n",
        "return self.one(x)",
        "",
        {ONE},
    ),
    "kept in another": (
        INIT + "    self.both = [self.one, self.two]\n",
        "return self.both[0](x)",
        "",
        {ONE, TWO},
    ),
    "kept in another of no use": (
        INIT + "    self.both = [self.one, self.two]\n",
        "return self.one(x)",
        "",
        {ONE},
    ),
    "by a list": (
        INIT
        + "    found = []\n    found.append(nn.Conv3d(1, 1, 1))\n    self.three = nn.Sequential(*found)\n",
        "return self.three(x)",
        "",
        {"Conv3d"},
    ),
    "by a list of no use": (
        INIT
        + "    found = []\n    found.append(nn.Conv3d(1, 1, 1))\n    self.three = nn.Sequential(*found)\n",
        "return self.one(x)",
        "",
        {ONE},
    ),
    "by its registered name": (
        INIT + "    self.add_module('three', nn.Conv3d(1, 1, 1))\n",
        "return self.one(x)",
        "",
        {ONE},
    ),
    "by a name that is made up": (
        INIT + "    self.add_module(f'layer{i}', nn.Conv3d(1, 1, 1))\n",
        "return self.one(x)",
        "",
        {ONE, "Conv3d"},
    ),
    "by a helper": (
        INIT + "    self.three = self.make()\ndef make(self): return nn.Conv3d(1, 1, 1)\n",
        "return self.three(x)",
        "",
        {"Conv3d"},
    ),
    "by a helper of no use": (
        INIT + "    self.three = self.make()\ndef make(self): return nn.Conv3d(1, 1, 1)\n",
        "return self.one(x)",
        "",
        {ONE},
    ),
    "two names": (
        INIT + "    self.three = self.four = nn.Conv3d(1, 1, 1)\n",
        "return self.four(x)",
        "",
        {"Conv3d"},
    ),
    "sets up what it is asked for": (INIT + "    init_weights(self)\n", "return self.one(x)", "", {ONE, TWO}),
    "answers for every name": (
        INIT + "def __getattr__(self, name): return self.two",
        "return self.one(x)",
        "",
        {ONE, TWO},
    ),
}


@pytest.mark.parametrize(("methods", "forward", "used", "layers"), METHODS.values(), ids=METHODS)
def test_which_layers_count(
    methods: str, forward: str, used: str, layers: set[str], semantic_model: Callable[[str], Module]
) -> None:
    body = indent(f"{methods}\ndef forward(self, x):\n    {forward}\n", "    ")
    assert counted(semantic_model(PROGRAM.format(body=body, used=used))) == layers


HEIRS = """
import torch
from torch import nn
from nets import Base

class Parent({base}):
    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(1, 1, 1)
        self.two = nn.Conv1d(1, 1, 1)

    def forward(self, x):
        return self.one(x)

class Net(Parent):
    def __init__(self):
        super().__init__()
        self.three = nn.Conv3d(1, 1, 1)
    {forward}

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
for x in loader():
    loss = model(x.cuda()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("base", "forward", "layers"),
    [
        ("nn.Module", "", {ONE}),
        ("nn.Module", "def forward(self, x): return self.three(super().forward(x))", {ONE, "Conv3d"}),
        ("Base", "", {ONE, TWO, "Conv3d"}),
    ],
)
def test_what_is_inherited(
    base: str, forward: str, layers: set[str], semantic_model: Callable[[str], Module]
) -> None:
    assert counted(semantic_model(dedent(HEIRS.format(base=base, forward=forward)))) == layers


def counted(module: Module) -> set[str]:
    """The layers of the model that the program trains."""
    training = Program.of(module).training
    assert training is not None
    names = [name for _, name in Program.of(module).layers(training.models[0])]
    return {
        name.rpartition(".")[2] for name in names if name.startswith(("torch.nn.Conv", "torch.nn.Linear"))
    }

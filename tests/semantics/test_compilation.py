"""What is compiled, what compiled code keeps from call to call, and which functions are chains."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.rules.compiler.pointwise_chain_uncompiled.chains import pointwise_operations
from torchlint.semantics.compilation import Compilation, compiled
from torchlint.semantics.graphbreaks import grown
from torchlint.semantics.module import Module

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
"""

REGIONS = {
    "with options": (
        """
        @torch.compile(mode='default')
        def f(x):
            return mark(x)
        """,
        True,
    ),
    "switched off": (
        """
        @torch.compile(disable=True)
        def f(x):
            return mark(x)
        """,
        False,
    ),
    "by a maker": (
        """
        def f(x):
            return mark(x)
        g = torch.compile(dynamic=True)(f)
        """,
        True,
    ),
    "by keyword": (
        """
        def f(x):
            return mark(x)
        g = torch.compile(model=f)
        """,
        True,
    ),
    "what it calls": (
        """
        def f(x):
            return mark(x)
        @torch.compile
        def g(x):
            return f(x)
        """,
        True,
    ),
    "what calls it": (
        """
        @torch.compile
        def f(x):
            return x
        def g(x):
            return mark(f(x))
        """,
        False,
    ),
    "kept out": (
        """
        @torch.compiler.disable
        def f(x):
            return mark(x)
        @torch.compile
        def g(x):
            return f(x)
        """,
        False,
    ),
    "kept out by a call": (
        """
        def f(x):
            return mark(x)
        f = torch._dynamo.disable(f)
        @torch.compile
        def g(x):
            return f(x)
        """,
        False,
    ),
    "an operator of its own": (
        """
        @torch.library.custom_op('a::f', mutates_args=())
        def f(x):
            return mark(x)
        @torch.compile
        def g(x):
            return f(x)
        """,
        False,
    ),
    "asks": (
        """
        @torch.compile
        def f(x):
            if torch.compiler.is_compiling():
                return x
            return mark(x)
        """,
        False,
    ),
    "a method of its own": (
        """
        class Net(nn.Module):
            @torch.compile
            def part(self, x):
                return mark(x)
        """,
        True,
    ),
    "in place": (
        """
        class Net(nn.Module):
            def forward(self, x):
                return mark(x)
        net = Net()
        net.compile()
        """,
        True,
    ),
    "the hooks of Lightning": (
        """
        import lightning as L
        class Net(L.LightningModule):
            def training_step(self, batch):
                return mark(batch)
        net = torch.compile(Net())
        """,
        True,
    ),
    "a pattern": (
        """
        import re
        def f(x):
            return mark(x)
        g = re.compile('f')
        """,
        False,
    ),
}


@pytest.mark.parametrize("name", REGIONS)
def test_regions(name: str, semantic_model: Callable[[str], Module]) -> None:
    program, expected = REGIONS[name]
    module = semantic_model(HEAD + dedent(program))
    (call,) = (
        call
        for call in module.tree.nodes(cst.Call)
        if isinstance(call.func, cst.Name) and call.func.value == "mark"
    )
    assert compiled(module, call) is expected


THROUGH = """
    def f(x):
        return x + 1
    def g(x):
        return f(x)
    @torch.compile
    def h(x):
        return g(x)
    """


def test_a_region_says_how_it_is_reached(semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(HEAD + dedent(THROUGH))
    (addition,) = module.tree.nodes(cst.BinaryOperation)
    region = Compilation.of(module).region(addition)
    assert region is not None
    assert isinstance(region.entry, cst.FunctionDef) and region.entry.name.value == "h"
    assert isinstance(region.maker, cst.Decorator)
    assert [module.source(call) for call in region.path] == ["g(x)", "f(x)"]


STATE = """
calls = 0
seen = []
names = ["a"]
table = {"calls": 0}


class Net(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.calls = 0
        self.start = start
        self.share = 0.0
        self.outputs = []
        self.emptied = []

    def reset(self):
        self.share = 0.0
        self.emptied.clear()

    def forward(self, x):
        global calls
        STATEMENT
"""

GROWTH = {
    "self.calls += 1": True,
    "self.calls = self.calls + 1": True,
    "self.calls = 1": False,
    "self.calls += 0": False,
    "self.start += 1": False,
    "self.share += 1": False,
    "self.outputs.append(x)": True,
    "self.outputs += [x]": True,
    "self.emptied.append(x)": False,
    "calls += 1": True,
    "calls += x": False,
    "seen.extend([x, x])": True,
    "names.append('b')": True,
    "table['calls'] += 1": True,
    "x += 1": False,
    "local = []; local.append(x)": False,
}


@pytest.mark.parametrize("statement", GROWTH)
def test_state_that_grows(statement: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(HEAD + STATE.replace("STATEMENT", statement))
    line = module.tree.text[: module.tree.text.index(statement)].count("\n") + 1
    found = [
        grown(module, node)
        for kind in (cst.Call, cst.Assign, cst.AugAssign)
        for node in module.tree.nodes(kind)
        if module.tree.line(node) == line
    ]
    assert any(target is not None for target in found) is GROWTH[statement]


CHAINS = {
    "return torch.exp(x) * 2": 2,
    "return -torch.exp(x)": 2,
    "y = torch.exp(x)\n    z = y + 1\n    return z * z": 3,
    "return torch.cat([x.exp(), torch.log(x)])": 1,
    "return torch.where(x > 0, x / 2, x * x)": 2,
    "return torch.tanh(x.view(-1).float())": 1,
    "return F.silu(x).mean() + 1": 2,
    "return torch.tanh(x @ x)": 0,
    "return torch.tanh(x)[x > 0]": 0,
    "return torch.tanh(x)[:, 0]": 1,
    "return unknown(torch.tanh(x))": 0,
    "if x is None:\n        return 0\n    return torch.tanh(x)": 0,
    "x.add_(1)\n    return torch.tanh(x)": 0,
    "torch.tanh(x)": 0,
}


@pytest.mark.parametrize("body", CHAINS)
def test_chains(body: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(HEAD + f"def f(x):\n    {body}\n")
    (function,) = module.tree.nodes(cst.FunctionDef)
    assert pointwise_operations(module, function) == CHAINS[body]

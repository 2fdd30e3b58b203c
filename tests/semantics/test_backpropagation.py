"""What takes part in a backward pass, what is kept across steps, and which gradients code relies on."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.autograd.grad_zeroed_in_place.gradients import zeroed_gradient
from torchlint.rules.autograd.graph_kept_across_steps.freeing import freed
from torchlint.rules.autograd.retention import kept, outlives
from torchlint.semantics import model
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.iterations import gradient_owner
from torchlint.semantics.module import Module
from torchlint.syntax import SyntaxTree

HEAD = """
import torch
from torch import nn

model = nn.Linear(4, 2).cuda()
criterion = nn.MSELoss()
"""


def modelled(program: str) -> Module:
    text = HEAD + dedent(program)
    return model.build(SyntaxTree(text), LintSettings())


def node(module: Module, source: str) -> cst.BaseExpression:
    """The last expression that is spelt so."""
    found = [n for n in module.tree.order if isinstance(n, cst.BaseExpression) and module.source(n) == source]
    return found[-1]


FED = {
    "by name": ("loss = criterion(model(x), y)\nloss.backward()", "loss", True),
    "by a term": ("a = model(x).sum()\nloss = a + 1\nloss.backward()", "a", True),
    "not at all": ("a = model(x).sum()\nloss = model(x).mean()\nloss.backward()\nprint(a)", "a", False),
    "detached": (
        "a = model(x).sum()\n(model(x).mean() + a.detach()).backward()\nprint(a)",
        "a",
        False,
    ),
    "as a number": (
        "a = model(x).sum()\n(model(x).mean() + a.item()).backward()\nprint(a)",
        "a",
        False,
    ),
    "in a list": ("parts = []\nparts.append(model(x))\ntorch.stack(parts).sum().backward()", "parts", True),
    "by a comprehension": ("parts = [model(x)]\nsum(p.mean() for p in parts).backward()", "parts", True),
    "by a loop": ("parts = [model(x)]\nfor p in parts:\n    p.mean().backward()", "parts", True),
    "in a dict": ("parts = {}\nparts['a'] = model(x)\nsum(parts.values()).sum().backward()", "parts", True),
    "through an attribute": ("self.a = model(x)\nself.a.mean().backward()", "self.a", True),
    "through a scaler": ("loss = model(x).mean()\nscaler.scale(loss).backward()", "loss", True),
    "through a scaler called": ("loss = model(x).mean()\nloss_scaler(loss, optimizer)", "loss", True),
    "through a framework": ("loss = model(x).mean()\naccelerator.backward(loss)", "loss", True),
    "by autograd.grad": ("loss = model(x).mean()\ntorch.autograd.grad(loss, x)", "loss", True),
    "through a function": (
        "def step(value):\n    value.backward()\nloss = model(x).mean()\nstep(loss)",
        "loss",
        True,
    ),
    "by a result": ("def total(v):\n    s = v.sum()\n    return s\ntotal(model(x)).backward()", "s", True),
    "by one of several functions": (
        (
            "def first(v):\n    s = v.sum()\n    return s\ndef last(v):\n    return v\n"
            "KINDS = {'first': first, 'last': last}\nKINDS[kind](model(x)).backward()"
        ),
        "s",
        True,
    ),
    "by a training step": (
        "class A(Base):\n    def training_step(self, x):\n        loss = model(x)\n        return loss",
        "loss",
        True,
    ),
}


@pytest.mark.parametrize(("program", "place", "expected"), FED.values(), ids=list(FED))
def test_what_feeds_a_backward_pass(program: str, place: str, expected: bool) -> None:
    module = modelled(program)
    assert Backpropagation.of(module).feeds(node(module, place)) is expected


FREED = {
    "itself": ("loss = model(x).mean()\nloss.backward()\nprint(loss)", "loss", True),
    "its term": ("out = model(x)\nloss = out.mean()\nloss.backward()\nprint(out * 2)", "out * 2", True),
    "a sibling": ("out = model(x)\nout.mean().backward()\nother = out.sum()\nprint(other)", "other", True),
    "unrelated": ("a = model(x)\nb = model(x).mean()\nb.backward()\nprint(a)", "a", False),
    "retained": ("loss = model(x).mean()\nloss.backward(retain_graph=True)\nprint(loss)", "loss", False),
    "retained by create_graph": (
        "loss = model(x).mean()\nloss.backward(create_graph=True)\nprint(loss)",
        "loss",
        False,
    ),
    "not retained": ("loss = model(x).mean()\nloss.backward(retain_graph=False)\nprint(loss)", "loss", True),
    "in a helper": (
        "def step(x):\n    loss = model(x).mean()\n    loss.backward()\n    return loss\nprint(step(x))",
        "step(x)",
        True,
    ),
}


@pytest.mark.parametrize(("program", "place", "expected"), FREED.values(), ids=list(FREED))
def test_what_a_backward_pass_frees(program: str, place: str, expected: bool) -> None:
    module = modelled(program)
    assert freed(module, node(module, place)) is expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("loss.backward()", True),
        ("torch.autograd.grad(y, x)", True),
        ("x.requires_grad_()", True),
        ("x.requires_grad_(False)", False),
        ("x.requires_grad = True", True),
        ("x.requires_grad = False", False),
        ("print(x.grad)", True),
        ("torch.zeros(3, requires_grad=True)", True),
        ("torch.zeros(3, requires_grad=False)", False),
        ("with torch.enable_grad():\n    model(x)", True),
        ("torch.set_grad_enabled(True)", True),
        ("torch.set_grad_enabled(False)", False),
        ("torch.autograd.functional.jacobian(f, x)", True),
        ("helper()", True),
        ("harmless()", False),
        ("model(x)", False),
    ],
)
def test_code_that_computes_gradients(statement: str, expected: bool) -> None:
    helpers = "def helper():\n    loss.backward()\ndef harmless():\n    helper\n"
    module = modelled(helpers + statement)
    assert Backpropagation.of(module).computes_gradients(module.tree.root.body[-1]) is expected


KEPT = {
    "added": ("total += x", [("total", "x")]),
    "subtracted": ("total -= x", [("total", "x")]),
    "added at length": ("total = total + x * 2", [("total", "x * 2")]),
    "averaged": ("mean = 0.9 * mean + 0.1 * x", [("mean", "0.1 * x")]),
    "averaged exactly": ("mean = (mean * n + x) / (n + 1)", [("mean", "x")]),
    "to an attribute": ("self.total += x", [("self.total", "x")]),
    "to an item": ("stats['a'] = stats['a'] + x", [("stats['a']", "x")]),
    "appended": ("items = []\nitems.append(x)", [("items", "x")]),
    "inserted": ("items = []\nitems.insert(0, x)", [("items", "x")]),
    "extended": ("items = []\nitems.extend([x, y])", [("items", "x"), ("items", "y")]),
    "concatenated": ("items = []\nitems = items + [x]", [("items", "x")]),
    "in a record": ("items = []\nitems.append({'a': x, 'b': (y, z)})", [("items", s) for s in "xyz"]),
    "under a new key": ("table = {}\ntable[x] = y", [("table", "y")]),
    "under one key": ("table = {}\ntable['a'] = y", []),
    "overwritten": ("last = x", []),
    "multiplied": ("product *= x", []),
    "collected": ("items = [f(x) for x in y]", [("items", "f(x)")]),
    "in a meter": (
        "class M:\n    def add(self, v):\n        self.s += v\nm = M()\nm.add(x)",
        [("self.s", "v"), ("m", "x")],
    ),
    "in a meter that detaches": (
        "class M:\n    def add(self, v):\n        v = v.item()\n        self.s += v\nm = M()\nm.add(x)",
        [("self.s", "v")],
    ),
}


@pytest.mark.parametrize(("program", "expected"), KEPT.values(), ids=list(KEPT))
def test_what_is_kept(program: str, expected: list[tuple[str, str]]) -> None:
    module = modelled(program)
    statements = module.tree.nodes(cst.AugAssign, cst.Assign, cst.Call)
    found = [item for statement in statements for item in kept(module, statement)]
    assert [(module.source(item.place), module.source(item.stored)) for item in found] == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("total = 0\nfor i in x:\n    total += i", True),
        ("for i in x:\n    total = 0\n    total += i", False),
        ("for i in x:\n    self.total += i", True),
        ("for i in x:\n    self.total = 0\n    self.total += i", False),
        ("for i in x:\n    self.total = self.total + i\n    self.total += i", True),
        ("table = {}\nfor i in x:\n    table['a'] += i", True),
    ],
)
def test_what_outlives_an_iteration(program: str, expected: bool) -> None:
    module = modelled(program)
    place = module.tree.nodes(cst.AugAssign)[-1].target
    assert outlives(module, place, module.tree.nodes(cst.For)[0]) is expected


@pytest.mark.parametrize(
    ("statement", "owner"),
    [
        ("p.grad.zero_()", "p"),
        ("p.grad.data.zero_()", "p"),
        ("p.grad.detach().zero_()", "p"),
        ("m.a.weight.grad.fill_(0.0)", "m.a.weight"),
        ("p.grad.mul_(0)", "p"),
        ("torch.zero_(p.grad)", "p"),
        ("p.grad *= 0", "p"),
        ("p.grad[:] = 0", "p"),
        ("p.grad[...] = 0", "p"),
        ("p.grad.fill_(1)", None),
        ("p.grad *= 0.5", None),
        ("p.grad[0] = 0", None),
        ("p.data.zero_()", None),
        ("p.zero_()", None),
    ],
)
def test_gradients_filled_with_zeros(statement: str, owner: str | None) -> None:
    module = modelled(statement)
    found = [
        zeroed_gradient(module, n)
        for n in module.tree.nodes(cst.Call, cst.AugAssign, cst.Assign)
        if module.tree.statement(n) is module.tree.root.body[-1]
    ]
    owners = [module.source(n) for n in found if n is not None]
    assert owners == ([owner] if owner is not None else [])


def test_only_a_gradient_has_an_owner() -> None:
    module = modelled("p.weight.data")
    assert gradient_owner(node(module, "p.weight.data")) is None


HEAD_OF_DICT = """
from losses import build_criterion

parts = build_criterion(options)(model(x), y)
"""

HELD = {
    "its values": ("loss = sum(parts.values())", "parts", True),
    "each": ("loss = sum(part for part in parts.values())", "parts", True),
    "each by its key": ("loss = sum(parts[name] for name in parts)", "parts", True),
    "each that has a weight": (
        "loss = sum(parts[k] * weights[k] for k in parts.keys() if k in weights)",
        "parts",
        True,
    ),
    "some": ("loss = sum(part for name, part in parts.items() if 'loss' in name)", "parts", False),
    "one": ("loss = parts['box'] + 1", "parts", False),
    "of something else": ("loss = sum(others.values())", "parts", False),
}


@pytest.mark.parametrize(("program", "name", "held"), HELD.values(), ids=HELD)
def test_containers_of_losses(program: str, name: str, held: bool) -> None:
    module = modelled(f"{HEAD_OF_DICT}{program}\nloss.backward()\nprint({name})")
    assert Backpropagation.of(module).holds_losses(node(module, name)) is held


def test_items_of_containers_of_losses() -> None:
    module = modelled(
        f"{HEAD_OF_DICT}loss = sum(parts.values())\nloss.backward()\n"
        "for name, part in parts.items():\n    print(name, part, parts['box'])"
    )
    found = {
        text: Backpropagation.of(module).is_loss(node(module, text))
        for text in ("part", "parts['box']", "name")
    }
    assert found == {"part": True, "parts['box']": True, "name": False}


COMPARED = {
    "with a target": ("loss = criterion(out, y.cuda())", "x, y = load()", True),
    "with what may have a graph": ("loss = criterion(out, other)", "other = load()", False),
}


@pytest.mark.parametrize(("program", "before", "expected"), COMPARED.values(), ids=COMPARED)
def test_what_a_criterion_compares(program: str, before: str, expected: bool) -> None:
    module = modelled(f"{before}\ny = torch.zeros(2)\nout = scale(x)\n{program}\nloss.backward()\nprint(out)")
    assert Backpropagation.of(module).is_loss(node(module, "out")) is expected

"""Nothing that is found depends on the order in which definitions or branches stand."""

from __future__ import annotations

import ast
from collections import Counter
from itertools import permutations
from pathlib import Path
from textwrap import dedent, indent

import pytest

from benchmarks import orders
from torchlint.checker import check
from torchlint.source import Source

# The whole takes minutes: `python -m benchmarks.orders`. Here each program of these has one order, and one
# in so many fixtures, taken evenly from all rules.
PROGRAMS = sorted((orders.ROOT / "fixtures" / "programs").glob("*.py"))
FIXTURES = [
    path
    for path in sorted((orders.ROOT / "fixtures").glob("TL*/*.py"))
    if not path.name.endswith((".fixed.py", ".followed.py"))
]
SHARE = 6

HEAD = """
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader

device = "cuda"
"""
# Definitions that ask one another, circularly: whichever stands first, and is asked first.
CIRCLES = {
    "the work of functions that call each other": (
        """
        def first(model: nn.Module, batches, depth):
            for batch in batches:
                second(model, batches, depth - 1)
                total = batch.cuda().sum().item() + 1
            return total
        """,
        """
        def second(model: nn.Module, batches, depth):
            for batch in batches:
                total = model(batch.cuda()).sum().item()
            if depth:
                first(model, batches, depth)
            return total
        """,
        """
        def third(model: nn.Module, parts, x):
            for part in parts:
                fourth(model, x, 3)
                print(torch.ones(part, device=device).sum().item())
        """,
        """
        def fourth(model: nn.Module, x, depth):
            out = model(x.cuda())
            return fifth(model, out, depth) if depth else out
        """,
        """
        def fifth(model: nn.Module, x, depth):
            return fourth(model, x, depth - 1) if depth else x
        """,
        """
        def sixth(model: nn.Module, parts, x):
            for part in parts:
                fifth(model, x, 3)
                print(torch.ones(part, device=device).sum().item())
        """,
    ),
    "a function that calls itself for each of its parts": (
        """
        def walk(model: nn.Module, node):
            out = model(node.x.cuda())
            for child in node.children:
                print(out.sum().item())
                walk(model, child)
        """,
        """
        def start(model: nn.Module, roots):
            for root in roots:
                walk(model, root)
                print(root.x.cuda().mean().item())
        """,
    ),
    "what functions are for that call each other": (
        """
        def predict(model: nn.Module, x, n):
            out = model(x)
            return infer(model, out, n - 1) if n else out
        """,
        """
        def infer(model: nn.Module, x, n):
            out = model(x)
            return predict(model, out, n - 1) if n else out
        """,
        """
        def train_all(model: nn.Module, loader, optimizer):
            for x in loader:
                loss = predict(model, x.cuda(), 2).mean()
                loss.backward()
                optimizer.step()
        """,
        """
        def look(model: nn.Module, loader):
            for x in loader:
                print(infer(model, x.cuda(), 2).sum().item())
        """,
    ),
    "helpers that exchange something by each other": (
        """
        def reduce_all(value):
            if isinstance(value, dict):
                return {key: reduce_one(item) for key, item in value.items()}
            dist.all_reduce(value)
            return value
        """,
        """
        def reduce_one(value):
            if isinstance(value, dict):
                return reduce_all(value)
            dist.all_reduce(value)
            return value
        """,
        """
        def train(model: nn.Module, loader, optimizer):
            for x in loader:
                loss = model(x.cuda()).mean()
                loss.backward()
                optimizer.step()
                print(reduce_one(loss.detach()).item(), reduce_all(loss.detach()).item())
        """,
    ),
    "more callers than anybody counts": (
        """
        def show(x):
            for _ in range(3):
                print(x.item())
        """,
        *(
            # They are given a model, since of functions for others the first in the file would be named.
            f"def call{i}(model):\n    show({value})\n"
            for i, value in enumerate(["torch.ones(3).cuda()"] * 14 + ["model + 1"])
        ),
    ),
    "heirs that define what their base asks for": (
        """
        class Base:
            def run(self, loader):
                for x in loader:
                    print(self.model(x.cuda()).sum().item(), self.scale)
        """,
        """
        class Small(Base):
            def __init__(self):
                self.model, self.scale = nn.Linear(3, 3).cuda(), 1
        """,
        """
        class Large(Base):
            def __init__(self):
                self.model, self.scale = nn.Linear(30, 30), torch.ones(3, device="cuda")
        """,
    ),
    "methods that add to what another starts": (
        """
        class Meter:
            def __init__(self):
                self.total = 0
            def add(self, x: torch.Tensor):
                self.total += x.cuda()
            def count(self, x):
                self.total += len(x)
            def show(self, model: nn.Module, loader):
                for x in loader:
                    self.add(model(x.cuda()))
                    print(self.total.item())
        """,
    ),
}
# Values that branches without effect on one another give a variable.
BRANCHES = {
    "numbers to start from, and a tensor": ("0", "1", "torch.ones(3, device=device)"),
    "a number, an input and a tensor": ("0", "model(x.cuda())", "torch.ones(3, device=device)"),
    "nothing, a number and a tensor": ("None", "0", "x.cuda().sum()"),
    "a switch, a number and a tensor": ("True", "1", "torch.ones(3, device=device)"),
    "one number in two types, and a tensor": ("1", "1.0", "torch.ones(3, device=device)"),
    "a sum of numbers, a number and a tensor": ("len(x)", "0", "torch.ones(3, device=device)"),
    "places": ("torch.ones(3)", "torch.ones(3, device=device)", "torch.ones(3, device=other)"),
    "tuples": ("(1, x.cuda())", "(2, torch.ones(3))", "[None, x.cuda()]"),
    "modules": ("nn.Linear(3, 3)", "nn.Linear(3, 3).cuda()", "model"),
}


def test_other_orders_are_the_same_programs() -> None:
    for path in PROGRAMS:
        text = path.read_text(encoding="utf-8")
        for order in range(3):
            made, rows = orders.reordered(text, order)
            assert sorted(rows) == list(range(1, text.count("\n") + 2))
            assert _defined(made) == _defined(text)


def _defined(text: str) -> Counter[str]:
    return Counter(
        ast.dump(node)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt)
        if not isinstance(node, ast.ClassDef)
    )


def test_what_is_needed_first_stays_first() -> None:
    text = dedent(
        """
        def helper(f):
            return f

        class Base:
            kind = 1

        @helper
        def decorated():
            return late()

        class Heir(Base):
            @property
            def x(self):
                return 1

            @x.setter
            def x(self, value):
                pass

            def last(self):
                return 3

            def first(self):
                return 3

        def late(y=helper(3)):
            return y
        """
    ).lstrip()
    for order in range(10):
        made, _ = orders.reordered(text, order)
        exec(compile(made, "made", "exec"), {})
    reverse, _ = orders.reordered(text, 0)
    assert reverse.index("def first") < reverse.index("def last")
    assert reverse.index("class Base") < reverse.index("class Heir")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_have_the_same_findings_in_another_order(path: Path) -> None:
    assert list(orders.differences(path.read_text(encoding="utf-8"), [0])) == []


@pytest.mark.parametrize("part", range(SHARE))
def test_fixtures_have_the_same_findings_in_another_order(part: int) -> None:
    found = [
        f"{path.parent.name}/{path.name}: {difference}"
        for path, text in orders.texts(FIXTURES[part :: SHARE * SHARE])
        for difference in orders.differences(text, [part % orders.ORDERS])
    ]
    assert found == []


@pytest.mark.parametrize("definitions", CIRCLES.values(), ids=CIRCLES)
def test_circles_have_the_same_findings_whatever_comes_first(definitions: tuple[str, ...]) -> None:
    text = HEAD + "\n" + "\n".join(dedent(definition).strip("\n") + "\n" for definition in definitions)
    assert check(Source(Path("program.py"), text), orders.settings(text))
    assert list(orders.differences(text, range(12))) == []


@pytest.mark.parametrize("values", BRANCHES.values(), ids=BRANCHES)
def test_branches_have_the_same_findings_whatever_comes_first(values: tuple[str, ...]) -> None:
    told = {_told(values, order) for order in permutations(range(len(values)))}
    assert len(told) == 1


def _told(values: tuple[str, ...], order: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    """What is found behind branches that stand in this order."""
    branches = "".join(
        f"{'el' if place else ''}if mode == {number}:\n    found = {values[number]}\n"
        for place, number in enumerate(order)
    )
    body = f"{branches}else:\n    found = {values[order[-1]]}\n"
    body += "for y in loader:\n    model(y.cuda())\n    print(found)\n"
    body += "    print(found.item(), found + y, found[1])\n    if found:\n        found.cpu()\n"
    text = f"{HEAD}\ndef use(mode, x: torch.Tensor, model: nn.Module, loader, other):\n{indent(body, '    ')}"
    # The branches themselves change places.
    rows = range(text[: text.index("    for y")].count("\n") + 1, text.count("\n") + 2)
    return tuple(
        (item.code, item.message, str(item.start.row), item.fix.applicability.label if item.fix else "")
        for item in check(Source(Path("program.py"), text), orders.settings(text))
        if item.start.row in rows
    )

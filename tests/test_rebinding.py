"""Functions that rebind and overwrite what a fix would read later compute the same after the fixes.

They are put together at random, always the same ones: a step that the rules look for, statements that change
the variables in all sorts of ways, and what is returned. All are run before and after the fixes, on the CPU.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType

import pytest
import torch

from torchlint.fixer import fix
from torchlint.options import LintSettings
from torchlint.source import Source

# Not TL407, whose fix computes something else on purpose.
RULES = ("TL402", "TL404", "TL405", "TL406", "TL408")
COUNT = 200
HEADER = """
import torch
import torch.nn.functional as F


def overwrite(t):
    t.mul_(0.5)


def look(t):
    return t.sum()


class Holder:
    def __init__(self, t):
        self.t = t

    def shrink(self):
        self.t.mul_(0.5)
"""
STEPS = (
    "x = torch.softmax(x, -1)",
    "p = torch.softmax(x, -1)",
    "p = torch.softmax(x, -1)",
    "p = x.sigmoid()",
    "p = torch.sigmoid(x)",
    "x = torch.sigmoid(x)",
    "x, p = torch.sigmoid(x), x",
    "p = x = torch.sigmoid(x)",
    "g = torch.sigmoid(x)",
    "g = 1 + torch.erf(x / 2**0.5)",
    "m = x.amax(-1, keepdim=True)",
    "m = x.max(dim=-1, keepdim=True)[0]",
    "v = x.pow(2).mean(-1, keepdim=True)",
    "m = x.mean(-1, keepdim=True)\nv = x.var(-1, unbiased=False, keepdim=True)",
    "s = x @ y.transpose(-2, -1)\np = s.softmax(-1)",
)
BETWEEN = (
    *("x = x + 1", "x += 1", "x.add_(1)", "x[0] = 0.25", "x[0] += 1", "x.data.mul_(0.5)"),
    *("z = x", "z = x.view(-1)", "z = x.T", "z = x[0]", "z.mul_(0.5)", "z += 1", "z = z + 1"),
    *("overwrite(x)", "overwrite(z)", "look(x)", "z = look(x)", "p.mul_(0.5)", "p = p * 0.5", "p *= 0.5"),
    *(
        "q = 1 - p",
        "q = p",
        "q.mul_(0.5)",
        "x, y = y, x",
        "torch.mul(x, 0.5, out=x)",
        "F.relu(x, inplace=True)",
    ),
    *(
        "for x in (x * 0.5,):\n    pass",
        "for row in x:\n    row.mul_(0.5)",
        "if x.sum() > 0:\n    x = x * 0.5",
    ),
    *(
        "with torch.no_grad():\n    x.mul_(0.5)",
        "try:\n    x = x * 0.5\nfinally:\n    pass",
        "(x := x * 0.5)",
    ),
    *(
        "w = [x := x * 0.5 for _ in range(2)]",
        "h = Holder(x)",
        "h.shrink()",
        "rows = [x]",
        "rows[0].mul_(0.5)",
    ),
    *(
        "match x:\n    case y:\n        pass",
        "del z",
        "def later():\n    nonlocal x\n    x = x * 0.5",
        "later()",
    ),
    *("y = y * 0.5", "g = g * 1", "y.mul_(0.5)", "s = s * 0.5", "m.mul_(0.5)", "look(y)", "t = y.sigmoid()"),
)
RETURNED = (
    *("torch.log(p)", "p.log()", "torch.log(p + 1e-8)", "torch.log(1 - p)", "torch.log(q)", "torch.log(x)"),
    *("-(x * torch.log(x)).sum(-1)", "(1 - x) * torch.log(1 - x)", "p", "x", "y", "p.mean()", "x.mean()"),
    *("F.binary_cross_entropy(p, t)", "F.binary_cross_entropy(x, t)", "F.binary_cross_entropy(q, t)"),
    *("F.cross_entropy(p, t)", "x * g", "0.5 * x * g", "[torch.log(p) for x in (y,)][0]", "p @ y"),
    *("m + torch.log(torch.exp(x - m).sum(-1, keepdim=True))", "x * torch.rsqrt(v + 1e-5)"),
    *("(x - m) / torch.sqrt(v + 1e-5)", "torch.log(torch.exp(x - m).sum(-1))", "torch.log(1 + q)"),
)


def function(number: int) -> str:
    """One function, put together by its number."""
    draw = random.Random(number)
    lines = [draw.choice(BETWEEN) for _ in range(draw.randint(0, 2))]
    lines += draw.choice(STEPS).split("\n")[:]
    for _ in range(draw.randint(0, 3)):
        lines.insert(draw.randint(0, len(lines)), draw.choice(BETWEEN))
    lines.append(f"return {', '.join(draw.sample(RETURNED, draw.randint(1, 3)))},")
    body = "\n".join(lines).replace("\n", "\n    ")
    return f"def f{number}(x, y, t):\n    {body}\n"


def runs(function: Callable[..., object]) -> bool:
    """Whether a function runs through on our inputs."""
    try:
        results(function)
    except Exception:
        return False
    return True


def results(function: Callable[..., object]) -> list[torch.Tensor]:
    """What a function gives, and what it leaves in its arguments."""
    generator = torch.Generator().manual_seed(7)
    x, y, t = (torch.rand(4, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    given = function(x, y, t)
    assert isinstance(given, tuple)
    return [torch.as_tensor(each) for each in (*given, x, y, t)]


def functions(code: str | CodeType) -> dict[str, Callable[..., object]]:
    space: dict[str, Callable[..., object]] = {}
    exec(code, space)
    return {name: value for name, value in space.items() if name[0] == "f" and name[1:].isdigit()}


@cache
def program() -> str:
    """The first functions that compile and run."""
    found: list[str] = []
    for number in range(100_000):
        text = function(number)
        try:
            code = compile(f"{HEADER}\n\n{text}", "program.py", "exec")
        except SyntaxError:
            continue
        if all(map(runs, functions(code).values())):
            found.append(text)
        if len(found) == COUNT:
            break
    return HEADER + "".join(f"\n\n{text}" for text in found)


@pytest.mark.parametrize("unsafe", [False, True])
def test_fixes_of_functions_that_rebind_keep_the_results(unsafe: bool) -> None:
    before = program()
    settings = LintSettings(rules=RULES, fixable=frozenset(RULES), unsafe_fixes=unsafe)
    fixed = fix(Source(Path("program.py"), before), settings)
    assert not any(diagnostic.code == "TL000" for diagnostic in fixed.diagnostics)
    # The unsafe fixes take out what guards a logarithm.
    tolerance = 1e-6 if unsafe else 1e-9
    ours, theirs = functions(before), functions(fixed.text)
    wrong = []
    for name, was in ours.items():
        old, new = results(was), results(theirs[name])
        if len(old) != len(new) or not all(
            a.shape == b.shape and torch.allclose(a, b, rtol=tolerance, atol=1e-10, equal_nan=True)
            for a, b in zip(old, new, strict=True)
        ):
            wrong.append(name)
    assert wrong == []
    assert sum(fixed.applied.values()) > 10

"""Which times are taken by the clock of the host, and which of them end before the device is done."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.debugging.timed_without_synchronize import timers
from torchlint.rules.debugging.timed_without_synchronize.timing import ends_too_early, timed_by_call
from torchlint.semantics.module import Module

HEAD = """\
import time, timeit, torch
from torch import nn
model = nn.Linear(4, 4).cuda()
x = torch.randn(4, 4, device="cuda")
"""
IN_TWO_METHODS = """\
class C:
    def f(self):
        self.t = time.time()
    def g(self):
        return time.time() - self.t
"""


def subtractions(module: Module) -> list[cst.BinaryOperation]:
    """Every subtraction of a program."""
    return [
        node for node in module.tree.nodes(cst.BinaryOperation) if isinstance(node.operator, cst.Subtract)
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("t = time.time()\nf()\nprint(time.time() - t)", (1, 3)),
        ("t = time.time()\nf()\nu = time.time()\nprint(u - t)", (1, 3)),
        ("t = time.perf_counter_ns()\nf()\nprint((time.perf_counter_ns() - t) / 1e9)", (1, 3)),
        ("t = timeit.default_timer()\nprint(timeit.default_timer() - t)", (1, 2)),
        (
            "class C:\n    def f(self):\n        self.t = time.time()\n        return time.time() - self.t",
            (3, 4),
        ),
        ("t = time.time()\nif slow:\n    print(time.time() - t)", (1, 3)),
        ("t = time.process_time()\nf()\nprint(time.process_time() - t)", None),
        ("t = 1.0\nf()\nprint(time.time() - t)", None),
        ("t = time.time()\nfor x in y:\n    f()\n    print(time.time() - t)\n    t = time.time()", None),
        ("t = time.time()\nfor x in y:\n    f()\n    print(time.time() - t)", None),
        (IN_TWO_METHODS, None),
    ],
)
def test_what_is_measured(
    semantic_model: Callable[[str], Module], code: str, expected: tuple[int, int] | None
) -> None:
    module = semantic_model(f"import time, timeit\n{code}\n")
    (elapsed,) = subtractions(module)
    found = timers.interval(module, elapsed)
    lines = (module.tree.line(found.start) - 1, module.tree.line(found.end) - 1) if found else None
    assert lines == expected


@pytest.mark.parametrize(
    ("work", "early"),
    [
        ("model(x)", True),
        ("model.forward(x)", True),
        ("[model(x) for _ in range(10)]", True),
        ("for _ in range(10):\n    y = model(x)", True),
        ("with torch.no_grad():\n    y = model(x)", True),
        ("y = model(x)\nprint('done')", True),
        ("y = model(x)\nn = len(y)", True),
        ("y = model(x)\nn = timeit.default_timer()", True),
        ("y = model(x)\ntime.sleep(1)", False),
        ("torch.mm(x, x)", True),
        ("x @ x", True),
        ("z = x.cpu()\ny = model(x)", True),
        ("for _ in range(10):\n    z = x.cpu()\n    y = model(x)", False),
        ("for y in x:\n    model(y)", False),
        ("while going:\n    model(x)", False),
        ("model(x).cpu()", False),
        ("y = model(x)\nprint(y)", False),
        ("y = model(x)\nother(y)", False),
        ("y = model(x)\ntorch.save(y, 'y.pt')", False),
        ("y = model(x)\ntorch.cuda.synchronize()", False),
        ("y = model(x)\nif fast:\n    torch.cuda.synchronize()", False),
        ("y = model(x)\ntorch.distributed.barrier()", False),
        ("y = model(x)\nz = y[y > 0]", False),
        ("y = model(x)\nz = f'{y.mean()}'", False),
        ("with torch.profiler.profile():\n    model(x)", False),
        ("z = [1, 2]", False),
        ("def f():\n    model(x)", False),
    ],
)
def test_what_ends_too_early(semantic_model: Callable[[str], Module], work: str, early: bool) -> None:
    module = semantic_model(f"{HEAD}t = time.time()\n{work}\nprint(time.time() - t)\n")
    (elapsed,) = subtractions(module)
    assert (ends_too_early(module, elapsed) is not None) is early


@pytest.mark.parametrize(
    ("code", "early"),
    [
        ("timeit.timeit(lambda: model(x), number=10)", True),
        ("timeit.repeat(stmt=lambda: torch.mm(x, x))", True),
        ("timeit.timeit(lambda: model(x).cpu())", False),
        ("timeit.timeit(lambda: [torch.mm(x, x), torch.cuda.synchronize()])", False),
        ("timeit.timeit('model(x)', globals=globals())", False),
    ],
)
def test_what_timeit_ends_too_early(semantic_model: Callable[[str], Module], code: str, early: bool) -> None:
    module = semantic_model(HEAD + code + "\n")
    found = [timed_by_call(module, call) for call in module.tree.nodes(cst.Call)]
    assert any(node is not None for node in found) is early

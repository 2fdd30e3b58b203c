"""The words for edits: code on one line, under the file's own names, with the loop's own counter."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.host_device import remedies
from torchlint.rules.host_device.explicit_synchronize_in_hot_loop import explicit_synchronize_in_hot_loop
from torchlint.semantics import model, places
from torchlint.semantics.module import Module
from torchlint.syntax import SyntaxTree

LOOP = """
import torch as th

model = th.nn.Linear(8, 1).cuda()
optimizer = th.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    for {target} in {iterable}:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        {line}
"""


def of(line: str, target: str = "x", iterable: str = "loader", before: str = "") -> tuple[Module, cst.Call]:
    """The model of a training loop whose last line is ``line``, and the call ``.item()`` in that line."""
    program = before + LOOP.format(line=line, target=target, iterable=iterable)
    settings = LintSettings()
    module = model.build(SyntaxTree(program), settings)
    calls = module.tree.nodes(cst.Call)
    return module, next(call for call in calls if module.source(call).endswith(".item()"))


@pytest.mark.parametrize(
    ("target", "iterable", "before", "counter"),
    [
        ("i, x", "enumerate(loader)", "", "i"),
        ("(i, x)", "enumerate(loader)", "", "i"),
        ("x", "range(9)", "", "x"),
        ("_, x", "zip(loader, loader)", "", "step"),
        ("x", "loader", "", "step"),
        ("x", "loader", "def step(): ...\n", "round_number"),
        ("x", "loader", "step = 0\n", "step"),
    ],
)
def test_counter(target: str, iterable: str, before: str, counter: str) -> None:
    """The counter is the loop's own, or a name that nothing else has."""
    module, call = of("print(loss.item())", target, iterable, before)
    hot = places.hot(module, call)
    assert hot is not None
    assert remedies.now_and_then(module, hot) == f"under `if {counter} % 100 == 0`"


@pytest.mark.parametrize(
    ("line", "kept", "copied"),
    [
        ("loss.item()", "`loss.detach()`", "`loss.detach().clone()`"),
        ("loss.detach().item()", "`loss.detach()`", "`loss.detach().clone()`"),
        ("loss.data.item()", "`loss.data`", "`loss.data.clone()`"),
        ("(loss * 2).item()", "`(loss * 2).detach()`", "`(loss * 2).detach().clone()`"),
        (
            f"(loss * {'1' * 80}).item()",
            "the detached tensor (`.detach()`)",
            "the detached tensor (`.detach().clone()`)",
        ),
    ],
)
def test_without_graph(line: str, kept: str, copied: str) -> None:
    """A tensor is named as the reader wrote it, unless that is long."""
    module, call = of(line)
    assert isinstance(call.func, cst.Attribute)
    assert remedies.without_graph(module, call.func.value) == kept
    assert remedies.without_graph(module, call.func.value, copied=True) == copied


@pytest.mark.parametrize(
    ("line", "shown", "decides"),
    [
        ("print(loss.item())", True, False),
        ('text = f"{loss.item():.2f}"', True, False),
        ('text = "%.2f" % loss.item()', True, False),
        ("total = loss.item()", False, False),
        ("meter.update(loss.item())", False, False),
        ("if loss.item() > 3: pass", False, True),
        ("best = 1 if 0 < loss.item() else 2", False, True),
        ("best = 1 if x else loss.item()", False, False),
        ("assert loss.item() > 3", False, True),
        ("while x: total = loss.item()", False, False),
    ],
)
def test_use(line: str, shown: bool, decides: bool) -> None:
    """What a number is for is told from the statement that it is read in."""
    module, call = of(line)
    assert (remedies.shown(module, call), remedies.decides(module, call)) == (shown, decides)


def test_code_on_one_line() -> None:
    """Lines are joined; what has a comment in it, or is long, is left out."""
    module, call = of("total = max(\n            loss,\n            x,\n        ).item()")
    assert remedies.inline(module, call) == "max( loss, x, ).item()"
    module, call = of("total = max(loss,  # the last\n            x).item()")
    assert remedies.inline(module, call) == "…"


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("loss.item()", ".item()"),
        ('loss.to("cpu", copy=True).item()', '.to("cpu", copy=True)'),
        ("th.ceil(loss).item()", "th.ceil(…)"),
        ("float(loss).item()", "float(…)"),
    ],
)
def test_step(line: str, step: str) -> None:
    """A method is told with its arguments, a function without."""
    module, call = of(line)
    inner = call.func.value if isinstance(call.func, cst.Attribute) else None
    asked = inner if isinstance(inner, cst.Call) else call
    assert remedies.step_of(module, asked) == step


def test_names_of_the_file() -> None:
    """Advice names torch as the file does, and leaves other names alone."""
    module, call = of("loss.item()")
    advice = "Write `torch.where(…)`, not `own.torch.where(…)`, as torch has it"
    assert remedies.as_spelt(module, call, advice) == (
        "Write `th.where(…)`, not `own.torch.where(…)`, as torch has it"
    )


@pytest.mark.parametrize(
    ("awaited", "remedy"),
    [
        ("self.stream", "`torch.cuda.current_stream().wait_stream(self.stream)`"),
        ("torch.cuda.current_stream()", "Remove `torch.cuda.current_stream().synchronize()`"),
        ("torch.cuda", "Remove `torch.cuda.synchronize()`"),
    ],
)
def test_a_stream_of_its_own_is_awaited_by_the_device(awaited: str, remedy: str) -> None:
    """Who reads on the current stream what another one computes has to wait for it, if not on the host."""
    program = f"""
import torch
from torch import nn


class Engine:
    def __init__(self):
        self.stream = torch.cuda.Stream()

    def run(self, model: nn.Module, loader):
        for x in loader:
            y = model(x.cuda())
            {awaited}.synchronize()
"""
    module = model.build(SyntaxTree(program), LintSettings())
    calls = module.tree.nodes(cst.Call)
    found = [each for call in calls for each in explicit_synchronize_in_hot_loop.check(call, module)]
    assert [remedy in (finding.remedy or "") for finding in found] == [True]

"""What the host needs a number for right away, and what could wait until the loop is over."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.host_device.needs import Need, needed_on_host, shown_at_once
from torchlint.semantics.module import Module

PROGRAM = """
import datetime
import math

import numpy as np
import torch
import torch.nn.functional as F
from Bio.PDB.StructureBuilder import StructureBuilder
from torch import nn


def keep(values, value):
    values.append(value)


def cut(x, end):
    return x[:end]


def is_done(x) -> bool:
    return x.item() < 0.1


def count(x) -> tuple[int, float]:
    return 3, x.item()


def parts(x) -> tuple[torch.Tensor, int]:
    return x, x.item()


def use(x):
    x, _ = parts(x)
    return x


def is_small(x):
    size = x.item()
    return size < 0.1


def train(model, loader, weights, names, total, losses, encoder, meter):
    for x, y in loader:
        x = x.cuda()
        loss = model(x).sum()
        {}
    return total, losses
"""

USES = {
    "n = x.max().item()\n        z = torch.zeros(n, 3)": Need.SIZE,
    "n = x.max().item() + 1\n        z = torch.zeros((n, 3))": Need.SIZE,
    "z = x[: x.sum().item()]": Need.SIZE,
    "z = x.view(x.max().item(), -1)": Need.SIZE,
    "z = x.split(x.sum(1).tolist())": Need.SIZE,
    "z = F.pad(x, (0, x.max().item()))": Need.SIZE,
    "n = x.max().item()\n        for i in range(n):\n            x[i] = 0": Need.SIZE,
    "z = cut(x, x.max().item())": Need.SIZE,
    "z = scatter(x, y, dim_size=x.max().item())": Need.SIZE,
    "z = F.one_hot(y, num_classes=x.max().item())": Need.SIZE,
    "for n in x.tolist():\n            z = y.narrow(0, 0, n)": Need.SIZE,
    "while x.sum().item() > 0:\n            x = x - 1": Need.DECISION,
    "if loss.item() < 1e-5:\n            break": Need.DECISION,
    "done = loss.item() < 1e-5\n        if done:\n            return total": Need.DECISION,
    "if not loss.item():\n            continue": Need.DECISION,
    "names = {x[0].item(): 1}": Need.VALUE,
    "cache = ['a', 'b']\n        name = cache[x[0].item()]": Need.VALUE,
    "t = datetime.timedelta(seconds=x[0].item())": Need.VALUE,
    "data = torch.load(f'{x[0].item()}.pt')": Need.VALUE,
    "ends = [0]\n        ends.append(x.sum().item())\n        z = y[ends[-2] : ends[-1]]": Need.SIZE,
    "model.width = x.max().item()\n        z = y[: model.width]": Need.SIZE,
    "model.load(x[0].item())": Need.VALUE,
    "table = np.arange(8)\n        z = table[x[0].item()]": Need.VALUE,
    "for row in np.ones((8, 2)):\n            z = row[x[0].item()]": Need.VALUE,
    "coded = encoder.encode(x[0].tolist(), names)": Need.VALUE,
    "losses.extend(encoder.encode(x[0].tolist()))": Need.VALUE,
    "if loss.cpu().numpy().item() < 1e-5:\n            break": Need.DECISION,
    "for part in x:\n            n = part.sum().item()\n        z = torch.zeros(n)": Need.SIZE,
    # What could wait, or a tensor could take the place of.
    "total += loss.item()": None,
    "total = total + loss.item()": None,
    "losses.append(loss.item())": None,
    "keep(losses, loss.item())": None,
    "print(loss.item())": None,
    "losses[0] = loss.item()": None,
    "loss = loss * x.max().item()": None,
    "z = weights[x[0].item()]": None,
    "builder = StructureBuilder()\n        builder.init_atom(x[0].numpy())": Need.VALUE,
    "z = x[y[0].item()]": None,
    "encoder.add_codes(x[0].tolist())": None,
    "kept = meter.update(x[0].item())": None,
    "z = torch.tensor(x[0].tolist())": None,
    "z = torch.full((3,), loss.item())": None,
    "last = loss.item()\n    z = torch.zeros(last)": None,
    "if loss.item() > 1e4:\n            raise ValueError": None,
    "if loss.item() > 0:\n            loss = loss * 2": None,
}


@pytest.mark.parametrize("use", USES)
def test_what_a_number_is_needed_for(semantic_model: Callable[[str], Module], use: str) -> None:
    module = semantic_model(PROGRAM.format(use))
    assert needed_on_host(module, _read(module, use.replace(" ", ""))) is USES[use]


def test_a_promise_is_a_need(semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(PROGRAM.format("pass"))
    done, counted, dropped, small = (
        call for call in module.tree.nodes(cst.Call) if module.source(call) == "x.item()"
    )
    assert needed_on_host(module, done) is Need.DECISION
    assert needed_on_host(module, counted) is None
    assert needed_on_host(module, dropped) is None
    assert needed_on_host(module, small) is Need.DECISION


SHOWN = {
    "total += loss.item()\n        print(f'{total / 3:.3f}')": True,
    "losses.append(loss.item())\n        print(sum(losses) / len(losses))": True,
    "losses.append(loss.item())\n        mean = torch.tensor(losses).mean()\n        print(f'{mean}')": True,
    "meter.update(loss.item())\n        bar.set_postfix(loss=meter.avg)": True,
    "meter.update(loss.item())\n        bar.set_postfix(loss=f'{meter.avg:.3f}')": True,
    "total += loss.item()": False,
    "print(loss.item())": False,
    "losses.append(loss.item())\n        if step % 100 == 0:\n            print(sum(losses))": False,
    "total += loss.item()\n    print(f'{total / 3:.3f}')": False,
}


@pytest.mark.parametrize("use", SHOWN)
def test_what_is_shown_in_the_same_iteration(semantic_model: Callable[[str], Module], use: str) -> None:
    module = semantic_model(
        PROGRAM.format(use)
        .replace("for x, y in", "for step, (x, y) in enumerate(")
        .replace("loader:", "loader):")
    )
    assert shown_at_once(module, _read(module, use.replace(" ", ""))) is SHOWN[use]


def _read(module: Module, use: str) -> cst.Call:
    """The call that reads the value, in the last function."""
    return next(
        call
        for call in reversed(module.tree.nodes(cst.Call))
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in ("item", "tolist", "numpy")
        if module.source(call).replace(" ", "") in use
    )

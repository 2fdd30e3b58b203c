"""What is only computed for people to look at."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import libcst as cst
import pytest

from torchlint.rules.distributed.collective_for_logging.reporting import reported_only
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name

Model = Callable[[str], Module]

REPORTED = [
    "print(value())",
    "v = value()\nprint(v.item())",
    "v = value().item() / n\nlogger.info(f'{v:.3f}')",
    "total += value().item()",
    "total = total + value()\nbar.set_postfix(loss=total.item() / i)",
    "losses.append(value().item())",
    "losses.update(value().item(), n)",
    "logs = {'loss': value()}\nif rank == 0:\n    wandb.log(logs)",
    "logs['loss'] = value()\nprint(logs)",
    "logs['loss'] = value()\nlogs['lr'] = 3\nlogs['total'] += logs['loss'] / n\nbar.set_postfix(logs)",
    "self.losses.append(value().item())\nprint(sum(self.losses) / len(self.losses))",
    "shown = {}\nshown['x'] = value()\nprint(shown)",
    "reduced = value()\nlogger.update(loss=sum(reduced.values()), **reduced)",
    "shown = value() if several else loss\nprint(shown)",
    "v, w = value().tolist()\nprint(v, w)",
    "for k, v in value().items():\n    writer.add_scalar(k, v.item(), i)",
    "print({k: v / n for k, v in value().items()})",
    "self.running_loss += value().item()",
    "bar.desc = 'loss %.3f' % value().item()",
    "show(value())",
    "last = value()",
]
NEEDED = [
    "self.losses.append(value())\nsum(self.losses).backward()",
    "for group in groups:\n    group['lr'] = value().item()",
    "writer['x'] = value()\nprint(writer)",
    "value()",
    "v = value()",
    "value().backward()",
    "if value() > 3:\n    break",
    "v = value().item()\nif not math.isfinite(v):\n    sys.exit(1)\nprint(v)",
    "assert value() == 3",
    "scheduler.step(value())",
    "v = value()\nloss = loss / v\nprint(v)\nloss.backward()",
    "p.grad.mul_(value())",
    "scaler.update(value())",
    "early_stopping.update(value())",
    "state.value = value()",
    "queue.append(value())",
    "center = center * 0.9 + value() * 0.1\nloss = model(x - center)",
    "while value() > 3:\n    pass",
    "send(value())",
    "best = min(best, value())\nif best < 3:\n    break",
    "uses(value())",
]
HEAD = """
import logging
import math
import sys
import wandb

logger = logging.getLogger(__name__)


def show(number):
    print(number)


def uses(number):
    if number > 3:
        sys.exit()


def train(self, loader, model, losses, total, best, center, loss, n, rank, several, logs, writer, bar, state):
    last = None
    for i, x in enumerate(loader):
"""
TAIL = """
    return total, last
"""


def answer(module: Module) -> bool:
    """What is said of the call ``value()`` in the loop."""
    loop = next(module.tree.nodes(cst.For).__iter__())
    call = next(call for call in module.tree.nodes(cst.Call) if last_name(call.func) == "value")
    return bool(reported_only(module, [call], loop))


@pytest.mark.parametrize("body", REPORTED)
def test_reported_only(semantic_model: Model, body: str) -> None:
    assert answer(semantic_model(HEAD + indent(body, " " * 8) + TAIL))


@pytest.mark.parametrize("body", NEEDED)
def test_needed_for_something_else(semantic_model: Model, body: str) -> None:
    assert not answer(semantic_model(HEAD + indent(body, " " * 8) + TAIL))

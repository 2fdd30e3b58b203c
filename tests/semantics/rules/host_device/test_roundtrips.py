"""Which copies to the host bring back what it has sent."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.host_device.roundtrips import still_on_host
from torchlint.semantics.module import Module

PROGRAM = """
from torch.utils.data import DataLoader


class Tester:
    def evaluate(self, model, data):
        model.cuda()
        for x, y, w in DataLoader(data):
            self.sent = x.cuda()
            x, y = x.cuda(), y.cuda()
            out = model(x)
            {}

    def go_through(self, model, pairs):
        for x, y in pairs:
            x, y = x.cuda(), y.cuda()
            {}

    def show(self):
        return self.sent.cpu()
"""

COPIES = {
    "y.cpu()": True,
    "y.detach().cpu().numpy()": True,
    "y.squeeze(1).float().cpu()": True,
    "y.data.cpu().numpy()": True,
    "x.cpu()": True,
    "y[0].cpu()": True,
    "if data:\n                w = w.cuda()\n            w.cpu()": True,
    "w.cpu()": False,
    "self.show()": False,
    "out.cpu()": False,
    "out.cuda().cpu()": False,
    "(x * 2).cpu()": False,
    "y[y > 0] = 1\n            y.cpu()": False,
    "if data:\n                y = out.argmax(1)\n            y.cpu()": False,
}


@pytest.mark.parametrize("line", COPIES)
def test_copies_of_what_the_host_has(semantic_model: Callable[[str], Module], line: str) -> None:
    assert _is_there(semantic_model, line, "pass") is COPIES[line]


def test_what_an_unknown_loop_goes_over_is_where_it_is_moved_from(
    semantic_model: Callable[[str], Module],
) -> None:
    assert _is_there(semantic_model, "pass", "(model(x) == y).sum(); y.cpu().numpy()")


def _is_there(semantic_model: Callable[[str], Module], *lines: str) -> bool:
    module = semantic_model(PROGRAM.format(*lines))
    read = [
        call.func.value
        for call in module.tree.nodes(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "cpu"
    ]
    found: bool = still_on_host(module, read[0])
    return found

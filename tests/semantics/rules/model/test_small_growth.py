"""Which concatenations in loops are worth little: of few tensors, or without work for the device."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.diagnostics import Impact
from torchlint.options import LintSettings
from torchlint.rules.model.concatenation_in_loop.rule import concatenation_in_loop
from torchlint.semantics import model
from torchlint.syntax import SyntaxTree

PROGRAM = """
import torch

net = torch.nn.Linear(8, 1).cuda()
nets = torch.nn.ModuleList([net])


def predict(loader, images, read):
    out = torch.empty(0)
    {}
    return out
"""
LOOPS = {
    "for x in loader:\n        out = torch.cat([out, net(x.cuda())])": Impact.HIGH,
    "for each in nets:\n        out = torch.cat([out, each(images)])": Impact.LOW,
    "for image in images:\n        out = torch.cat([out, read(image)])": Impact.LOW,
    "for x in images:\n        out = torch.cat([out, x.cpu()])": Impact.LOW,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_stake(loop: str) -> None:
    module = model.build(SyntaxTree(PROGRAM.format(loop)), LintSettings())
    (finding,) = (
        finding
        for call in module.tree.nodes(cst.Call)
        if module.qualified(call.func) == "torch.cat"
        for finding in concatenation_in_loop.check(call, module)
    )
    assert (Impact.LOW if finding.slight else Impact.HIGH) is LOOPS[loop]

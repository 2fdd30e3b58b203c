"""Models that a file makes and never trains."""

from __future__ import annotations

from textwrap import dedent

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.rules.autograd.untrained import Untrained
from torchlint.semantics import model
from torchlint.syntax import SyntaxTree

PROGRAM = """
import copy
import torch
from models import Net
from others import Lion, Wrapper, build_optimizer, helper

student = Net().cuda()
teacher = {made}
{more}
optimizer = {optimizer}
for x, y in loader:
    x = x.cuda()
    loss = student(x) - teacher({given})
    loss.backward()
    {last}
"""
MODEL = "Net().cuda()"
SGD = "torch.optim.SGD(student.parameters(), lr=0.1)"

CASES = {
    "a twin": {},
    "a copy": {"made": "copy.deepcopy(student)"},
    "loaded": {"made": "helper.Big()", "more": "teacher.load_state_dict(torch.load('a.pt'))"},
    "pretrained": {"made": "Big.from_pretrained('a')", "more": "from transformers import AutoModel as Big"},
    "wrapped": {"more": "teacher = torch.nn.DataParallel(teacher)"},
    "shown to a function": {"more": "helper.count(teacher)"},
    "groups": {"optimizer": "torch.optim.Adam([{'params': student.parameters(), 'lr': 1.0}])"},
    "another library": {"optimizer": "Lion(student.parameters())"},
    "a filter": {"optimizer": "torch.optim.Adam(filter(lambda p: p.requires_grad, student.parameters()))"},
    "an input without a graph": {"given": "x.detach() * 2"},
    "no sign of parameters": {"made": "helper.scale()", "expected": False},
    "trained": {
        "optimizer": "torch.optim.SGD([*student.parameters(), *teacher.parameters()], 0.1)",
        "expected": False,
    },
    "trained by another library": {"last": "other = Lion(teacher.parameters())", "expected": False},
    "trained later": {
        "last": "optimizer.add_param_group({'params': teacher.parameters()})",
        "expected": False,
    },
    "part of a trained model": {"more": "both = Wrapper(student, teacher)", "expected": False},
    "an optimizer of another file": {"optimizer": "build_optimizer(student)", "expected": False},
    "a list of parameters": {
        "more": "params = list(student.parameters())\nparams.extend(teacher.parameters())",
        "optimizer": "torch.optim.SGD(params, lr=0.1)",
        "expected": False,
    },
    "gradients that are read": {"last": "print(student.weight.grad)", "expected": False},
    "an input with a graph": {"given": "student(x)", "expected": False},
    "an input that may have one": {"given": "helper.augment(x)", "expected": False},
    "from another function": {"made": "student", "expected": False},
    "one of several": {"made": "helper.both()[0]", "expected": False},
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_untrained(case: dict[str, object]) -> None:
    given = {"made": MODEL, "more": "", "optimizer": SGD, "given": "x", "last": "optimizer.step()", **case}
    text = dedent(PROGRAM).format(**given)
    module = model.build(SyntaxTree(text), LintSettings())
    untrained = Untrained(module)
    calls = [c for c in module.tree.nodes(cst.Call) if module.source(c.func) == "teacher"]
    assert [untrained.runs(call) for call in calls] == [case.get("expected", True)]

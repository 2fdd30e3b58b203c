"""Which blocks turn autocast on, and in which dtype a program computes under it."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.precision.autocasting import only_bfloat16, turns_autocast_on
from torchlint.semantics.module import Module

HEAD = "import contextlib\nimport torch\nfrom torch.cuda.amp import autocast\n"

CONTEXTS = {
    "autocast()": True,
    "autocast(enabled=flag)": True,
    "autocast(False)": False,
    "torch.autocast('cuda', enabled=False)": False,
    "torch.autocast('cpu', dtype=torch.bfloat16)": True,
    "accelerator.autocast()": True,
    "self.amp_autocast()": True,
    "self.disable_autocast()": False,
    "torch.no_grad()": False,
    "autocast() if flag else contextlib.nullcontext()": True,
    "contextlib.nullcontext()": False,
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_which_contexts_turn_it_on(context: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(f"{HEAD}with {context}:\n    pass\n")
    (block,) = module.tree.nodes(cst.With)
    assert turns_autocast_on(module, block.items[0].item) is CONTEXTS[context]


PROGRAMS = {
    "torch.autocast('cuda', dtype=torch.bfloat16)": True,
    "torch.autocast('cuda', torch.bfloat16)": True,
    "dtype = torch.bfloat16\nautocast(dtype=dtype)": True,
    "torch.autocast('cuda', dtype=torch.bfloat16)\nautocast()": False,
    "torch.autocast('cuda', dtype=torch.bfloat16)\nautocast(enabled=False)": True,
    "torch.autocast('cuda', dtype=torch.bfloat16)\ntorch.autocast('cpu')": True,
    "torch.autocast('cpu', dtype=torch.bfloat16)": False,
    "torch.autocast('cuda', dtype=dtype)": False,
    "torch.autocast('cuda', dtype=torch.bfloat16)\nmodel.half()": False,
    "x.to(torch.bfloat16)": False,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_which_dtype(program: str, semantic_model: Callable[[str], Module]) -> None:
    assert only_bfloat16(semantic_model(f"{HEAD}{program}\n")) is PROGRAMS[program]

"""Which masks hide exactly the keys behind each query."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.model.causality import Triangle, causal
from torchlint.semantics.module import Module

MASKS = {
    "torch.tril(torch.ones(n, n))": Triangle.KEPT,
    "torch.tril(torch.ones(n, m, device=x.device), diagonal=0)": Triangle.KEPT,
    "torch.ones(n, n, dtype=torch.bool).tril()[None, None]": Triangle.KEPT,
    "torch.tril(torch.ones(9, 9)).view(1, 1, 9, 9)[:, :, :n, :n]": Triangle.KEPT,
    "torch.tril(torch.ones(n, n)) == 0": Triangle.HIDDEN,
    "torch.tril(torch.ones(n, n)) != 1": Triangle.HIDDEN,
    "torch.tril(torch.ones(n, n)).eq(1)": Triangle.KEPT,
    "~torch.tril(torch.ones(n, n)).bool()": Triangle.HIDDEN,
    "torch.logical_not(torch.tril(torch.ones(n, n)))": Triangle.HIDDEN,
    "1 - torch.tril(torch.ones(n, n))": Triangle.HIDDEN,
    "torch.triu(torch.ones(n, n), 1).to(x.device)": Triangle.HIDDEN,
    "torch.triu(torch.full((n, n), float('-inf')), diagonal=1)": Triangle.BIAS,
    "torch.triu(torch.ones(n, n) * -math.inf, diagonal=1)": Triangle.BIAS,
    "nn.Transformer.generate_square_subsequent_mask(n)": Triangle.BIAS,
    "named": Triangle.KEPT,
    "torch.tril(torch.ones(n, n), diagonal=1)": None,
    "torch.tril(torch.ones(n, n), diagonal=m - n)": None,
    "torch.triu(torch.ones(n, n))": None,
    "torch.triu(torch.zeros(n, n), 1)": None,
    "torch.triu(torch.full((n, n), -1e9), diagonal=1)": None,
    "torch.tril(torch.full((n, n), float('-inf')))": None,
    "torch.tril(torch.ones(9, 9))[m - n : m, :m]": None,
    "torch.tril(torch.ones(9, 9))[::2]": None,
    "torch.tril(torch.ones(9, 9))[0]": None,
    "~torch.tril(torch.ones(n, n))": None,
    "torch.tril(torch.ones(n, n)).T": None,
    "torch.tril(x)": None,
    "written": None,
    "x": None,
}
HEAD = """
import math
import torch
from torch import nn


def go(x, n, m):
    named = torch.tril(torch.ones(n, n))
    written = torch.tril(torch.ones(n, n))
    written[0] = 1
    mask = """


@pytest.mark.parametrize("mask", MASKS)
def test_what_a_mask_holds(mask: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(f"{HEAD}{mask}\n    return mask\n")
    assert causal(module, module.tree.nodes(cst.Assign)[-1].value) is MASKS[mask]

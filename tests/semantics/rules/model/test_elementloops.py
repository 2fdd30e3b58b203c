"""Which loops over a tensor compute with one element a round, and could do it for all at once."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import libcst as cst
import pytest

from torchlint.rules.model.tensor_indexed_in_loop.elementloops import element_loop
from torchlint.semantics.module import Module

HEAD = "import torch\n\n\ndef go(x: torch.Tensor, y: torch.Tensor, out, f):\n    x, y = x.cuda(), y.cuda()\n"

# A loop, and what its rounds compute; None if they cannot be done at once.
LOOPS = {
    "for i in range(len(x)):\n    out.append(x[i] * 2)": "x[i] * 2",
    "for i in range(x.shape[0]):\n    out[i] = x[i].sum()": "x[i].sum()",
    "for i in range(x.size(1)):\n    out += x[:, i].exp()": "x[:, i].exp()",
    "n, m = x.shape\nfor i in range(n):\n    z = x[i] - y[i]\n    out.append(z)": "x[i] - y[i]",
    "for row in x:\n    out.append(row @ y)": "row @ y",
    "out = [torch.dot(a, b) for a, b in zip(x, y)]": "torch.dot(a, b)",
    "for i in range(len(x)):\n    x[i] /= y[i]": "x[i]",
    "for i in range(len(x)):\n    out.append(x[i])": None,
    "for i in range(len(x)):\n    y = x[i] * y": None,
    "for i in range(len(x)):\n    out.append(x[i, : f[i]].sum())": None,
    "for i in range(len(x)):\n    out.append(f(x[i]))": None,
    "for i in range(len(x)):\n    out.append(x[i].nonzero())": None,
    "for i in range(len(x)):\n    if f:\n        out.append(x[i] * 2)": None,
    "for i in range(10):\n    out.append(x[i] * 2)": None,
    "for row in out:\n    row.add_(x)": None,
    "out = [a * 2 for a in x if f]": None,
}


@pytest.mark.parametrize("loop", LOOPS)
def test_rounds_that_could_be_one(loop: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(f"{HEAD}{indent(loop, '    ')}\n    return out\n")
    loops: list[cst.For | cst.ListComp] = [*module.tree.nodes(cst.For), *module.tree.nodes(cst.ListComp)]
    found = element_loop(module, loops[0])
    assert (module.source(found.work) if found is not None else None) == LOOPS[loop]

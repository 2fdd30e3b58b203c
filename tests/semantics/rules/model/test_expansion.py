"""Which dimensions of a tensor have the size one, and which calls of ``repeat`` could be views."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.rules.model.repeat_where_expand.expansion import repeated_view, shape_of
from torchlint.semantics.module import Module

HEAD = "import torch\n\n\ndef go(x: torch.Tensor, y: torch.Tensor, n, sizes):\n    "

# An expression, a number of dimensions, and those that are known to have the size one.
SHAPES = {
    "x.unsqueeze(1)": (3, {1}),
    "x.unsqueeze(-1)": (3, {2}),
    "x.unsqueeze(0).unsqueeze(2)": (4, {0, 2}),
    "x.unsqueeze(-1).unsqueeze(-2)": (4, {2, 3}),
    "x.unsqueeze(1).float().cuda()": (3, {1}),
    "torch.unsqueeze(x, 1)": (3, {1}),
    "x[:, None]": (3, {1}),
    "x[None, ..., None]": (4, {0, 3}),
    "x[:, 0, None]": (3, {1}),
    "x[y, None]": (3, set()),
    "x.view(1, -1, 1)": (3, {0, 2}),
    "x.view(1, n)": (4, {0, 1, 2}),
    "x.reshape((1, 3))": (2, {0}),
    "x.view(sizes)": (2, set()),
    "torch.arange(n)": (3, {0, 1}),
    "torch.zeros(1, 1, n)": (3, {0, 1}),
    "torch.nn.Parameter(torch.zeros(1, n))": (2, {0}),
    "x.mean(1, keepdim=True)": (3, {1}),
    "torch.sum(x, dim=-1, keepdim=True)": (3, {2}),
    "x.mean(1)": (3, set()),
    "x": (3, set()),
}


@pytest.mark.parametrize("expression", SHAPES)
def test_dimensions_of_the_size_one(expression: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(f"{HEAD}z = {expression}\n    return z\n")
    count, expected = SHAPES[expression]
    shape = shape_of(module, module.tree.nodes(cst.Assign)[0].value)
    assert shape is not None
    assert {i for i in range(count) if shape.is_one(i, count)} == expected


VIEWS = {
    "x.unsqueeze(1).repeat(1, n, 1) + y": True,
    "y.sub(x.unsqueeze(1).repeat((1, n, 1)))": True,
    "torch.where(x[:, None].repeat(1, n), y, 0)": True,
    "x.unsqueeze(1).repeat(1, n, 1, 1) @ y": True,
    "x.unsqueeze(1).repeat(1, n, 1) @ y": False,
    "x.unsqueeze(1).repeat(n, 1, 1) + y": False,
    "x.unsqueeze(1).repeat(1, 1, 1) + y": False,
    "x.unsqueeze(1).repeat(*sizes) + y": False,
    "torch.cat([x.unsqueeze(1).repeat(1, n, 1), y])": False,
    "x.unsqueeze(1).repeat(1, n, 1).view(-1)": False,
    "x.unsqueeze(1).repeat(1, n, 1).add_(y)": False,
}


@pytest.mark.parametrize("expression", VIEWS)
def test_a_view_would_do(expression: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(f"{HEAD}return {expression}\n")
    found = [call for call in module.tree.nodes(cst.Call) if repeated_view(module, call) is not None]
    assert bool(found) is VIEWS[expression]

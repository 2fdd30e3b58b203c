"""Which numbers of a file are sizes off the grid of tensor cores that its author has chosen."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import indent

import pytest

from torchlint.rules.model.misaligned_dimension.widths import What, off_grid
from torchlint.semantics.module import Module

# The layers of a model, and what is found: size, what it counts, and the size to make it.
MODELS = {
    "self.a = nn.Linear(10, 500)\nself.b = nn.Linear(500, 10)": [(500, What.FEATURES, 504)],
    "self.a = nn.Conv2d(3, 100, 3)\nself.b = nn.Conv2d(100, 64, 3)": [(100, What.CHANNELS, 104)],
    "self.a = nn.Embedding(99, 300)\nself.b = nn.LSTM(300, 512)": [(300, What.FEATURES, 304)],
    "width = 100\nself.a = nn.Linear(8, width)\nself.b = nn.Linear(width, 8)": [(100, What.FEATURES, 104)],
    "self.a = nn.Embedding(50257, 64)\nself.b = nn.Linear(64, 50257)": [
        (50257, What.VOCABULARY, 50264),
        (50257, What.VOCABULARY, 50264),
    ],
    "self.lm_head = nn.Linear(64, 30522)": [(30522, What.VOCABULARY, 30528)],
    "self.a = nn.Linear(10, 500)": [],
    "self.a = nn.Linear(10, 60)\nself.b = nn.Linear(60, 10)": [],
    "self.a = nn.Linear(500, 512)\nself.b = nn.Linear(512, 500)\nself.c = nn.Linear(500, 8)": [],
    "self.a = nn.Linear(64, 21841)": [],
    "self.a = nn.Embedding(50257, 64)": [],
    "self.a = nn.Linear(10, n)\nself.b = nn.Linear(n, 10)": [],
}


@pytest.mark.parametrize("layers", MODELS)
def test_sizes_of_layers(layers: str, semantic_model: Callable[[str], Module]) -> None:
    head = "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n"
    module = semantic_model(f"{head}        super().__init__()\n{indent(layers, ' ' * 8)}\n")
    assert [(one.size, one.what, one.padded) for one in off_grid(module)] == MODELS[layers]


LOADERS = {
    "DataLoader(data, batch_size=100)": [(100, What.BATCH, 104)],
    "DataLoader(data, 100, True)": [(100, What.BATCH, 104)],
    "DataLoader(data, batch_size=128)": [],
    "DataLoader(data, batch_size=50)": [],
    "DataLoader(data, batch_size=len(data))": [],
}


@pytest.mark.parametrize("loader", LOADERS)
def test_sizes_of_batches(loader: str, semantic_model: Callable[[str], Module]) -> None:
    program = (
        f"from torch.utils.data import DataLoader\n\nfor x in {loader}:\n    model(x.cuda())\nlimit = 99\n"
    )
    assert [(one.size, one.what, one.padded) for one in off_grid(semantic_model(program))] == LOADERS[loader]

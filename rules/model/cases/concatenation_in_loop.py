"""The features of a data set are extracted batch by batch, and each batch is added to those before it.

One step goes through 64 batches without gradients.

- small: 8 rows of 64 numbers a batch through two linear layers; launch-bound
- medium: 64 rows of 1024 numbers a batch
- large: 512 rows of 2048 numbers a batch, 256 MB of features in all; bound by compute and memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (8, 64), "medium": (64, 1024), "large": (512, 2048)}
BATCHES = 64


@dataclass
class State:
    batches: list[torch.Tensor]
    model: nn.Module


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, width = SIZES[size]
    batches = [torch.randn(rows, width, device=device) for _ in range(BATCHES)]
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device)
    return State(batches, model.eval())


@torch.no_grad()
def step(state: State) -> torch.Tensor:
    features = state.model(state.batches[0])
    for batch in state.batches[1:]:
        features = torch.cat([features, state.model(batch)])
    return features

"""The squared errors of a batch are computed row by row, and added up.

One step goes through all rows of one batch.

- small: 16 rows of 64 numbers; launch-bound
- medium: 128 rows of 4096 numbers
- large: 1024 rows of 16384 numbers
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the mean is taken over all rows at once"
SIZES = {"small": (16, 64), "medium": (128, 4096), "large": (1024, 16384)}


@dataclass
class State:
    x: torch.Tensor
    target: torch.Tensor
    model: nn.Module


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, width = SIZES[size]
    x = torch.randn(rows, width, device=device)
    target = torch.randn(rows, width, device=device)
    return State(x, target, nn.LayerNorm(width).to(device))


@torch.no_grad()
def step(state: State) -> torch.Tensor:
    prediction = torch.tanh(state.model(state.x))
    total = torch.zeros((), device=prediction.device)
    for i in range(len(prediction)):
        total += nn.functional.mse_loss(prediction[i], state.target[i])
    return total / len(prediction)


@torch.no_grad()
def step_fixed(state: State) -> torch.Tensor:
    prediction = torch.tanh(state.model(state.x))
    return nn.functional.mse_loss(prediction, state.target)

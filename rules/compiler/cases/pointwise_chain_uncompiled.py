"""A loss that is written out in pointwise operations, with gradients for what it is given.

One step computes the loss and its gradients for two batches.

- small: 64 rows of 64 predictions; launch-bound
- medium: 8192 rows of 1024 predictions
- large: 32768 rows of 2048 predictions; bound by memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "what stays in registers is not rounded in between"
SIZES = {"small": (64, 64), "medium": (8192, 1024), "large": (32768, 2048)}
BATCHES = 2


def robust_loss(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    difference = prediction - target
    distance = torch.sqrt(difference * difference + 1e-6)
    weight = torch.sigmoid(4.0 - distance)
    return (weight * distance + torch.log1p(distance)).mean()


class Shift(nn.Module):
    def __init__(self, rows: int, features: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.randn(rows, features))


@dataclass
class State:
    targets: list[torch.Tensor]
    model: Shift


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, features = SIZES[size]
    targets = [torch.randn(rows, features, device=device) for _ in range(BATCHES)]
    return State(targets, Shift(rows, features).to(device))


def step(state: State) -> torch.Tensor:
    total = torch.zeros((), device=state.targets[0].device)
    for target in state.targets:
        state.model.zero_grad()
        loss = robust_loss(state.model.values, target)
        loss.backward()
        total += loss.detach()
    return total

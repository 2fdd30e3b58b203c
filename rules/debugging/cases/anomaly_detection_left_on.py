"""A small residual network is trained with anomaly detection on.

One step is a forward pass, a backward pass and an update.

- small: 8 blocks of width 64, 32 rows; launch-bound
- medium: 8 blocks of width 1024, 1024 rows
- large: 8 blocks of width 4096, 4096 rows; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 32), "medium": (1024, 1024), "large": (4096, 4096)}
BLOCKS = 8


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(BLOCKS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return x


@dataclass
class State:
    rows: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    torch.autograd.set_detect_anomaly(True)
    width, count = SIZES[size]
    rows = torch.randn(count, width, device=device)
    model = Residual(width).to(device)
    return State(rows, model, torch.optim.SGD(model.parameters(), lr=1e-3))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=True)
    loss = state.model(state.rows).square().mean()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

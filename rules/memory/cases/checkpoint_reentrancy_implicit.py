"""A residual network of wide layers is trained, and each block is run again in the backward pass.

One step trains on one batch.

- small: 64 rows of 64 numbers, 4 blocks; launch-bound
- medium: 2048 rows of 512 numbers, 6 blocks
- large: 8192 rows of 1024 numbers, 8 blocks; bound by compute
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

SIZES = {"small": (64, 64, 4), "medium": (2048, 512, 6), "large": (8192, 1024, 8)}


class Network(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )
            for _ in range(depth)
        )
        self.first = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + checkpoint(block, x)
        return x


@dataclass
class State:
    inputs: torch.Tensor
    model: Network
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, width, depth = SIZES[size]
    inputs = torch.randn(rows, width, device=device)
    model = Network(width, depth).to(device)
    return State(inputs, model, torch.optim.SGD(model.parameters(), lr=0.001))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad()
    loss = state.model(state.inputs).square().mean()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

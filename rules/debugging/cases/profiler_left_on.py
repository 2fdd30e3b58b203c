"""A small residual network is trained below a profiler that records shapes and stacks, with no schedule.

One step trains on the two batches of an epoch, each with a forward pass, a backward pass and an update.

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
    batches: list[torch.Tensor]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    width, count = SIZES[size]
    batches = [torch.randn(count, width, device=device), torch.randn(count, width, device=device)]
    model = Residual(width).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=1e-3))


def step(state: State) -> torch.Tensor:
    with torch.profiler.profile(record_shapes=True, with_stack=True):
        for rows in state.batches:
            state.optimizer.zero_grad(set_to_none=True)
            loss = state.model(rows).square().mean()
            loss.backward()
            state.optimizer.step()
    return loss.detach()


def step_fixed(state: State) -> torch.Tensor:
    for rows in state.batches:
        state.optimizer.zero_grad(set_to_none=True)
        loss = state.model(rows).square().mean()
        loss.backward()
        state.optimizer.step()
    return loss.detach()

"""A layer with a backward pass of its own is checked against finite differences in every step.

One step checks the layer on a few rows and trains on a batch. What is checked is of the same size everywhere.

- small: 64 rows, 64 wide; launch-bound
- medium: 4096 rows, 1024 wide
- large: 16384 rows, 4096 wide; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

SIZES = {"small": (64, 64), "medium": (4096, 1024), "large": (16384, 4096)}
STEPS = 2


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * x * grad


@dataclass
class State:
    rows: torch.Tensor
    probe: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    count, width = SIZES[size]
    rows = torch.randn(count, width, device=device)
    probe = torch.randn(2, 4, dtype=torch.double, device=device, requires_grad=True)
    model = nn.Linear(width, width).to(device)
    return State(rows, probe, model, torch.optim.SGD(model.parameters(), lr=1e-4))


def train(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=True)
    loss = Square.apply(state.model(state.rows)).mean()
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def step(state: State) -> torch.Tensor:
    for _ in range(STEPS):
        torch.autograd.gradcheck(Square.apply, (state.probe,))
        loss = train(state)
    return loss


def step_fixed(state: State) -> torch.Tensor:
    for _ in range(STEPS):
        loss = train(state)
    return loss

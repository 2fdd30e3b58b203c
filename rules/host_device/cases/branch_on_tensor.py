"""A regression is trained, and each batch is skipped if its loss is not a number.

One step trains on four batches. The good form remembers on the device whether every loss was finite, and
looks once, after the last batch.

- small: 64 samples, layers 128 wide; launch-bound
- medium: 1024 samples, layers 1024 wide
- large: 2048 samples, layers 4096 wide; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 128), "medium": (1024, 1024), "large": (2048, 4096)}
BATCHES = 4


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, width = SIZES[size]
    batches = [
        (torch.randn(samples, width, device=device), torch.randn(samples, 1, device=device))
        for _ in range(BATCHES)
    ]
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    ).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01), device)


def step(state: State) -> torch.Tensor:
    for inputs, targets in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        if torch.isnan(loss):
            continue
        loss.backward()
        state.optimizer.step()
    return loss.detach()


def step_fixed(state: State) -> torch.Tensor:
    finite = torch.ones((), dtype=torch.bool, device=state.device)
    for inputs, targets in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        finite &= torch.isfinite(loss)
        loss.backward()
        state.optimizer.step()
    if not finite:
        raise RuntimeError("the loss is not finite")
    return loss.detach()

"""A classifier is trained with class weights and a table that stay on the host, and move for each batch.

One step trains on each of four batches.

- small: 32 rows of 64 features; launch-bound
- medium: 4096 rows of 1024 features
- large: 16384 rows of 2048 features; the matrices keep the device busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 64), "medium": (4096, 1024), "large": (16384, 2048)}


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, width = SIZES[size]
    batches = [
        (torch.rand(rows, width, device=device), torch.randint(0, 10, (rows,), device=device))
        for _ in range(4)
    ]
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01), device)


def step(state: State) -> torch.Tensor:
    losses = []
    device = state.device
    weights = torch.linspace(0.5, 1.5, 10)
    prior = torch.linspace(-0.1, 0.1, 10)
    for inputs, labels in state.batches:
        out = state.model(inputs) + prior.to(device)
        loss = nn.functional.cross_entropy(out, labels, weight=weights.to(device))
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)

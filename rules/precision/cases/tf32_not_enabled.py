"""A perceptron is trained in float32, and nothing lets its products use TF32.

One step trains on two batches.

- small: 32 samples, four layers 256 wide; launch-bound
- medium: 1024 samples, eight layers 2048 wide
- large: 4096 samples, eight layers 4096 wide; bound by products of matrices
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 4, 256), "medium": (1024, 8, 2048), "large": (4096, 8, 4096)}
# TF32 keeps ten bits of each factor, and what is lost adds up from layer to layer.
TOLERANCE = 0.1
BATCHES = 2


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, depth, width = SIZES[size]
    batches = [
        (torch.randn(samples, width, device=device), torch.randn(samples, width, device=device))
        for _ in range(BATCHES)
    ]
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = torch.empty(0)
    for inputs, targets in state.batches:
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
    return loss.detach()

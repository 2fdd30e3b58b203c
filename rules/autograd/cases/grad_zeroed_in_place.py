"""A deep perceptron is trained, and its gradients are filled with zeros before each backward pass.

One step trains on one batch.

- small: 32 samples, eight layers 64 wide; launch-bound
- medium: 64 samples, eight layers 1024 wide
- large: 256 samples, sixteen layers 4096 wide; gradients of one gigabyte beside a large computation
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 8, 64), "medium": (64, 8, 1024), "large": (256, 16, 4096)}


@dataclass
class State:
    inputs: torch.Tensor
    targets: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, depth, width = SIZES[size]
    inputs = torch.randn(samples, width, device=device)
    targets = torch.randn(samples, width, device=device)
    layers: list[nn.Module] = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers).to(device)
    return State(inputs, targets, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=False)
    loss = nn.functional.mse_loss(state.model(state.inputs), state.targets)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

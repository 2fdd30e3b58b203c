"""A multilayer perceptron is trained whose activation, GELU by tanh, is written out.

One step trains on one batch.

- small: 32 samples, four layers of 64; launch-bound
- medium: 8192 samples, four layers of 1024
- large: 32768 samples, four layers of 1024; half of the time goes into memory traffic
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the fused function rounds once"
SIZES = {"small": (32, 64), "medium": (8192, 1024), "large": (32768, 1024)}
DEPTH = 4


@dataclass
class State:
    samples: torch.Tensor
    targets: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


class Activation(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


def setup(device: str = "cuda", size: str = "small") -> State:
    count, width = SIZES[size]
    samples = torch.randn(count, width, device=device)
    targets = torch.randn(count, width, device=device)
    layers = [layer for _ in range(DEPTH) for layer in (nn.Linear(width, width), Activation())]
    model = nn.Sequential(*layers).to(device)
    return State(samples, targets, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = nn.functional.mse_loss(state.model(state.samples), state.targets)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

"""A mixture density is fitted: the logarithm of a sum of exponentials is taken step by step.

One step trains the heads of the mixture on one batch of features.

- small: 64 samples, a mixture of 8 in 4 dimensions; launch-bound
- medium: 8192 samples, a mixture of 64 in 32 dimensions
- large: 32768 samples, a mixture of 64 in 32 dimensions; bound by memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the fused functions round once"
SIZES = {"small": (64, 8, 4), "medium": (8192, 64, 32), "large": (32768, 64, 32)}
WIDTH = 32


@dataclass
class State:
    features: torch.Tensor
    points: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


class Mixture(nn.Module):
    def __init__(self, components: int, dimensions: int) -> None:
        super().__init__()
        self.components = components
        self.weights = nn.Linear(WIDTH, components)
        self.means = nn.Linear(WIDTH, components * dimensions)

    def forward(self, features: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        means = self.means(features).unflatten(-1, (self.components, -1))
        distances = (points.unsqueeze(1) - means).square().mean(-1)
        log_weights = torch.log(torch.softmax(self.weights(features), dim=-1))
        return torch.log(torch.sum(torch.exp(log_weights - distances), dim=-1))


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, components, dimensions = SIZES[size]
    features = torch.randn(samples, WIDTH, device=device)
    points = torch.randn(samples, dimensions, device=device)
    model = Mixture(components, dimensions).to(device)
    return State(features, points, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = -state.model(state.features, state.points).mean()
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

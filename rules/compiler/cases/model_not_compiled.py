"""A gated perceptron with norms and activations between its layers is trained, operation by operation.

One step trains on two batches.

- small: 32 samples, four layers 256 wide; launch-bound
- medium: 1024 samples, eight layers 1024 wide
- large: 8192 samples, twelve layers 1024 wide; bound by memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the compiled operations round less often"
SIZES = {"small": (32, 4, 256), "medium": (1024, 8, 1024), "large": (8192, 12, 1024)}
BATCHES = 2


class Gate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layer = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(self.norm(x))
        gated: torch.Tensor = x + torch.tanh(y) * torch.sigmoid(y) * 0.5 + y.clamp(-1.0, 1.0) * 0.1
        return gated


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
    model = nn.Sequential(*(Gate(width) for _ in range(depth))).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = torch.empty(0)
    for inputs, targets in state.batches:
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
    return loss.detach()

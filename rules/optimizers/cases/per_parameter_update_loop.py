"""A stack of transformer layers is trained, and a moving average of its weights kept parameter by parameter.

One step trains on one batch and takes the average.

- small: 2 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 4 sequences of 128 tokens, eight layers 768 wide
- large: 4 sequences of 512 tokens, twelve layers 1536 wide; the average reads and writes gigabytes
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the average is interpolated"
SIZES = {"small": (2, 16, 4, 64), "medium": (4, 128, 8, 768), "large": (4, 512, 12, 1536)}


class Average:
    """The copy of a model that follows it slowly."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.copy = copy.deepcopy(model)
        self.decay = decay

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for averaged, current in zip(self.copy.parameters(), model.parameters(), strict=True):
            averaged.mul_(self.decay).add_(current, alpha=1 - self.decay)


@dataclass
class State:
    inputs: torch.Tensor
    targets: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer
    average: Average


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, length, depth, width = SIZES[size]
    inputs = torch.randn(sequences, length, width, device=device)
    targets = torch.randn(sequences, length, width, device=device)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return State(inputs, targets, model, optimizer, Average(model, 0.99))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(state.model(state.inputs), state.targets)
    loss.backward()
    state.optimizer.step()
    state.average.update(state.model)
    return torch.stack([loss.detach(), next(state.average.copy.parameters()).detach().mean()])

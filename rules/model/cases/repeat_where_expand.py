"""Features are scaled and shifted for each speaker, as in conditional normalization, in the forward pass.

One step is one forward and backward pass of eight layers.

- small: 8 sequences of 16 vectors of 64 numbers; launch-bound
- medium: 32 sequences of 256 vectors of 512 numbers
- large: 64 sequences of 1024 vectors of 512 numbers; bound by memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (8, 16, 64), "medium": (32, 256, 512), "large": (64, 1024, 512)}
LAYERS = 8


class Conditional(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Linear(width, width)
        self.shift = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, speaker: torch.Tensor) -> torch.Tensor:
        scale = self.scale(speaker).unsqueeze(1).repeat(1, x.shape[1], 1)
        shift = self.shift(speaker).unsqueeze(1).repeat(1, x.shape[1], 1)
        return x * scale + shift


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Conditional(width) for _ in range(LAYERS)])

    def forward(self, x: torch.Tensor, speaker: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, speaker)
        return x


@dataclass
class State:
    x: torch.Tensor
    speaker: torch.Tensor
    model: nn.Module


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, length, width = SIZES[size]
    x = torch.randn(sequences, length, width, device=device)
    speaker = torch.randn(sequences, width, device=device)
    return State(x, speaker, Model(width).to(device))


def step(state: State) -> torch.Tensor:
    state.model.zero_grad()
    y = state.model(state.x, state.speaker)
    y.mean().backward()
    return y.detach()

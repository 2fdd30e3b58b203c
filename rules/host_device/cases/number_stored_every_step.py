"""A model is told which slot it works on by numbers that are stored in a tensor of the device.

One step runs the model four times, and stores two numbers before each run.

- small: 32 vectors with 64 features; launch-bound
- medium: 4096 vectors with 2048 features; the queue is full when the numbers are stored
- large: 16384 vectors with 4096 features; the matrices keep the device busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 64), "medium": (4096, 2048), "large": (16384, 4096)}


@dataclass
class State:
    features: torch.Tensor
    model: nn.Module
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    vectors, width = SIZES[size]
    features = torch.rand(vectors, width, device=device)
    return State(
        features,
        nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device),
        device,
    )


@torch.no_grad()
def step(state: State) -> torch.Tensor:
    scales = torch.ones(4, device=state.device)
    shifts = torch.zeros(4, device=state.device)
    sums = []
    for slot in range(4):
        scales[slot] = 0.5
        shifts[slot] = 2
        sums.append((state.model(state.features) * scales[slot] + shifts[slot]).mean())
    return torch.stack(sums)

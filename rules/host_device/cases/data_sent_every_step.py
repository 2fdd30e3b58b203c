"""A model scores batches of sequences whose lengths and offsets come from the host as lists.

One step scores four batches, each with two lists that are made tensors of the device.

- small: 16 sequences with 32 features; launch-bound
- medium: 2048 sequences with 2048 features; the queue is full when the lists are sent
- large: 8192 sequences with 4096 features; the matrices keep the device busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (16, 32), "medium": (2048, 2048), "large": (8192, 4096)}


@dataclass
class State:
    batches: list[tuple[torch.Tensor, list[int]]]
    model: nn.Module
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, width = SIZES[size]
    batches = [
        (torch.rand(sequences, width, device=device), [1 + (7 * i + b) % width for i in range(sequences)])
        for b in range(4)
    ]
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)]
    return State(batches, nn.Sequential(*layers).to(device), device)


@torch.no_grad()
def step(state: State) -> torch.Tensor:
    scores = []
    for features, lengths in state.batches:
        hidden = state.model(features)
        ends = torch.tensor([length - 1 for length in lengths], device=state.device)
        weights = torch.tensor([1.0 / length for length in lengths]).to(state.device)
        last = hidden.gather(1, ends[:, None]).squeeze(1)
        scores.append((last * weights).sum())
    return torch.stack(scores)

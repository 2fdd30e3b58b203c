"""A classifier is trained, and the host waits for the device after every batch.

One step trains on four batches. The good form does not wait at all; a CPU has nothing to wait for.

- small: 64 samples, layers 128 wide; launch-bound
- medium: 1024 samples, layers 1024 wide
- large: 2048 samples, layers 4096 wide; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 128), "medium": (1024, 1024), "large": (2048, 4096)}
BATCHES = 4
CLASSES = 10


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, width = SIZES[size]
    batches = [
        (torch.randn(samples, width, device=device), torch.randint(CLASSES, (samples,), device=device))
        for _ in range(BATCHES)
    ]
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
    ).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    for inputs, labels in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(state.model(inputs), labels)
        loss.backward()
        state.optimizer.step()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return loss.detach()


def step_fixed(state: State) -> torch.Tensor:
    for inputs, labels in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(state.model(inputs), labels)
        loss.backward()
        state.optimizer.step()
    return loss.detach()

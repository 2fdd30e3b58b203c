"""A classifier is trained, and the running loss is read back after every batch.

One step trains on four batches. The batches are on the device already, so that nothing else makes the host
wait. What a wait costs is what the host could do meanwhile: where it draws the noise for the next batch, as a
loader without workers does, that happens beside the device or behind it.

- small: 64 samples, layers 128 wide; launching the kernels takes longer than running them, so that the device
  is done whenever the host asks
- medium: 2048 samples, layers 4096 wide; the host draws a million numbers for each batch, which takes about
  as long as the device needs for one
- large: 2048 samples, layers 4096 wide; the device is busy all the time, and the host has nothing to do
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 128, 0), "medium": (2048, 4096, 1 << 20), "large": (2048, 4096, 0)}
BATCHES = 4
CLASSES = 10


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    noise: torch.Tensor
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, width, drawn = SIZES[size]
    batches = [
        (torch.randn(samples, width, device=device), torch.randint(CLASSES, (samples,), device=device))
        for _ in range(BATCHES)
    ]
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return State(batches, model, optimizer, torch.empty(drawn), device)


def train(state: State) -> float | torch.Tensor:
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for inputs, labels in state.batches:
        state.optimizer.zero_grad()
        loss = criterion(state.model(inputs), labels)
        loss.backward()
        state.optimizer.step()
        total += loss.item()
        state.noise.normal_()
    return total / len(state.batches)


def step(state: State) -> torch.Tensor:
    return torch.as_tensor(train(state), device=state.device)

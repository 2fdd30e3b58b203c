"""A regression is trained, and each batch is skipped if its loss is not a number.

One step trains on four batches. The good form keeps the losses and looks once, after the last batch. What a
wait costs is what the host could do meanwhile, such as to draw the noise for the next batch.

- small: 64 samples, layers 128 wide; launch-bound, so that the device is done whenever the host asks
- medium: 2048 samples, layers 4096 wide; the host draws a million numbers for each batch, which takes about
  as long as the device needs for one
- large: 2048 samples, layers 4096 wide; compute-bound, and the host has nothing to do
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 128, 0), "medium": (2048, 4096, 1 << 20), "large": (2048, 4096, 0)}
BATCHES = 4


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    noise: torch.Tensor


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, width, drawn = SIZES[size]
    batches = [
        (torch.randn(samples, width, device=device), torch.randn(samples, 1, device=device))
        for _ in range(BATCHES)
    ]
    model = nn.Sequential(
        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return State(batches, model, optimizer, torch.empty(drawn))


def step(state: State) -> torch.Tensor:
    for inputs, targets in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        state.noise.normal_()
        if torch.isnan(loss):
            continue
        loss.backward()
        state.optimizer.step()
    return loss.detach()


def step_fixed(state: State) -> torch.Tensor:
    losses = []
    for inputs, targets in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        state.noise.normal_()
        losses.append(loss.detach())
        loss.backward()
        state.optimizer.step()
    if torch.isnan(torch.stack(losses)).any():
        raise RuntimeError("the loss is not a number")
    return loss.detach()

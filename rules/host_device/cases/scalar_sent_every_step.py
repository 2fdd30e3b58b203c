"""An embedding is trained with a margin that is sent to the device for each batch.

One step trains on each of four batches.

- small: 32 pairs of vectors with 64 features; launch-bound
- medium: 4096 pairs of vectors with 1024 features
- large: 16384 pairs of vectors with 2048 features; the matrices keep the device busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 64), "medium": (4096, 1024), "large": (16384, 2048)}


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    pairs, width = SIZES[size]
    batches = [
        (torch.rand(pairs, width, device=device), torch.rand(pairs, width, device=device)) for _ in range(4)
    ]
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01), device)


def step(state: State) -> torch.Tensor:
    losses = []
    for number, (left, right) in enumerate(state.batches):
        margin = torch.tensor(0.5 + 0.01 * number, device=state.device)
        distance = (state.model(left) - state.model(right)).square().mean(dim=1)
        loss = torch.maximum(margin - distance, torch.tensor(0.0).to(state.device)).mean()
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)

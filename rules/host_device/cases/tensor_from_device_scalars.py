"""A model with four losses is trained, and the losses of each batch are put into one tensor for the log.

One step trains on each of four batches.

- small: 32 rows of 64 features; launch-bound
- medium: 4096 rows of 1024 features
- large: 16384 rows of 2048 features; the matrices keep the device busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 64), "medium": (4096, 1024), "large": (16384, 2048)}


@dataclass
class State:
    batches: list[torch.Tensor]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, width = SIZES[size]
    batches = [torch.rand(rows, width, device=device) for _ in range(4)]
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    log = []
    for batch in state.batches:
        out = state.model(batch)
        error = nn.functional.mse_loss(out, batch)
        distance = nn.functional.l1_loss(out, batch)
        size = out.square().mean()
        shift = out.mean().abs()
        loss = error + distance + 0.1 * size + 0.1 * shift
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
        log.append(torch.tensor([error, distance, size, shift]))
    return torch.stack(log)

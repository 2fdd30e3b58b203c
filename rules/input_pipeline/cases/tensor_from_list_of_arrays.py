"""A small classifier is trained on batches that are put together from the arrays of a replay buffer.

One step draws a batch, makes a tensor of its rows, and trains on it.

- small: 32 rows of 64 numbers, one hidden layer of 64; launch-bound
- medium: 256 rows of 1024 numbers, two hidden layers of 1024; making the tensor takes most of the time
- large: 256 rows of 1024 numbers, eight hidden layers of 8192; training takes about as long
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 64, 1, 64), "medium": (256, 1024, 2, 1024), "large": (256, 1024, 8, 8192)}
CLASSES = 10


@dataclass
class State:
    rows: torch.Tensor
    labels: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str
    batch: int
    steps: int = 0


def setup(device: str = "cuda", size: str = "small") -> State:
    batch, numbers, depth, width = SIZES[size]
    rows = torch.randn(4 * batch, numbers)
    labels = torch.randint(CLASSES, (batch,)).to(device)
    layers: list[nn.Module] = [nn.Linear(numbers, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, CLASSES)).to(device)
    return State(rows, labels, model, torch.optim.SGD(model.parameters(), lr=0.01), device, batch)


def step(state: State) -> torch.Tensor:
    first = state.steps % 4 * state.batch
    state.steps += 1
    transitions = [state.rows[index].numpy() for index in range(first, first + state.batch)]
    inputs = torch.tensor(transitions, dtype=torch.float32, device=state.device)
    state.optimizer.zero_grad()
    loss = nn.functional.cross_entropy(state.model(inputs), state.labels)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

"""A convolutional classifier is trained, and every allocation of the run is recorded.

One step trains on two batches. The recording is of the whole process, so each form switches it.

- small: 8 images of 32 by 32 pixels, three layers of 16 channels; launch-bound
- medium: 16 images of 64 by 64 pixels, six layers of 64 channels
- large: 32 images of 128 by 128 pixels, six layers of 64 channels; bound by compute and memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (8, 32, 3, 16), "medium": (16, 64, 6, 64), "large": (32, 128, 6, 64)}
BATCHES = 2
CLASSES = 10


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    images, pixels, depth, channels = SIZES[size]
    batches = [
        (
            torch.randn(images, 3, pixels, pixels, device=device),
            torch.randint(CLASSES, (images,), device=device),
        )
        for _ in range(BATCHES)
    ]
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))
    model = model.to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def train(state: State) -> torch.Tensor:
    for images, labels in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(state.model(images), labels)
        loss.backward()
        state.optimizer.step()
    return loss.detach()


def step(state: State) -> torch.Tensor:
    if torch.cuda.is_available():
        torch.cuda.memory._record_memory_history(max_entries=100_000)
    return train(state)


def step_fixed(state: State) -> torch.Tensor:
    if torch.cuda.is_available():
        # By its name in a string: an end that the rule sees anywhere would be one for `step`, too.
        getattr(torch.cuda.memory, "_record_memory_history")(enabled=None)  # noqa: B009
    return train(state)

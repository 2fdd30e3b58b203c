"""A convolutional classifier is evaluated, and the total of the losses keeps the graph of every batch.

One step evaluates six batches; the total, and the graphs that it holds, are given up at its end.

- small: 8 images of 32 by 32 pixels, three layers of 16 channels; launch-bound
- medium: 16 images of 64 by 64 pixels, six layers of 64 channels
- large: 32 images of 128 by 128 pixels, six layers of 64 channels; some gigabytes of activations
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (8, 32, 3, 16), "medium": (16, 64, 6, 64), "large": (32, 128, 6, 64)}
BATCHES = 6
CLASSES = 10


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module


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
    return State(batches, model.to(device))


def evaluate(model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    criterion = nn.CrossEntropyLoss()
    model.eval()
    total = 0.0
    for images, labels in batches:
        loss = criterion(model(images), labels)
        total += loss
    return total / len(batches)


def step(state: State) -> torch.Tensor:
    return evaluate(state.model, state.batches).detach()

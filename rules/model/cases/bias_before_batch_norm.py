"""A convolutional classifier is trained whose convolutions have a bias, each with a batch norm behind it.

One step trains on one batch of images.

- small: 8 images of 32 by 32 pixels, four layers of 16 channels; launch-bound
- medium: 32 images of 64 by 64 pixels, eight layers of 64 channels
- large: 32 images of 128 by 128 pixels, twelve layers of 64 channels; bound by compute and memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the norm subtracts a mean that has no bias in it"
SIZES = {"small": (8, 32, 4, 16), "medium": (32, 64, 8, 64), "large": (32, 128, 12, 64)}
CLASSES = 10


@dataclass
class State:
    images: torch.Tensor
    labels: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def _layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def setup(device: str = "cuda", size: str = "small") -> State:
    images, pixels, depth, channels = SIZES[size]
    data = torch.randn(images, 3, pixels, pixels, device=device)
    labels = torch.randint(CLASSES, (images,), device=device)
    model = nn.Sequential(
        _layer(3, channels),
        *(_layer(channels, channels) for _ in range(depth - 1)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, CLASSES),
    ).to(device)
    return State(data, labels, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = nn.functional.cross_entropy(state.model(state.images), state.labels)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

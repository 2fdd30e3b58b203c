"""A convolutional classifier is trained in mixed precision, with the channels first.

One step trains on two batches of images.

- small: 8 images of 32 by 32 pixels, four layers of 16 channels; launch-bound
- medium: 32 images of 64 by 64 pixels, eight layers of 128 channels
- large: 64 images of 96 by 96 pixels, ten layers of 192 channels; bound by the convolutions
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the convolutions sum in another order"
SIZES = {"small": (8, 32, 4, 16), "medium": (32, 64, 8, 128), "large": (64, 96, 10, 192)}
CLASSES, BATCHES = 10, 2


@dataclass
class State:
    device: str
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def _layer(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class Classifier(nn.Module):
    def __init__(self, depth: int, channels: int) -> None:
        super().__init__()
        more = (_layer(channels, channels) for _ in range(depth - 1))
        self.features = nn.Sequential(_layer(3, channels), *more)
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.features(images).mean((2, 3)))
        return scores


def setup(device: str = "cuda", size: str = "small") -> State:
    images, pixels, depth, channels = SIZES[size]
    batches = [
        (
            torch.randn(images, 3, pixels, pixels, device=device),
            torch.randint(CLASSES, (images,), device=device),
        )
        for _ in range(BATCHES)
    ]
    model = Classifier(depth, channels).to(device)
    return State(device, batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = torch.empty(0)
    for images, labels in state.batches:
        images = images.to(state.device)
        with torch.autocast(state.device, dtype=torch.bfloat16, enabled=images.is_cuda):
            loss = nn.functional.cross_entropy(state.model(images), labels)
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
    return loss.detach()

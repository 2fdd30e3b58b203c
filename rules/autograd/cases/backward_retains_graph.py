"""A convolutional classifier is trained, and each backward pass keeps the graph for another one.

One step trains on four batches; what the pass of the last batch kept is given up at its end.

- small: 8 images of 32 by 32 pixels, three layers of 16 channels; launch-bound
- medium: 16 images of 64 by 64 pixels, six layers of 64 channels
- large: 32 images of 128 by 128 pixels, six layers of 64 channels; some gigabytes of activations
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

SIZES = {"small": (8, 32, 3, 16), "medium": (16, 64, 6, 64), "large": (32, 128, 6, 64)}
BATCHES = 4
CLASSES = 10


class Classifier(nn.Module):
    def __init__(self, depth: int, channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 1):
            layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(images).mean(dim=(2, 3)))


@dataclass
class State:
    loader: DataLoader
    model: Classifier
    optimizer: torch.optim.SGD


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
    # The batches are there already, and are handed out as they are.
    return State(DataLoader(batches, batch_size=None), model, torch.optim.SGD(model.parameters(), lr=1e-3))


def train(model: Classifier, optimizer: torch.optim.SGD, loader: DataLoader) -> torch.Tensor:
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward(retain_graph=True)
        optimizer.step()
    return loss.detach()


def step(state: State) -> torch.Tensor:
    return train(state.model, state.optimizer, state.loader)

"""An image classifier is trained on batches that come from pageable memory.

One step trains on one batch. Worker processes copy the images out of a store of 256, which is gone through
again and again, so that an epoch never ends.

- small: 16 images of 32 by 32 pixels, three layers of 16 channels; launch-bound
- medium: 64 images of 112 by 112 pixels, three layers of 32 channels; large batches and little to compute
- large: 64 images of 224 by 224 pixels, six layers of 64 channels; compute-bound
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"small": (16, 32, 3, 16), "medium": (64, 112, 3, 32), "large": (64, 224, 6, 64)}
CLASSES = 10


class Images(Dataset):
    def __init__(self, pixels: int) -> None:
        self.store = torch.randn(256, 3, pixels, pixels)

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.store[index % len(self.store)], index % CLASSES


@dataclass
class State:
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    images, pixels, depth, channels = SIZES[size]
    loader = DataLoader(Images(pixels), batch_size=images, num_workers=8)
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES))
    model = model.to(device)
    return State(iter(loader), model, torch.optim.SGD(model.parameters(), lr=0.01), device)


def step(state: State) -> torch.Tensor:
    images, labels = next(state.batches)
    images, labels = images.to(state.device), labels.to(state.device)
    state.optimizer.zero_grad()
    loss = nn.functional.cross_entropy(state.model(images), labels)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

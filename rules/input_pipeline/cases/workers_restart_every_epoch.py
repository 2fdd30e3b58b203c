"""An image classifier is trained for several epochs on a small data set, by worker processes.

One step trains for two epochs. The workers copy the images out of a store that is in memory.

- small: 2 batches of 16 images of 32 by 32 pixels an epoch, one layer; most time goes into starting workers
- medium: 6 batches of 64 images of 64 by 64 pixels an epoch, four layers of 32 channels
- large: 6 batches of 64 images of 112 by 112 pixels an epoch, eight layers of 64 channels
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"small": (2, 16, 32, 1, 16), "medium": (6, 64, 64, 4, 32), "large": (6, 64, 112, 8, 64)}
CLASSES = 10


class Images(Dataset):
    def __init__(self, count: int, pixels: int) -> None:
        self.store = torch.randn(256, 3, pixels, pixels)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.store[index % len(self.store)], index % CLASSES


class Trainer:
    def __init__(
        self, device: str, batches: int, images: int, pixels: int, depth: int, channels: int
    ) -> None:
        self.device = device
        data = Images(batches * images, pixels)
        self.loader = DataLoader(data, batch_size=images, num_workers=2, pin_memory=True)
        layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1), nn.ReLU()]
        for _ in range(depth - 1):
            layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)]
        self.model = nn.Sequential(*layers).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def train(self) -> torch.Tensor:
        losses = []
        for _ in range(2):
            for images, labels in self.loader:
                images = images.to(self.device, non_blocking=True)
                labels = labels.to(self.device, non_blocking=True)
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(images), labels)
                loss.backward()
                self.optimizer.step()
                losses.append(loss.detach())
        return torch.stack(losses)


def setup(device: str = "cuda", size: str = "small") -> Trainer:
    return Trainer(device, *SIZES[size])


def step(state: Trainer) -> torch.Tensor:
    return state.train()

"""An image classifier is trained from compressed images that the training process itself decodes.

One step trains on one batch. Each image is decompressed, resized and normalised; always the same 64 images
come round again, so that an epoch never ends.

- small: 8 images of 32 by 32 pixels, three layers of 16 channels; launch-bound
- medium: 32 images of 160 by 160 pixels, four layers of 32 channels; decoding takes most of the time
- large: 16 images of 224 by 224 pixels, sixteen layers of 64 channels; training takes about as long
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"small": (8, 32, 3, 16), "medium": (32, 160, 4, 32), "large": (16, 224, 16, 64)}
CLASSES = 10


class Images(Dataset):
    """Compressed images, as the page cache holds the files of a folder that is read again and again."""

    def __init__(self, pixels: int) -> None:
        self.pixels, self.stored = pixels, pixels + pixels // 8
        generator = torch.Generator().manual_seed(0)
        self.files = []
        for _ in range(64):
            image = torch.randint(16, (3, self.stored, self.stored), dtype=torch.uint8, generator=generator)
            self.files.append(zlib.compress(image.numpy().tobytes(), level=1))

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        data = bytearray(zlib.decompress(self.files[index % len(self.files)]))
        image = torch.frombuffer(data, dtype=torch.uint8).view(1, 3, self.stored, self.stored).float()
        image = nn.functional.interpolate(image, self.pixels, mode="bilinear", antialias=True)[0]
        return (image - image.mean()) / image.std(), index % CLASSES


@dataclass
class State:
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    images, pixels, depth, channels = SIZES[size]
    # Image libraries decode in one thread, as a worker does.
    torch.set_num_threads(1)
    loader = DataLoader(Images(pixels), batch_size=images)
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

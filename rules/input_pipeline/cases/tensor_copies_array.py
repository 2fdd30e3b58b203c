"""A classifier is trained on batches whose frames are cut out of recordings that lie in memory as arrays.

One step trains on one batch. The loader works in the training process, and an epoch never ends.

- small: 16 frames of 1000 numbers, one hidden layer of 16; launch-bound
- medium: 32 frames of 1 million numbers, one hidden layer of 16; making the batch takes most of the time
- large: 32 frames of 1 million numbers, eight hidden layers of 8192; training takes about as long
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZES = {"small": (16, 1000, 1, 16), "medium": (32, 1_000_000, 1, 16), "large": (32, 1_000_000, 8, 8192)}
CLASSES = 10


class Frames(Dataset):
    def __init__(self, numbers: int) -> None:
        self.numbers = numbers
        self.recording = torch.randn(2 * numbers).numpy()

    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        first = index % self.numbers
        return torch.tensor(self.recording[first : first + self.numbers]), index % CLASSES


@dataclass
class State:
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    frames, numbers, depth, width = SIZES[size]
    loader = DataLoader(Frames(numbers), batch_size=frames)
    layers: list[nn.Module] = [nn.AdaptiveAvgPool1d(512), nn.Linear(512, width), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, CLASSES)).to(device)
    return State(iter(loader), model, torch.optim.SGD(model.parameters(), lr=0.01), device)


def step(state: State) -> torch.Tensor:
    frames, labels = next(state.batches)
    frames, labels = frames.to(state.device), labels.to(state.device)
    state.optimizer.zero_grad()
    loss = nn.functional.cross_entropy(state.model(frames), labels)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

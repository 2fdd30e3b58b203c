"""A denoiser is trained: the noise is drawn on the host and then moved to the device.

One step trains on one batch of images.

- small: 16 images of 32 by 32 pixels, two convolutions with 16 channels; launch-bound
- medium: 32 images of 128 by 128 pixels, 32 channels
- large: 64 images of 256 by 256 pixels, 64 channels; the convolutions keep the device busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (16, 32, 16), "medium": (32, 128, 32), "large": (64, 256, 64)}


@dataclass
class State:
    images: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    images, pixels, channels = SIZES[size]
    data = torch.rand(images, 3, pixels, pixels, device=device)
    model = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 3, 3, padding=1),
    ).to(device)
    return State(data, model, torch.optim.SGD(model.parameters(), lr=0.01), device)


def step(state: State) -> torch.Tensor:
    noise = torch.randn(state.images.shape).to(state.device)
    loss = nn.functional.mse_loss(state.model(state.images + noise), noise)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

"""A multi-label classifier is trained with binary cross entropy of a sigmoid.

One step trains on one batch of features, with a label for each of many classes.

- small: 32 samples, 64 classes; launch-bound
- medium: 8192 samples, 8192 classes
- large: 16384 samples, 16384 classes; bound by memory traffic over the classes
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the fused function rounds once"
SIZES = {"small": (32, 64), "medium": (8192, 8192), "large": (16384, 16384)}
WIDTH = 64


@dataclass
class State:
    features: torch.Tensor
    labels: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, classes = SIZES[size]
    features = torch.randn(samples, WIDTH, device=device)
    labels = (torch.rand(samples, classes, device=device) < 0.1).float()
    model = nn.Linear(WIDTH, classes).to(device)
    return State(features, labels, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    logits = state.model(state.features)
    loss = nn.functional.binary_cross_entropy(torch.sigmoid(logits), state.labels)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

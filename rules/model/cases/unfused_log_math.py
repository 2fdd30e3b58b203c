"""A classifier over a vocabulary learns from a teacher: the logarithm of a softmax is taken in two steps.

One step trains on one batch of features, with the probabilities that the teacher gives each word.

- small: 32 samples, 64 words; launch-bound
- medium: 2048 samples, 32,000 words
- large: 8192 samples, 32,000 words; bound by memory traffic over the words
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the fused function rounds once"
SIZES = {"small": (32, 64), "medium": (2048, 32_000), "large": (8192, 32_000)}
WIDTH = 64


@dataclass
class State:
    features: torch.Tensor
    teacher: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, words = SIZES[size]
    features = torch.randn(samples, WIDTH, device=device)
    teacher = torch.softmax(torch.randn(samples, words, device=device), dim=-1)
    model = nn.Linear(WIDTH, words).to(device)
    return State(features, teacher, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    log_probs = torch.log(torch.softmax(state.model(state.features), dim=-1))
    loss = -(state.teacher * log_probs).sum(dim=-1).mean()
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

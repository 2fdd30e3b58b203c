"""A classifier over a vocabulary predicts: probabilities are computed to find the most likely word.

One step predicts four batches of features.

- small: 32 samples, 1,000 words; launch-bound
- medium: 512 samples, 32,000 words
- large: 4096 samples, 128,000 words; bound by memory traffic over the words
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (32, 1000), "medium": (512, 32_000), "large": (4096, 128_000)}
WIDTH, BATCHES = 64, 4


@dataclass
class State:
    batches: list[torch.Tensor]
    model: nn.Module


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, words = SIZES[size]
    batches = [torch.randn(samples, WIDTH, device=device) for _ in range(BATCHES)]
    return State(batches, nn.Linear(WIDTH, words).to(device))


@torch.no_grad()
def step(state: State) -> torch.Tensor:
    predicted = []
    for features in state.batches:
        probabilities = torch.softmax(state.model(features), dim=-1)
        predicted.append(probabilities.argmax(dim=-1))
    return torch.stack(predicted)

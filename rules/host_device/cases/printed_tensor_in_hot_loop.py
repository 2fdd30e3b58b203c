"""A next-word model is trained, and the loss of every batch is printed.

One step trains on four batches. The good form prints the loss of the last one.

- small: 64 words, layers 64 wide, a vocabulary of 256; launch-bound
- medium: 1024 words, layers 256 wide, a vocabulary of 4096
- large: 4096 words, layers 1024 wide, a vocabulary of 8192; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 64, 256), "medium": (1024, 256, 4096), "large": (4096, 1024, 8192)}
BATCHES = 4


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    words, width, vocabulary = SIZES[size]
    batches = [
        (
            torch.randint(vocabulary, (words,), device=device),
            torch.randint(vocabulary, (words,), device=device),
        )
        for _ in range(BATCHES)
    ]
    model = nn.Sequential(
        nn.Embedding(vocabulary, width),
        nn.Linear(width, 4 * width),
        nn.GELU(),
        nn.Linear(4 * width, width),
        nn.Linear(width, vocabulary),
    ).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    for words, following in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(state.model(words), following)
        loss.backward()
        state.optimizer.step()
        print("loss", loss)
    return loss.detach()


def step_fixed(state: State) -> torch.Tensor:
    for words, following in state.batches:
        state.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(state.model(words), following)
        loss.backward()
        state.optimizer.step()
    print("loss", loss)
    return loss.detach()

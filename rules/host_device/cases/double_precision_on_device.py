"""A model of words is trained, and its scores are cast to double precision before the loss.

One step trains on one batch.

- small: 64 rows of 64 features, 500 words; launch-bound
- medium: 4096 rows of 512 features, 32000 words
- large: 8192 rows of 512 features, 50000 words; the scores keep the memory busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the loss is worked out in single instead of double precision"
SIZES = {"small": (64, 64, 500), "medium": (4096, 512, 32000), "large": (8192, 512, 50000)}
CRITERION = nn.CrossEntropyLoss(label_smoothing=0.1)


@dataclass
class State:
    rows: torch.Tensor
    words: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    count, width, vocabulary = SIZES[size]
    rows = torch.randn(count, width, device=device)
    words = torch.randint(vocabulary, (count,), device=device)
    model = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, vocabulary)).to(device)
    return State(rows, words, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad()
    scores = state.model(state.rows)
    loss = CRITERION(scores.double(), state.words)
    loss.backward()
    state.optimizer.step()
    return loss.detach().float()


def step_fixed(state: State) -> torch.Tensor:
    state.optimizer.zero_grad()
    scores = state.model(state.rows)
    loss = CRITERION(scores, state.words)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

"""A function of a few pointwise operations is applied to batch after batch, and compiled again for each.

One step applies it to eight batches.

- small: 64 rows of 64 features; launch-bound
- medium: 8192 rows of 1024 features
- large: 65536 rows of 2048 features; bound by memory traffic
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 64), "medium": (8192, 1024), "large": (65536, 2048)}
BATCHES = 8
BACKEND = "inductor" if torch.cuda.is_available() else "eager"


@dataclass
class State:
    batches: list[torch.Tensor]
    model: nn.Module
    gated: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Scale(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features), requires_grad=False)


def gated(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * torch.sigmoid(x * weight) + x


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, features = SIZES[size]
    batches = [torch.randn(rows, features, device=device) for _ in range(BATCHES)]
    return State(batches, Scale(features).to(device), torch.compile(gated, backend=BACKEND))


def step(state: State) -> torch.Tensor:
    total = torch.zeros((), device=state.batches[0].device)
    for batch in state.batches:
        compiled = torch.compile(gated, backend=BACKEND)
        total += compiled(batch, state.model.weight).mean()
    return total


def step_fixed(state: State) -> torch.Tensor:
    total = torch.zeros((), device=state.batches[0].device)
    for batch in state.batches:
        total += state.gated(batch, state.model.weight).mean()
    return total

"""Residual layers without gradients, each with its output clipped to a norm, compiled as a whole.

The bad form decides with Python whether to clip. One step runs all layers on one batch.

- small: 64 rows of 64 features, four layers; launch-bound
- medium: 8192 rows of 512 features, twelve layers
- large: 65536 rows of 1024 features, twelve layers; bound by memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 64, 4), "medium": (8192, 512, 12), "large": (65536, 1024, 12)}
LIMIT = 100.0
BACKEND = "inductor" if torch.cuda.is_available() else "eager"


@dataclass
class State:
    batch: torch.Tensor
    model: nn.ModuleList


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, features, depth = SIZES[size]
    batch = torch.randn(rows, features, device=device)
    layers = [nn.Linear(features, features, bias=False) for _ in range(depth)]
    return State(batch, nn.ModuleList(layers).to(device).requires_grad_(False))


@torch.compile(backend=BACKEND)
def step(state: State) -> torch.Tensor:
    x = state.batch
    for layer in state.model:
        x = x + nn.functional.gelu(layer(x)) * torch.sigmoid(x)
        norm = torch.linalg.vector_norm(x)
        if norm > LIMIT:
            x = x * (LIMIT / norm)
    return x


@torch.compile(backend=BACKEND)
def step_fixed(state: State) -> torch.Tensor:
    x = state.batch
    for layer in state.model:
        x = x + nn.functional.gelu(layer(x)) * torch.sigmoid(x)
        norm = torch.linalg.vector_norm(x)
        x = torch.where(norm > LIMIT, x * (LIMIT / norm), x)
    return x

"""An encoder turns batches into embeddings, and each batch of embeddings is copied to the host.

One step encodes four batches; the embeddings of all of them are on the host afterwards in either form.

- small: 64 samples, layers 128 wide; launch-bound
- medium: 1024 samples, layers 1024 wide
- large: 4096 samples, layers 4096 wide; the device is busy nearly all the time
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 128), "medium": (1024, 1024), "large": (4096, 4096)}
BATCHES = 4
EMBEDDING = 512


@dataclass
class State:
    batches: list[torch.Tensor]
    model: nn.Module


def setup(device: str = "cuda", size: str = "small") -> State:
    samples, width = SIZES[size]
    batches = [torch.randn(samples, width, device=device) for _ in range(BATCHES)]
    model = nn.Sequential(
        nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, EMBEDDING)
    ).to(device)
    return State(batches, model)


@torch.no_grad()
def step(state: State) -> torch.Tensor:
    embeddings = []
    for inputs in state.batches:
        embeddings.append(state.model(inputs).cpu())
    return torch.cat(embeddings)

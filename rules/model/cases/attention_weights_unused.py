"""A transformer encoder of `nn.MultiheadAttention` is trained that asks for the weights and drops them.

One step trains on one batch of sequences.

- small: 2 sequences of 32 tokens, two layers of 2 heads of 16; launch-bound
- medium: 8 sequences of 512 tokens, four layers of 8 heads of 64
- large: 4 sequences of 2048 tokens, four layers of 8 heads of 64; bound by the traffic of the weights
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the kernel of attention sums in another order"
SIZES = {"small": (2, 32, 2, 2, 16), "medium": (8, 512, 4, 8, 64), "large": (4, 2048, 4, 8, 64)}


@dataclass
class State:
    sequences: torch.Tensor
    targets: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


class Block(nn.Module):
    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU())
        self.proj = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        attended, _ = self.attention(y, y, y)
        x = x + attended
        return x + self.proj(self.mlp(x))


def setup(device: str = "cuda", size: str = "small") -> State:
    batch, length, depth, heads, width = SIZES[size]
    sequences = torch.randn(batch, length, heads * width, device=device)
    targets = torch.randn(batch, length, heads * width, device=device)
    model = nn.Sequential(*(Block(heads, heads * width) for _ in range(depth))).to(device)
    return State(sequences, targets, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = nn.functional.mse_loss(state.model(state.sequences), state.targets)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

"""A transformer encoder is trained whose attention is written out: scores, softmax, product with the values.

One step trains on one batch of sequences.

- small: 2 sequences of 32 tokens, two layers of 2 heads of 16; launch-bound
- medium: 8 sequences of 512 tokens, four layers of 8 heads of 64
- large: 4 sequences of 2048 tokens, four layers of 8 heads of 64; bound by the traffic of the scores
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


class Attention(nn.Module):
    def __init__(self, heads: int, size: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = float(size) ** -0.5
        self.norm = nn.LayerNorm(heads * size)
        self.qkv = nn.Linear(heads * size, 3 * heads * size)
        self.proj = nn.Linear(heads * size, heads * size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = (q @ k.transpose(-2, -1)) * self.scale
        weights = scores.softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return x + self.proj(mixed)


def setup(device: str = "cuda", size: str = "small") -> State:
    batch, length, depth, heads, width = SIZES[size]
    sequences = torch.randn(batch, length, heads * width, device=device)
    targets = torch.randn(batch, length, heads * width, device=device)
    model = nn.Sequential(*(Attention(heads, width) for _ in range(depth))).to(device)
    return State(sequences, targets, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    loss = nn.functional.mse_loss(state.model(state.sequences), state.targets)
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

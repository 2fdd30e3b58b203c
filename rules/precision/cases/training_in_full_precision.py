"""A transformer is trained in float32, with TF32 left off.

One step trains on two batches of sequences, and returns what the model says of the last.

- small: 4 sequences of 32 tokens, two layers 128 wide; launch-bound
- medium: 16 sequences of 128 tokens, four layers 512 wide
- large: 16 sequences of 512 tokens, six layers 1024 wide; bound by products of matrices
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (4, 32, 2, 128), "medium": (16, 128, 4, 512), "large": (16, 512, 6, 1024)}
# What bfloat16 rounds adds up from layer to layer.
TOLERANCE = 0.1
CLASSES, BATCHES = 512, 2


class Tagger(nn.Module):
    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        layers = (
            nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
            for _ in range(depth)
        )
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tagged: torch.Tensor = self.head(self.layers(tokens))
        return tagged


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, length, depth, width = SIZES[size]
    batches = [
        (
            torch.randn(sequences, length, width, device=device),
            torch.randint(CLASSES, (sequences, length), device=device),
        )
        for _ in range(BATCHES)
    ]
    model = Tagger(depth, width).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    scores = torch.empty(0)
    for tokens, tags in state.batches:
        scores = state.model(tokens)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
    return scores.detach()


def step_fixed(state: State) -> torch.Tensor:
    scores = torch.empty(0)
    for tokens, tags in state.batches:
        with torch.autocast(tokens.device.type, dtype=torch.bfloat16, enabled=tokens.is_cuda):
            scores = state.model(tokens)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.flatten())
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()
    return scores.detach()

"""A transformer that classifies the words of a text predicts, while autograd records every operation.

One step predicts two batches.

- small: 4 texts of 32 words, two layers 64 wide; launch-bound
- medium: 8 texts of 128 words, four layers 256 wide
- large: 16 texts of 512 words, six layers 512 wide; compute-bound, with more than a gigabyte of activations
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (4, 32, 2, 64), "medium": (8, 128, 4, 256), "large": (16, 512, 6, 512)}
BATCHES = 2
HEAD = 32
CLASSES = 20


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // HEAD
        self.before_attention = nn.LayerNorm(width)
        self.inputs = nn.Linear(width, 3 * width)
        self.outputs = nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        texts, words, width = x.shape
        parts = self.inputs(self.before_attention(x)).view(texts, words, 3, self.heads, HEAD)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.outputs(attended.transpose(1, 2).reshape(texts, words, width))
        return x + self.perceptron(x)


@dataclass
class State:
    batches: list[torch.Tensor]
    model: nn.Module


def setup(device: str = "cuda", size: str = "small") -> State:
    texts, words, depth, width = SIZES[size]
    batches = [torch.randn(texts, words, width, device=device) for _ in range(BATCHES)]
    model = nn.Sequential(*(Block(width) for _ in range(depth)), nn.Linear(width, CLASSES)).to(device)
    return State(batches, model)


def predict(model: nn.Module, batches: list[torch.Tensor]) -> torch.Tensor:
    model.eval()
    predictions = []
    for words in batches:
        logits = model(words)
        predictions.append(logits.softmax(-1).detach())
    return torch.cat(predictions)


def step(state: State) -> torch.Tensor:
    return predict(state.model, state.batches)

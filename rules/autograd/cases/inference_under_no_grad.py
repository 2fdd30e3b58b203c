"""A recurrent reader of short texts tags words without a graph, while each tensor gets a version counter.

One step tags two batches. The cells are written out, so that one batch is some hundred small operations.

- small: 4 texts of 16 words, 32 wide; launch-bound, and so bound by the host
- medium: 64 texts of 64 words, 512 wide
- large: 512 texts of 64 words, 2048 wide; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (4, 16, 32), "medium": (64, 64, 512), "large": (512, 64, 2048)}
BATCHES = 2
TAGS = 12


class Cell(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(width, 3 * width)
        self.memory = nn.Linear(width, 3 * width)

    def forward(self, word: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        reset, update, candidate = self.inputs(word).chunk(3, dim=-1)
        kept_reset, kept_update, kept_candidate = self.memory(state).chunk(3, dim=-1)
        gate = torch.sigmoid(update + kept_update)
        fresh = torch.tanh(candidate + torch.sigmoid(reset + kept_reset) * kept_candidate)
        return gate * state + (1 - gate) * fresh


class Tagger(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = Cell(width)
        self.head = nn.Linear(width, TAGS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(words[:, 0])
        scores = []
        for position in range(words.shape[1]):
            state = self.cell(words[:, position], state)
            scores.append(self.head(state))
        return torch.stack(scores, dim=1)


@dataclass
class State:
    batches: list[torch.Tensor]
    model: nn.Module


def setup(device: str = "cuda", size: str = "small") -> State:
    texts, words, width = SIZES[size]
    batches = [torch.randn(texts, words, width, device=device) for _ in range(BATCHES)]
    return State(batches, Tagger(width).to(device).eval())


@torch.no_grad()
def evaluate(model: nn.Module, batches: list[torch.Tensor]) -> torch.Tensor:
    model.eval()
    return torch.cat([model(words).softmax(-1) for words in batches])


def step(state: State) -> torch.Tensor:
    return evaluate(state.model, state.batches)

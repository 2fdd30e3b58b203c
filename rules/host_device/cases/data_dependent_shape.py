"""A tagger is trained on sequences of different lengths, and a mask picks the words that have a label.

One step trains on four batches. The good form leaves the words without a label to `ignore_index`. (What the
fixer rewrites, the assignment of a number through a mask, waits for the device before torch 1.10 only.)

- small: 16 sequences of 32 words, layers 64 wide; launch-bound
- medium: 32 sequences of 128 words, layers 512 wide
- large: 64 sequences of 256 words, layers 1024 wide; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the mean is taken over another selection of rows"
SIZES = {"small": (16, 32, 64), "medium": (32, 128, 512), "large": (64, 256, 1024)}
BATCHES = 4
TAGS = 64
UNLABELLED = -100


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, longest, width = SIZES[size]
    batches = []
    for _ in range(BATCHES):
        words = torch.randn(sequences, longest, width, device=device)
        tags = torch.randint(TAGS, (sequences, longest), device=device)
        lengths = torch.randint(longest // 2, longest, (sequences, 1), device=device)
        padding = torch.arange(longest, device=device) >= lengths
        batches.append((words, tags.masked_fill(padding, UNLABELLED)))
    model = nn.Sequential(
        nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, TAGS)
    ).to(device)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    for words, tags in state.batches:
        state.optimizer.zero_grad()
        logits = state.model(words)
        labelled = tags != UNLABELLED
        loss = nn.functional.cross_entropy(logits[labelled], tags[labelled])
        loss.backward()
        state.optimizer.step()
    return loss.detach()


def step_fixed(state: State) -> torch.Tensor:
    for words, tags in state.batches:
        state.optimizer.zero_grad()
        logits = state.model(words)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=UNLABELLED)
        loss.backward()
        state.optimizer.step()
    return loss.detach()

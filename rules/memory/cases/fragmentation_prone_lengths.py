"""Tokens are embedded and transformed in batches that are as long as the longest of their texts.

One step trains on six batches of different lengths. The good form pads to multiples of 128 tokens instead.

- small: 4 texts of up to 32 tokens, width 32; launch-bound
- medium: 16 texts of up to 512 tokens, width 256
- large: 32 texts of up to 2048 tokens, width 512; bound by compute and memory traffic
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

ROUNDED = "sums go over more zeros"
SIZES = {"small": (4, 32, 32), "medium": (16, 512, 256), "large": (32, 2048, 512)}
BATCHES = 6
VOCABULARY = 1000
MULTIPLE = 128


class Texts(Dataset):
    def __init__(self, count: int, longest: int) -> None:
        # Numbers that follow no order, the same in each run: batch k is about (k * 5 % 6 + 1) / 6 as long.
        batch = count // BATCHES
        sizes = [(i // batch * 5 % BATCHES + 1) * longest // BATCHES - i % batch for i in range(count)]
        self.texts = [torch.randint(1, VOCABULARY, (max(size, 1),)) for size in sizes]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.texts[index]


def collate(texts: list[torch.Tensor]) -> torch.Tensor:
    return pad_sequence(texts, batch_first=True)


def collate_multiples(texts: list[torch.Tensor]) -> torch.Tensor:
    padded = pad_sequence(texts, batch_first=True)
    return nn.functional.pad(padded, (0, -padded.shape[1] % MULTIPLE))


class Loss(nn.Module):
    """The loss over what is no padding, so that it does not depend on how much of that there is."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        real = (tokens != 0).unsqueeze(-1)
        loss: torch.Tensor = (self.model(tokens).square() * real).sum() / real.sum()
        return loss


@dataclass
class State:
    texts: Texts
    batch: int
    model: nn.Module
    optimizer: torch.optim.Optimizer
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    batch, longest, width = SIZES[size]
    texts = Texts(BATCHES * batch, longest)
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, width, padding_idx=0),
        *(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(2)
        ),
    )
    loss = Loss(model).to(device)
    return State(texts, batch, loss, torch.optim.SGD(model.parameters(), lr=0.01), device)


def train(state: State, tokens: torch.Tensor) -> torch.Tensor:
    state.optimizer.zero_grad()
    loss: torch.Tensor = state.model(tokens)
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def step(state: State) -> torch.Tensor:
    loader = DataLoader(state.texts, batch_size=state.batch, collate_fn=collate)
    return torch.stack([train(state, tokens.to(state.device)) for tokens in loader])


def step_fixed(state: State) -> torch.Tensor:
    loader = DataLoader(state.texts, batch_size=state.batch, collate_fn=collate_multiples)
    return torch.stack([train(state, tokens.to(state.device)) for tokens in loader])

"""The head of a language model scores the 50,257 tokens of GPT-2 in bfloat16, and gradients are computed.

One step is one forward and backward pass of head and loss. In the good form the vocabulary is padded to
50,304; the bias of what is added rules it out, so that the loss is the same.

- small: 8 vectors of 64 numbers; launch-bound
- medium: 2048 vectors of 768 numbers
- large: 8192 vectors of 1024 numbers; bound by compute
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the sum over the tokens takes zeros along"
SIZES = {"small": (8, 64), "medium": (2048, 768), "large": (8192, 1024)}
TOKENS = 50257
RULED_OUT = -1e4


class Heads(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lm_head = nn.Linear(width, 50257)
        self.padded = nn.Linear(width, 50304)
        with torch.no_grad():
            self.padded.weight[:TOKENS] = self.lm_head.weight
            self.padded.bias[:TOKENS] = self.lm_head.bias
            self.padded.bias[TOKENS:] = RULED_OUT


@dataclass
class State:
    x: torch.Tensor
    targets: torch.Tensor
    model: Heads


def setup(device: str = "cuda", size: str = "small") -> State:
    count, width = SIZES[size]
    x = torch.randn(count, width, device=device)
    targets = torch.randint(TOKENS, (count,), device=device)
    return State(x, targets, Heads(width).to(device))


def step(state: State) -> torch.Tensor:
    return train(state, state.model.lm_head)


def step_fixed(state: State) -> torch.Tensor:
    return train(state, state.model.padded)


def train(state: State, head: nn.Linear) -> torch.Tensor:
    head.zero_grad()
    with torch.autocast(state.x.device.type, dtype=torch.bfloat16):
        # Not by calling the head: its output is of another width, and only the loss can be compared.
        logits = nn.functional.linear(state.x, head.weight, head.bias)
        loss = nn.functional.cross_entropy(logits, state.targets)
    loss.backward()
    return loss.detach()

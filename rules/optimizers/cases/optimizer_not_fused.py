"""A stack of transformer layers is trained with AdamW in its default form.

One step trains on one batch.

- small: 2 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 4 sequences of 128 tokens, eight layers 768 wide
- large: 4 sequences of 512 tokens, twelve layers 1536 wide; the optimizer moves gigabytes a step
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

ROUNDED = "the fused step rounds once"
SIZES = {"small": (2, 16, 4, 64), "medium": (4, 128, 8, 768), "large": (4, 512, 12, 1536)}


@dataclass
class State:
    inputs: torch.Tensor
    targets: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, length, depth, width = SIZES[size]
    inputs = torch.randn(sequences, length, width, device=device)
    targets = torch.randn(sequences, length, width, device=device)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to(device)
    return State(inputs, targets, model, torch.optim.AdamW(model.parameters(), lr=1e-5))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(state.model(state.inputs), state.targets)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

"""A stack of transformer layers is trained on two GPUs by one process, which has to drive both.

One step trains on one batch. The good form has a process for each GPU, which takes half of the batch.

- small: 4 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 8 sequences of 128 tokens, eight layers 768 wide
- large: 8 sequences of 256 tokens, twelve layers 1024 wide; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

# The good form has two ranks: half a batch gives other outputs and losses, but the same averages.
COMPARED = ("parameter",)
ROUNDED = "the gradients of two halves of a batch are averaged"
SIZES = {"small": (4, 16, 4, 64), "medium": (8, 128, 8, 768), "large": (8, 256, 12, 1024)}


@dataclass
class State:
    inputs: torch.Tensor
    targets: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, length, depth, width = SIZES[size]
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(sequences, length, width, generator=generator).to(device)
    targets = torch.randn(sequences, length, width, generator=generator).to(device)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to(device)
    model = nn.DataParallel(layers, device_ids=[0, 1])
    return State(inputs, targets, model, torch.optim.SGD(model.parameters(), lr=1e-3))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(state.model(state.inputs), state.targets)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

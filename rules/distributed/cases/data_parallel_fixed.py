"""A stack of transformer layers is trained on two GPUs by a process for each, which takes half of the batch.

One step trains on one batch.

- small: 4 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 8 sequences of 128 tokens, eight layers 768 wide
- large: 8 sequences of 256 tokens, twelve layers 1024 wide; compute-bound
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
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
    inputs, targets = (item.chunk(RANKS)[dist.get_rank()].clone() for item in (inputs, targets))
    model = DistributedDataParallel(layers)
    return State(inputs, targets, model, torch.optim.SGD(model.parameters(), lr=1e-3))


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(state.model(state.inputs), state.targets)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

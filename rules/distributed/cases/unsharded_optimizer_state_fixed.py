"""A stack of transformer layers is trained on two ranks, and each of them keeps half the averages of AdamW.

One step trains on one batch.

- small: 2 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 4 sequences of 64 tokens, eight layers 768 wide
- large: 4 sequences of 128 tokens, twelve layers 1536 wide; 2.7 GB of averages
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
SIZES = {"small": (2, 16, 4, 64), "medium": (4, 64, 8, 768), "large": (4, 128, 12, 1536)}


@dataclass
class State:
    inputs: torch.Tensor
    targets: torch.Tensor
    model: DistributedDataParallel
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, length, depth, width = SIZES[size]
    # Every rank has data of its own.
    generator = torch.Generator().manual_seed(dist.get_rank())
    inputs = torch.randn(sequences, length, width, generator=generator).to(device)
    targets = torch.randn(sequences, length, width, generator=generator).to(device)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to(device)
    model = DistributedDataParallel(layers)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-5)
    return State(inputs, targets, model, optimizer)


def step(state: State) -> torch.Tensor:
    state.optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(state.model(state.inputs), state.targets)
    loss.backward()
    state.optimizer.step()
    return loss.detach()

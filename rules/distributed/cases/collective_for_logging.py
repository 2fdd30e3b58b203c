"""A stack of transformer layers is trained on two ranks, which exchange every loss in order to log it.

One step trains on five batches.

- small: 2 sequences of 16 tokens, two layers 64 wide; launch-bound
- medium: 4 sequences of 64 tokens, four layers 512 wide
- large: 4 sequences of 128 tokens, six layers 1024 wide; compute-bound
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
SIZES = {"small": (2, 16, 2, 64), "medium": (4, 64, 4, 512), "large": (4, 128, 6, 1024)}
BATCHES = 5

logger = logging.getLogger(__name__)


@dataclass
class State:
    batches: list[tuple[torch.Tensor, torch.Tensor]]
    model: DistributedDataParallel
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    sequences, length, depth, width = SIZES[size]
    # Every rank has data of its own.
    generator = torch.Generator().manual_seed(dist.get_rank())
    shape = sequences, length, width
    batches = [
        (
            torch.randn(shape, generator=generator).to(device),
            torch.randn(shape, generator=generator).to(device),
        )
        for _ in range(BATCHES)
    ]
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to(device)
    model = DistributedDataParallel(layers)
    return State(batches, model, torch.optim.SGD(model.parameters(), lr=1e-3))


def step(state: State) -> torch.Tensor:
    for number, (inputs, targets) in enumerate(state.batches):
        state.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        loss.backward()
        state.optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        logger.info("batch %d: loss %.4f", number, mean.item() / RANKS)
    return loss.detach()


def step_fixed(state: State) -> torch.Tensor:
    for number, (inputs, targets) in enumerate(state.batches):
        state.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(state.model(inputs), targets)
        loss.backward()
        state.optimizer.step()
        if number % BATCHES == BATCHES - 1:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            logger.info("batch %d: loss %.4f", number, mean.item() / RANKS)
    return loss.detach()

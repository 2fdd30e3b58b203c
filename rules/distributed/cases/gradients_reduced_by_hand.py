"""A stack of transformer layers is trained on two ranks, and gradients are averaged one by one in the end.

One step trains on four batches.

- small: 2 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 8 sequences of 128 tokens, eight layers 768 wide; 0.2 GB of gradients
- large: 8 sequences of 256 tokens, twelve layers 1536 wide; 1.4 GB of gradients
"""

from __future__ import annotations

from collections import OrderedDict

import torch
import torch.distributed as dist
from torch import nn

RANKS = 2
SIZES = {"small": (2, 16, 4, 64), "medium": (8, 128, 8, 768), "large": (8, 256, 12, 1536)}
BATCHES = 4


class Trainer:
    def __init__(self, layers: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self.batches = batches
        # The parameters are called as `DistributedDataParallel` calls them.
        self.model = nn.Sequential(OrderedDict(module=layers))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def train(self) -> torch.Tensor:
        for inputs, targets in self.batches:
            self.optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(self.model(inputs), targets)
            loss.backward()
            for parameter in self.model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= RANKS
            self.optimizer.step()
        return loss.detach()


def setup(device: str = "cuda", size: str = "small") -> Trainer:
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
    return Trainer(layers, batches)


def step(state: Trainer) -> torch.Tensor:
    return state.train()

"""A stack of transformer layers is trained on two ranks, and gradients are exchanged at every micro-batch.

One step trains on four micro-batches and lets the optimizer step once.

- small: 2 sequences of 16 tokens, two layers 64 wide; launch-bound
- medium: 2 sequences of 64 tokens, eight layers 768 wide; 0.2 GB of gradients
- large: 2 sequences of 64 tokens, twelve layers 1536 wide; 1.4 GB of gradients
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
ROUNDED = "gradients are added up before they are averaged"
SIZES = {"small": (2, 16, 2, 64), "medium": (2, 64, 8, 768), "large": (2, 64, 12, 1536)}
ACCUMULATED = 4


class Trainer:
    def __init__(self, layers: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self.batches = batches
        self.model = DistributedDataParallel(layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def train(self) -> torch.Tensor:
        for number, (inputs, targets) in enumerate(self.batches):
            loss = nn.functional.mse_loss(self.model(inputs), targets) / ACCUMULATED
            loss.backward()
            if (number + 1) % ACCUMULATED == 0:
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
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
        for _ in range(ACCUMULATED)
    ]
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to(device)
    return Trainer(layers, batches)


def step(state: Trainer) -> torch.Tensor:
    return state.train()

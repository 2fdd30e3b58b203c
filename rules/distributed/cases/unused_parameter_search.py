"""A stack of transformer layers is trained on two ranks, and unused parameters are searched for in each step.

One step trains on one batch.

- small: 2 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 4 sequences of 64 tokens, twelve layers 512 wide
- large: 4 sequences of 256 tokens, 24 layers 1024 wide; compute-bound
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
# Gradients are summed up in other buckets, and 24 layers make up to 1e-3 of that in single precision.
TOLERANCE = 0.01
SIZES = {"small": (2, 16, 4, 64), "medium": (4, 64, 12, 512), "large": (4, 256, 24, 1024)}


class Model(nn.Module):
    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layers(inputs)


class Trainer:
    def __init__(self, depth: int, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.inputs, self.targets = inputs, targets
        model = Model(depth, inputs.shape[-1]).to(inputs.device)
        self.model = DistributedDataParallel(model, find_unused_parameters=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def train(self) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def setup(device: str = "cuda", size: str = "small") -> Trainer:
    sequences, length, depth, width = SIZES[size]
    # Every rank has data of its own.
    generator = torch.Generator().manual_seed(dist.get_rank())
    inputs = torch.randn(sequences, length, width, generator=generator).to(device)
    targets = torch.randn(sequences, length, width, generator=generator).to(device)
    return Trainer(depth, inputs, targets)


def step(state: Trainer) -> torch.Tensor:
    return state.train()

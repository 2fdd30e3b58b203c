"""A stack of transformer layers is trained on two ranks, sharded layer by layer.

One step trains on one batch.

- small: 2 sequences of 16 tokens, four layers 64 wide; launch-bound
- medium: 4 sequences of 64 tokens, eight layers 768 wide; too little to compute to hide the gathers behind
- large: 8 sequences of 512 tokens, twelve layers 1536 wide; compute-bound, with 1.4 GB of parameters
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

RANKS = 2
SIZES = {"small": (2, 16, 4, 64), "medium": (4, 64, 8, 768), "large": (8, 512, 12, 1536)}


class Trainer:
    def __init__(self, model: nn.TransformerEncoder, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.inputs, self.targets = inputs, targets
        self.model = model
        for layer in self.model.layers:
            fully_shard(layer)
        fully_shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)

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
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to(device)
    return Trainer(model, inputs, targets)


def step(state: Trainer) -> torch.Tensor:
    return state.train()

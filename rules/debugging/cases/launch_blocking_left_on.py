"""A small residual network is trained by a program of its own, which sets `CUDA_LAUNCH_BLOCKING`.

CUDA reads the variable when it is initialised, which a measuring process has done before any case; so the
program is this file, started anew. One step asks it for a few updates and waits for their loss.

- small: 8 blocks of width 64, 32 rows; launch-bound
- medium: 8 blocks of width 1024, 1024 rows
- large: 8 blocks of width 4096, 4096 rows; compute-bound
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

SIZES = {"small": (64, 32), "medium": (1024, 1024), "large": (4096, 4096)}
BLOCKS = 8
UPDATES = 16


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(BLOCKS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return x


@dataclass
class State:
    rows: torch.Tensor
    model: nn.Module
    device: str
    program: subprocess.Popen[bytes] | None = None


def setup(device: str = "cuda", size: str = "small") -> State:
    width, count = SIZES[size]
    rows = torch.randn(count, width)
    return State(rows, Residual(width), device)


def step(state: State) -> torch.Tensor:
    if state.program is None:
        state.program = subprocess.Popen(
            [sys.executable, __file__, state.device], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        ask(state.program, (state.rows, state.model.state_dict()))
    return torch.tensor(ask(state.program, None))


def ask(program: subprocess.Popen[bytes], message: Any) -> Any:
    assert program.stdin is not None and program.stdout is not None
    pickle.dump(message, program.stdin)
    program.stdin.flush()
    return pickle.load(program.stdout)


def answer(message: Any) -> None:
    pickle.dump(message, sys.stdout.buffer)
    sys.stdout.flush()


def train(device: str) -> None:
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    rows, weights = pickle.load(sys.stdin.buffer)
    model = Residual(rows.shape[1])
    model.load_state_dict(weights)
    rows, model = rows.to(device), model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    answer(None)
    while True:
        try:
            pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        for _ in range(UPDATES):
            optimizer.zero_grad(set_to_none=True)
            loss = model(rows).square().mean()
            loss.backward()
            optimizer.step()
        answer(loss.item())


if __name__ == "__main__":
    train(sys.argv[1])

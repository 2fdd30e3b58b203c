"""A server writes a table to pinned memory for each batch, and sends the columns in use to the device.

One step makes and sends four tables and runs the model on each. In the bad form the table is wider than what
is sent, so that its columns are gathered in pageable memory; in the good form it has the columns in use only.

- small: 64 rows with 512 columns in use; launch-bound but for the copies
- medium: 1024 rows with 2048 columns in use; the queue is full when the table is sent
- large: 4096 rows with 4096 columns in use; the matrices keep the device busy
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

SIZES = {"small": (64, 512), "medium": (1024, 2048), "large": (4096, 4096)}
PIN = torch.cuda.is_available()


@dataclass
class State:
    rows: int
    used: int
    model: nn.Module
    device: str


def setup(device: str = "cuda", size: str = "small") -> State:
    rows, used = SIZES[size]
    model = nn.Sequential(nn.Linear(used, used), nn.ReLU(), nn.Linear(used, used)).to(device)
    return State(rows, used, model, device)


@torch.no_grad()
def step(state: State) -> torch.Tensor:
    sums = []
    for number in range(4):
        table = torch.empty(state.rows, 2 * state.used, pin_memory=PIN)
        table[:, : state.used] = number + 1
        sent = table[:, : state.used].to(state.device, non_blocking=True)
        sums.append(state.model(sent).sum())
    return torch.stack(sums)


@torch.no_grad()
def step_fixed(state: State) -> torch.Tensor:
    sums = []
    for number in range(4):
        table = torch.empty(state.rows, state.used, pin_memory=PIN)
        table[:, :] = number + 1
        sent = table.to(state.device, non_blocking=True)
        sums.append(state.model(sent).sum())
    return torch.stack(sums)

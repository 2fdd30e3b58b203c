"""A policy with independent actions learns: their variances are made into a matrix, which is factored.

One step takes one step of an optimizer on one batch.

- small: 64 states, 4 actions; launch-bound
- medium: 2048 states, 32 actions
- large: 16384 states, 64 actions; 0.3 GB for one matrix of each state
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.distributions import Independent, MultivariateNormal, Normal

ROUNDED = "products of a triangular matrix add up zeros"
SIZES = {"small": (64, 4), "medium": (2048, 32), "large": (16384, 64)}
WIDTH = 64


@dataclass
class State:
    states: torch.Tensor
    actions: torch.Tensor
    variance: torch.Tensor
    model: nn.Module
    optimizer: torch.optim.Optimizer


def setup(device: str = "cuda", size: str = "small") -> State:
    count, actions = SIZES[size]
    states = torch.randn(count, WIDTH, device=device)
    taken = torch.randn(count, actions, device=device)
    model = nn.Linear(WIDTH, actions).to(device)
    variance = torch.full((actions,), 0.25, device=device)
    return State(states, taken, variance, model, torch.optim.SGD(model.parameters(), lr=0.01))


def step(state: State) -> torch.Tensor:
    mean = state.model(state.states)
    covariance = torch.diag_embed(state.variance.expand_as(mean))
    distribution = MultivariateNormal(mean, covariance, validate_args=False)
    return _learn(state, distribution.log_prob(state.actions))


def step_fixed(state: State) -> torch.Tensor:
    mean = state.model(state.states)
    distribution = Independent(Normal(mean, state.variance.sqrt(), validate_args=False), 1)
    return _learn(state, distribution.log_prob(state.actions))


def _learn(state: State, log_prob: torch.Tensor) -> torch.Tensor:
    loss = -log_prob.mean()
    state.optimizer.zero_grad()
    loss.backward()
    state.optimizer.step()
    return loss.detach()

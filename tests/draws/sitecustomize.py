"""Imported by Python itself at start-up: makes programs draw as many random numbers after a fix as before.

Taking the useless bias off a layer shifts the random stream for everything that is drawn after it; so do
workers that live on, which a loader gives no new seed for the next pass. Programs before and after a fix are
compared with these two effects taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd
from torch.utils.data import dataloader


def _drawing(reset: Callable[[Any], None], size: str) -> Callable[[Any], None]:
    def reset_parameters(layer: Any) -> None:
        reset(layer)
        if layer.bias is None:
            torch.empty(getattr(layer, size)).uniform_()

    return reset_parameters


nn.Linear.reset_parameters = _drawing(nn.Linear.reset_parameters, "out_features")
_ConvNd.reset_parameters = _drawing(_ConvNd.reset_parameters, "out_channels")


def _seeding(reset: Callable[..., None]) -> Callable[..., None]:
    def reset_iterator(iterator: Any, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
        reset(iterator, loader, first_iter)

    return reset_iterator


_Iterator: Any = dataloader._MultiProcessingDataLoaderIter
_Iterator._reset = _seeding(_Iterator._reset)

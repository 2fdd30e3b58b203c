"""Imported by Python itself at start-up: makes a layer draw as many random numbers with a bias as without.

Taking the useless bias off a layer shifts the random stream for everything that is drawn after it. Programs
before and after a fix are compared with that one effect taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd


def _drawing(reset: Callable[[Any], None], size: str) -> Callable[[Any], None]:
    def reset_parameters(layer: Any) -> None:
        reset(layer)
        if layer.bias is None:
            torch.empty(getattr(layer, size)).uniform_()

    return reset_parameters


nn.Linear.reset_parameters = _drawing(nn.Linear.reset_parameters, "out_features")
_ConvNd.reset_parameters = _drawing(_ConvNd.reset_parameters, "out_channels")

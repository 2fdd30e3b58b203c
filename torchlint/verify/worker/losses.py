"""What a program trains by: the losses that it calls ``backward`` of."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from torchlint.verify.worker.programs import tensors


class Losses:
    """Tells ``keep`` of each loss, as it was before a gradient scaler multiplied it, until ``stop``."""

    def __init__(self, keep: Callable[[torch.Tensor], None]) -> None:
        self._keep = keep
        self._backward = torch.autograd.backward
        self._scale = torch.amp.GradScaler.scale
        self._unscaled: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}

    def start(self) -> None:
        """Watch all later calls of ``backward``."""
        self._watch_scaling()
        original = self._backward

        def backward(roots: Any, *arguments: Any, **keywords: Any) -> Any:
            if not in_backward():
                for _, tensor in tensors(roots):
                    self._keep(self._as_given(tensor))
            return original(roots, *arguments, **keywords)

        torch.autograd.backward = backward

    def stop(self) -> None:
        """Leave torch as it was."""
        torch.autograd.backward = self._backward
        torch.amp.GradScaler.scale = self._scale

    def _watch_scaling(self) -> None:
        """Remember which loss a gradient scaler was given: the factor is no part of the results."""
        original = self._scale

        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            for (_, large), (_, loss) in zip(tensors(scaled), tensors(outputs), strict=True):
                self._unscaled[id(large)] = weakref.ref(large), loss.detach()
            return scaled

        torch.amp.GradScaler.scale = scale

    def _as_given(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a loss as it was before a gradient scaler multiplied it."""
        scaled, loss = self._unscaled.pop(id(tensor), (None, tensor))
        return loss if scaled is not None and scaled() is tensor else tensor


def in_backward() -> bool:
    """Return whether autograd runs this: a checkpoint computes layers a second time, which are no results."""
    running: int = torch._C._current_graph_task_id()
    return running != -1

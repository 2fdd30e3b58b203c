"""A run for its losses: how a program trains from one seed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from torchlint.verify.worker.boundary import Stopper
from torchlint.verify.worker.losses import Losses


class Training:
    """A boundary that keeps the sum of the losses of each step, and stops the program after ``steps``.

    ``shift`` is added to the seeds that the program sets, so that it trains from another one.
    """

    def __init__(self, stopper: Stopper, steps: int, shift: int) -> None:
        self._stopper, self._wanted, self._shift = stopper, steps, shift
        self._losses = Losses(self._keep)
        self._step: list[torch.Tensor] = []
        self._found: list[torch.Tensor] = []

    def start(self) -> None:
        """Follow the program."""
        self._losses.start()
        if self._shift:
            owners = [(torch, "manual_seed"), (torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all")]
            owners.append((random, "seed"))
            if "numpy" in sys.modules:
                owners.append((sys.modules["numpy"].random, "seed"))
            for owner, name in owners:
                setattr(owner, name, self._shifted(getattr(owner, name)))

    def __call__(self) -> None:
        if self._step:
            self._found.append(torch.stack(self._step).sum())
            self._step = []
        if len(self._found) >= self._wanted:
            self._stopper.stop()

    def outcome(self) -> list[float]:
        """Return the loss of each step that had any."""
        self._losses.stop()
        found: list[float] = torch.stack(self._found).tolist() if self._found else []
        return found

    def _keep(self, loss: torch.Tensor) -> None:
        # Not asked for yet: the host need not wait for it.
        self._step.append(loss.detach().double().mean())

    def _shifted(self, seed: Callable[..., Any]) -> Callable[..., Any]:
        def shifted(*arguments: Any, **keywords: Any) -> Any:
            if arguments and isinstance(arguments[0], int):
                arguments = (arguments[0] + self._shift, *arguments[1:])
            return seed(*arguments, **keywords)

        return shifted

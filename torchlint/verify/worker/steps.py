"""Finds the steps of a program that nobody edited, through torch's global hooks."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

from torchlint.verify.worker.boundary import Boundary

OPTIMIZER, FORWARD = "optimizer steps", "forward passes"


class Steps:
    """Calls a boundary after each step of the program.

    A step ends with the step of the optimizer that stepped first, or, in a program that only infers, with a
    call of the module that was called first. ``by`` is ``optimizer``, ``forward`` or ``auto``: then the
    program trains if it has made an optimizer by the time that its first module returns.
    """

    def __init__(self, by: str, boundary: Boundary) -> None:
        self._boundary = boundary
        self._anchor: Any = None
        self._depth = 0
        self._outermost: Any = None
        self._handles: list[Any] = []
        self._optimizers_made = False
        self.found_by = {"optimizer": OPTIMIZER, "forward": FORWARD}.get(by, "")
        if by == "auto":
            self._watch_optimizers()
        if by != "forward":
            optimizers.register_optimizer_step_post_hook(self._stepped)
        if by != "optimizer":
            self._handles = [
                modules.register_module_forward_pre_hook(self._enters),
                modules.register_module_forward_hook(self._leaves, always_call=True),
            ]

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._anchor is None:
            self._anchor = optimizer
            self.found_by = OPTIMIZER
            self._forget_modules()
        if optimizer is self._anchor:
            self._boundary()

    def _enters(self, module: torch.nn.Module, args: Any) -> None:
        if self._depth == 0:
            self._outermost = module
        self._depth += 1

    def _leaves(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._forget_modules()
        if self._optimizers_made:
            return
        # From now on the submodules pay nothing.
        self.found_by = FORWARD
        self._outermost.register_forward_hook(lambda *_: self._boundary())
        self._boundary()

    def _forget_modules(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _watch_optimizers(self) -> None:
        original = torch.optim.Optimizer.__init__

        def made(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._optimizers_made = True
            original(optimizer, *args, **kwargs)

        torch.optim.Optimizer.__init__ = made

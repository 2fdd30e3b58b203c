"""Finds the steps of a program that nobody edited, through torch's global hooks."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

from torchlint.verify.worker.boundary import Boundary

OPTIMIZER, FORWARD = "optimizer steps", "forward passes"
PATIENCE = 64
"""How often another optimizer steps without the one that marks the steps before it takes its place."""


class Steps:
    """Calls a boundary after each step of the program.

    A step ends with the step of the optimizer that stepped first, while it exists and is used. In a program
    that only infers, it ends with a call of the first module with parameters that is called again: one call
    may only look at shapes. ``by`` is ``optimizer``, ``forward`` or ``auto``: then the program trains if it
    has made an optimizer by that time.
    """

    def __init__(self, by: str, boundary: Boundary) -> None:
        self._boundary = boundary
        self._anchor: Any = lambda: None
        self._others = 0
        self._depth = 0
        self._outermost: Any = None
        self._called: weakref.WeakSet[Any] = weakref.WeakSet()
        self._handles: list[Any] = []
        self._last: list[Any] = []
        self._optimizers_made = False
        self.found_by = {"optimizer": OPTIMIZER, "forward": FORWARD}.get(by, "")
        if by == "auto":
            self._watch_optimizers()
        if by != "forward":
            self._last.append(optimizers.register_optimizer_step_post_hook(self._stepped))
        if by != "optimizer":
            self._handles = [
                modules.register_module_forward_pre_hook(self._enters),
                modules.register_module_forward_hook(self._leaves, always_call=True),
            ]

    def close(self) -> None:
        """Leave the program's modules and optimizers without hooks."""
        self._forget_modules()
        for handle in self._last:
            handle.remove()
        self._last = []

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.found_by == FORWARD:
            return
        anchor = self._anchor()
        if optimizer is not anchor:
            self._others += 1
            if anchor is not None and self._others < PATIENCE:
                return
            # Not kept alive by this: a program that makes a new one for each stage lets the old one go.
            self._anchor = weakref.ref(optimizer)
            self.found_by = OPTIMIZER
            self._forget_modules()
        self._others = 0
        self._boundary()

    def _enters(self, module: torch.nn.Module, args: Any) -> None:
        if self._depth == 0:
            self._outermost = module
        self._depth += 1

    def _leaves(self, module: torch.nn.Module, args: Any, result: Any) -> None:
        self._depth -= 1
        if self._depth:
            return
        if self._optimizers_made:
            self._forget_modules()
            return
        if next(module.parameters(), None) is None:
            return
        if module not in self._called:
            self._called.add(module)
            return
        # From now on the submodules pay nothing.
        self._forget_modules()
        self.found_by = FORWARD
        self._last.append(self._outermost.register_forward_hook(lambda *_: self._boundary()))
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

"""What the memory of a step is for: weights, buffers, gradients and optimizer state, at the step's peak,
and the lines that allocated the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from torchlint.verify.worker.allocations import activations, at_peak
from torchlint.verify.worker.device import Device
from torchlint.verify.worker.losses import in_backward
from torchlint.verify.worker.programs import tensors
from torchlint.verify.worker.sharding import flattened

FORWARD, BACKWARD, UPDATE = "forward pass", "backward pass", "optimizer step"
MOMENTS = ("exp_avg", "exp_avg_sq")
"""What Adam and its kin keep for each parameter."""
BLOCK, LEAST = 256, 4096
"""States of 8 bits have a scale of 32 for each block; tensors with fewer elements stay as they are."""


class Roles:
    """Tells tensors apart by role, and how much of the gradients there was when the memory was at its peak.

    Weights, buffers and states stay from step to step. Gradients come and go: the allocator's peak is read
    whenever one is accumulated or they may be dropped, so that the peak is placed between two readings. It
    counts the smaller amount of the two.
    """

    def __init__(
        self,
        device: Device,
        modules: Sequence[torch.nn.Module],
        used: Iterable[torch.optim.Optimizer],
        project: Path = Path(),
    ) -> None:
        self._project = project
        self._device, self._modules, self._optimizers = device, modules, list(used)
        self._handles: list[Any] = []
        self._patched: list[tuple[Any, str, Any]] = []
        self._each: dict[int, int] = {}
        self._held = self._at_peak = self._kept = self._kept_at_peak = 0
        self._peak, self._phase, self._when = -1, FORWARD, ""
        self._backwards: list[tuple[int, int]] = []
        self._since, self._zeroed, self._autocasts = 0, False, False

    def now(self) -> dict[str, Any]:
        """Return the bytes of each role, as ``results.Roles`` has them, with all gradients that there are."""
        seen: set[int] = set()
        parameters = self._parameters()
        weights = self._stored(parameters, seen)
        found = (item for module in self._modules for item in module.buffers() if not is_lazy(item))
        buffers = self._stored(found, seen)
        gradients = sum(self._gradient(item) for item in parameters)
        states = self._stored((tensor for _, tensor in self._states()), seen)
        in_8bit, factored = self._spared()
        return {
            "weights": weights,
            "gradients": gradients,
            "states": states,
            "buffers": buffers,
            "spared_8bit": in_8bit,
            "spared_factored": factored,
        }

    def start(self) -> None:
        """Follow the gradients, from the end of a step."""
        for parameter in self._parameters():
            if parameter.is_leaf and parameter.requires_grad:
                self._handles.append(parameter.register_post_accumulate_grad_hook(self._accumulated))
        for optimizer in self._optimizers:
            # Not torch's global hooks: this is called from one of them.
            self._handles += [
                optimizer.register_step_pre_hook(lambda *_: self._enter(UPDATE)),
                optimizer.register_step_post_hook(lambda *_: self._enter(FORWARD)),
            ]
        self._patch(torch.autograd, "backward", self._backward)
        for owner in (torch.optim.Optimizer, torch.nn.Module):
            self._patch(owner, "zero_grad", self._zero_grad)
        self._patch(torch.autocast, "__enter__", self._autocast)
        self._enter(FORWARD)
        # What is there already is part of the first forward pass.
        self._peak = -1
        self._device.keep_history()
        self._since = self._device.allocator_events()

    def stop(self, steps: int) -> dict[str, Any]:
        """Return the roles at the peak of so many steps, and follow them no longer."""
        history = self._device.history()
        self._enter(FORWARD)
        for handle in self._handles:
            handle.remove()
        for owner, name, original in self._patched:
            setattr(owner, name, original)
        found = self.now() | {"gradients": self._at_peak, "when": self._when}
        found["lines"] = at_peak(history, self._project)
        found["full_precision"] = self._in_full_precision()
        found["sharded"] = any(_is_sharded(item) for item in self._parameters()) or any(
            map(flattened, self._modules)
        )
        if history and self._backwards:
            found["activations"] = activations(history, self._backwards)
        found["differentiates"] = bool(self._backwards) and self._when != UPDATE
        # Of more backward passes a step than one, or without a reset, gradients are accumulated on purpose.
        if self._zeroed and len(self._backwards) <= steps:
            found["droppable"] = self._kept_at_peak
        return found

    def _enter(self, phase: str) -> None:
        self._each = {id(item): self._gradient(item) for item in self._parameters()}
        self._look(sum(self._each.values()))
        self._phase = phase

    def _accumulated(self, parameter: torch.Tensor) -> None:
        size = self._gradient(parameter)
        before, self._each[id(parameter)] = self._each.get(id(parameter), 0), size
        self._look(self._held + size - before)

    def _look(self, held: int) -> None:
        peak = self._device.peak()
        if peak is not None and peak[0] > self._peak:
            self._peak, self._when = peak[0], self._phase
            self._at_peak = min(held, self._held)
            kept = {FORWARD: self._at_peak, BACKWARD: self._kept}.get(self._phase, 0)
            self._kept_at_peak = min(kept, self._at_peak)
        self._held = held

    def _patch(self, owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        self._patched.append((owner, name, original))
        setattr(owner, name, wraps(original)(wrapper(original)))

    def _backward(self, original: Any) -> Any:
        def backward(*arguments: Any, **keywords: Any) -> Any:
            if in_backward():
                return original(*arguments, **keywords)
            self._enter(BACKWARD)
            self._kept = self._held
            begin = self._device.allocator_events() - self._since
            try:
                return original(*arguments, **keywords)
            finally:
                self._backwards.append((begin, self._device.allocator_events() - self._since))
                self._enter(FORWARD)

        return backward

    def _zero_grad(self, original: Any) -> Any:
        def zero_grad(*arguments: Any, **keywords: Any) -> Any:
            self._zeroed = True
            self._enter(self._phase)
            try:
                return original(*arguments, **keywords)
            finally:
                self._enter(self._phase)

        return zero_grad

    def _autocast(self, original: Any) -> Any:
        def enter(context: Any) -> Any:
            self._autocasts |= getattr(context, "_enabled", True)
            return original(context)

        return enter

    def _in_full_precision(self) -> bool:
        """Return whether the modules compute in float32, as far as can be seen from outside compiled code."""
        parameters = self._parameters()
        compiled = sys.modules.get("torch._dynamo.utils")
        return (
            bool(parameters)
            and not self._autocasts
            and not (compiled and compiled.counters["frames"])
            and all(item.dtype == torch.float32 for item in parameters if item.is_floating_point())
        )

    def _parameters(self) -> list[torch.Tensor]:
        found = [item for module in self._modules for item in module.parameters()]
        for optimizer in self._optimizers:
            found += [item for group in optimizer.param_groups for item in group["params"]]
        return list({id(item): item for item in found if not is_lazy(item)}.values())

    def _states(self) -> Iterator[tuple[str, torch.Tensor]]:
        for optimizer in self._optimizers:
            for state in optimizer.state.values():
                if isinstance(state, dict):
                    for name, value in state.items():
                        # A number is no tensor, though ``tensors`` makes one of it.
                        if not isinstance(value, float):
                            yield from ((name, tensor) for _, tensor in tensors(value))

    def _stored(self, found: Iterable[torch.Tensor], seen: set[int]) -> int:
        """Return the bytes of what the tensors are stored in, each storage once."""
        total = 0
        for tensor in found:
            tensor = _local(tensor)
            if not self._device.holds(tensor):
                continue
            try:
                storage = tensor.untyped_storage()
                place = storage.data_ptr()
            except (NotImplementedError, RuntimeError, ValueError):  # sparse, or a library's own kind
                continue
            if place and place not in seen:
                seen.add(place)
                total += storage.nbytes()
        return total

    def _gradient(self, parameter: torch.Tensor) -> int:
        # Not its storage: gradients may be views of a bucket.
        gradient = parameter.grad
        if gradient is None or gradient.layout != torch.strided or not self._device.holds(_local(gradient)):
            return 0
        gradient = _local(gradient)
        return int(gradient.nbytes)

    def _spared(self) -> tuple[int, int]:
        """Return by how much Adam's states would be smaller in 8 bits, and as Adafactor keeps them in torch.

        The former by https://huggingface.co/docs/bitsandbytes/reference/optim/optim_overview.
        """
        in_8bit = factored = 0
        for name, tensor in self._states():
            tensor = _local(tensor)
            if name not in MOMENTS or tensor.dtype != torch.float32 or not self._device.holds(tensor):
                continue
            count = tensor.numel()
            if count >= LEAST:
                in_8bit += 3 * count - 4 * -(-count // BLOCK)
            factored += 4 * count
            if name == "exp_avg_sq" and count:
                shape = tensor.shape
                factored -= 4 * (count // shape[-1] + count // shape[-2] if len(shape) > 1 else count)
        return in_8bit, max(factored, 0)


def _is_sharded(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a part of one that several ranks hold."""
    return _local(tensor) is not tensor


def _local(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of a tensor."""
    found: torch.Tensor = getattr(tensor, "_local_tensor", tensor)
    return found

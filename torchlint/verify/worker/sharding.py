"""Tensors of which each rank holds a part: what they are as a whole, which no layout changes."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch.nn.parameter import is_lazy

_PARTS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")
"""What wrappers put between the parts of a parameter's name."""


def state(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Return the parameters and buffers of a module, as they are; none where they are flattened."""
    return [] if flattened(module) else list(module.state_dict(keep_vars=True).items())


def parameters(root: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Return the parameters of a module as a whole, by the names that its program's own modules give them.

    Those of a layer that was never called have no values.
    """
    with _gathered(root):
        found = [(name, value) for name, value in root.named_parameters() if not is_lazy(value)]
        wholes = ((name, whole(value.detach())) for name, value in found)
        return [(_plain(name), value.to("cpu", copy=True)) for name, value in wholes]


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return all of a tensor. Every rank has to ask, since each gives its part."""
    gather = getattr(tensor, "full_tensor", None)
    return tensor if gather is None else gather()


def fill(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Write ``values``, all of them, into a tensor, or this rank's part of them into its part."""
    if hasattr(tensor, "full_tensor"):
        from torch.distributed.tensor import distribute_tensor

        mesh = tensor.device_mesh
        values = distribute_tensor(values.to(mesh.device_type), mesh, tensor.placements)
    tensor.copy_(values)


def flattened(root: torch.nn.Module) -> bool:
    """Return whether ``FullyShardedDataParallel`` made vectors of a module's parameters,
    a part on each rank.
    """
    return any(type(part).__name__ == "FullyShardedDataParallel" for part in root.modules())


def _gathered(root: torch.nn.Module) -> Any:
    if not flattened(root):
        return nullcontext()
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel.summon_full_params(root, writeback=False)


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _PARTS)

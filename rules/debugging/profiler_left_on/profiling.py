"""Profilers of torch: which of them record every step of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.contexts import is_test
from torchlint.semantics.identifiers import identifiers, imports, is_below
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.spellings import given_as

from ..switches import optional
from ..workloads import ends_soon, training_in

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SCHEDULED = frozenset({"torch.profiler.profile", "torch.profiler.profiler.profile"})

RECORDING: Final = _SCHEDULED | {"torch.autograd.profiler.profile"}
"""Profilers that keep what they record until they end, unless a schedule says otherwise."""

ANNOTATING: Final = frozenset({"torch.autograd.profiler.emit_nvtx", "torch.autograd.profiler.emit_itt"})
"""Those that mark every operation for the profiler of a vendor."""


_OF_VENDORS = ("dlprof", "nvtx", "pyprof", "torch.cuda.nvtx", "torch.cuda.profiler")
_STARTING = frozenset({"cudaProfilerStart", "cudaProfilerStop"})


@dataclass(frozen=True, slots=True)
class Profiled:
    """A training that a profiler records: the profiler's name, what trains, and if it starts at each step."""

    profiler: str
    training: cst.CSTNode
    each_step: bool


def profiled_training(module: Module, call: cst.Call) -> Profiled | None:
    """Return the training of which a profiler records every step,
    if no option and no schedule limits that.
    """
    name = module.qualified(call.func)
    if name is None or (name not in RECORDING and name not in ANNOTATING) or is_test(module):
        return None
    block = _recorded(module, call)
    if block is None or _is_limited(module, call) or optional(module, call):
        return None
    hot = places.hot(module, block)
    if hot is None:
        training = training_in(module, block, whole=True)
        return None if training is None else Profiled(name, training, each_step=False)
    if not isinstance(hot.loop, (cst.For, cst.While)) or phase(module, block) is not Phase.TRAINING:
        return None
    if ends_soon(module, block):
        return None
    return Profiled(name, hot.loop, each_step=True) if places.computes(module, block) else None


def _recorded(module: Module, call: cst.Call) -> cst.BaseSuite | None:
    """Return the block of the ``with`` that a profiler is made for."""
    item = module.tree.parent(call)
    block = module.tree.parent(item) if isinstance(item, cst.WithItem) else None
    return block.body if isinstance(block, cst.With) else None


def _is_for_vendor(module: Module) -> bool:
    """Return whether a program starts the profiler of a vendor, or marks more for it than torch does."""
    if imports(module, _OF_VENDORS) or not _STARTING.isdisjoint(identifiers(module)):
        return True
    called = (module.qualified(call.func) for call in module.tree.nodes(cst.Call))
    return any(name is not None and is_below(name, _OF_VENDORS) for name in called)


def _is_limited(module: Module, call: cst.Call) -> bool:
    """Return whether a schedule or a condition says when to record."""
    if any(argument.star for argument in call.args):
        return True
    if module.qualified(call.func) in ANNOTATING and _is_for_vendor(module):
        return True
    if module.qualified(call.func) in _SCHEDULED:
        return given_as(call, "schedule", 1) is not None
    enabled = given_as(call, "enabled", 0)
    return enabled is not None and module.value(enabled).constant is not True

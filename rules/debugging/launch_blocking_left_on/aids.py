"""Switches for debugging that cost time for as long as they are on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Aid:
    """A switch that is there to look for one error, and what it costs.

    ``on`` are the values that switch it on; where it is empty, all do but ``0`` and nothing. ``cost`` is a
    clause about the switch. ``always``: it costs time at every step; else only now and then. ``by_driver``:
    it is read when the driver of the device is started.
    """

    cost: str
    on: frozenset[object] = frozenset()
    always: bool = True
    by_driver: bool = False

    def switched_on(self, value: object) -> bool:
        """Return whether a value switches it on."""
        return value in self.on if self.on else value not in ("0", "", "false", "False", 0, None)


_BLOCKING: Final = Aid("makes every kernel launch synchronous", by_driver=True)
_UNCACHED: Final = Aid("disables the caching allocator", by_driver=True)

VARIABLES: Final[Mapping[str, Aid]] = {
    "CUDA_LAUNCH_BLOCKING": _BLOCKING,
    "HIP_LAUNCH_BLOCKING": _BLOCKING,
    "AMD_SERIALIZE_KERNEL": Aid(_BLOCKING.cost, frozenset({"1", "2", "3"}), by_driver=True),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": _UNCACHED,
    "PYTORCH_NO_HIP_MEMORY_CACHING": _UNCACHED,
    "TORCH_DISTRIBUTED_DEBUG": Aid("verifies every collective across ranks", frozenset({"DETAIL", "detail"})),
    "TORCH_COMPILE_DEBUG": Aid("writes debug files for every compiled graph", always=False),
}
"""Variables of the environment. NCCL and torch read them once, when they start."""

FUNCTIONS: Final[Mapping[str, tuple[str, Aid]]] = {
    "torch.cuda.set_sync_debug_mode": (
        "debug_mode",
        Aid(
            "reports every synchronization with the device", frozenset({1, 2, "warn", "error"}), always=False
        ),
    ),
}
"""Functions, with the parameter that decides."""

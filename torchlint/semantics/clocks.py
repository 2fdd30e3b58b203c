"""Clocks of the host: where a program reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

WALL_CLOCKS: Final = frozenset(
    {f"time.{name}{unit}" for name in ("time", "perf_counter", "monotonic") for unit in ("", "_ns")}
    | {"timeit.default_timer"}
)
"""Functions that say how late it is, for times between two readings."""

CLOCKS: Final = WALL_CLOCKS | {"time.process_time", "time.process_time_ns", "datetime.datetime.now"}
"""All functions whose result stands for a moment."""


def reads_clock(module: Module, node: cst.CSTNode) -> bool:
    """Whether a node reads a clock, of whatever kind."""
    return isinstance(node, cst.Call) and module.qualified(node.func) in CLOCKS


def read_between(module: Module, first: cst.CSTNode, last: cst.CSTNode) -> cst.Call | None:
    """The first reading of a clock between two places of one function."""
    order, function = module.tree.order, module.function(first)
    for call in module.tree.nodes(cst.Call):
        if order[first] < order[call] < order[last] and reads_clock(module, call):
            if module.function(call) is function:
                return call
    return None

"""What a wait is worth that cannot be taken out without rewriting what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Frequency, Impact
from torchlint.semantics.frequency import frequency
from torchlint.semantics.places import served
from torchlint.semantics.synchronisation import after_a_wait, before_a_wait

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def slight(module: Module, node: cst.CSTNode) -> Impact:
    """The impact of such a wait: low, but for decoding and serving, where waits are taken out at any cost.

    The one by which a decoding loop ends is left in by all but servers.
    """
    if served(module, node):
        return Impact.HIGH
    decoding = frequency(module, node) is Frequency.TOKEN and not leaves_loop(module, node)
    return Impact.HIGH if decoding else Impact.LOW


def in_row(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the host waits just before or behind a wait, so that it gains little without this one.

    Servers are rid of all waits in a row, one after the other.
    """
    return (after_a_wait(module, node) or before_a_wait(module, node)) and not served(module, node)


def leaves_loop(module: Module, node: cst.CSTNode) -> bool:
    """Whether a loop or function is left by a decision on ``node``."""
    decision = module.flow.condition(node)
    if isinstance(decision, cst.While):
        return True
    return isinstance(decision, cst.If) and any(
        isinstance(part, (cst.Break, cst.Return)) for part in module.tree.descendants(decision.body)
    )

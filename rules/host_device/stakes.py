"""What a wait is worth that cannot be taken out without rewriting what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Frequency, Impact
from torchlint.semantics.frequency import frequency
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.serving import serves

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def slight(module: Module, node: cst.CSTNode) -> Impact:
    """The impact of such a wait: low, but for decoding and serving, where waits are taken out at any cost.

    The one by which a decoding loop ends is left in by all but servers. What training calls serves nobody.
    """
    function = module.function(node)
    if function is not None and serves(module, function) and phase(module, node) is not Phase.TRAINING:
        return Impact.HIGH
    decoding = frequency(module, node) is Frequency.TOKEN and not leaves_loop(module, node)
    return Impact.HIGH if decoding else Impact.LOW


def leaves_loop(module: Module, node: cst.CSTNode) -> bool:
    """Whether a loop or function is left by a decision on ``node``."""
    decision = module.flow.condition(node)
    if isinstance(decision, cst.While):
        return True
    return isinstance(decision, cst.If) and any(
        isinstance(part, (cst.Break, cst.Return)) for part in module.tree.descendants(decision.body)
    )

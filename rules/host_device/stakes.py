"""What a wait is worth that cannot be taken out without rewriting what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.diagnostics import Frequency, Impact
from torchlint.semantics.frequency import frequency
from torchlint.semantics.serving import serves

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.module import Module


def slight(module: Module, node: cst.CSTNode) -> Impact:
    """The impact of such a wait: low, but for decoding and serving, where waits are taken out at any cost."""
    function = module.function(node)
    if function is not None and serves(module, function):
        return Impact.HIGH
    return Impact.HIGH if frequency(module, node) is Frequency.TOKEN else Impact.LOW

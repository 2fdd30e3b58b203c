"""Models that are put into evaluation mode and stay there, whatever follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import evalmode
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


@remembered
def trains_in_evaluation_mode(module: Module) -> bool:
    """Return whether a model may be in evaluation mode where the file backpropagates,
    or is never trained at all.

    ``eval()`` behind the training, outside of its loop, is how scripts end, and says nothing.
    """
    switched = [call for call in module.tree.nodes(cst.Call) if _switches(module, call)]
    evaluating = [call for call in switched if not _trains(module, call)]
    if not evaluating:
        return False
    backwards = [backward.call for backward in Backpropagation.of(module).passes]
    if not backwards:
        return True
    if len(evaluating) < len(switched):
        # A `train()` somewhere ends it, but where nothing calls that before the next step.
        return any(evalmode.left_evaluating(module, call) is not None for call in evaluating)
    order = module.tree.order
    return not all(
        module.function(call) is module.function(backward)
        and order[backward] < order[call]
        and not any(module.tree.contains(loop, backward) for loop in module.flow.loops(call))
        for call in evaluating
        for backward in backwards
    )


def _switches(module: Module, call: cst.Call) -> bool:
    """Return whether a call sets the mode of a model that is trained: no teacher,
    no average of another one.
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("eval", "train"):
        return False
    owner = call.func.value
    if call.func.attr.value == "eval" and call.args:
        return False
    return module.value(owner).kind is Kind.MODULE and not has(last_name(owner), Role.COPY)


def _trains(module: Module, call: cst.Call) -> bool:
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value == "eval":
        return False
    return not call.args or module.value(call.args[0].value).constant is not False

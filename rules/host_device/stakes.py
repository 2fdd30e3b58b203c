"""What a wait is worth that cannot be taken out without rewriting what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.semantics.flow.graph import FUNCTIONS
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Hot, in_engine
from torchlint.semantics.repetition import frequency
from torchlint.semantics.serving import is_of_engine, steps_engine

from .remedies import in_forward, is_makeshift, runs_as_function
from .waits import after_a_decision, after_a_guard, after_a_wait, before_a_wait

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


BESIDE = "the host waits right next to it anyway"
NEEDED = "the host needs the value here"
RESULTS = "the results are wanted on the host"
ON_BAR = "a progress bar shows the number"
DECIDES = "the value decides what Python does next"
AS_SIZE = "the host needs it as a size or bound"
"""Why little is at stake in a wait, behind "impact: low, "."""


def slight(module: Module, node: cst.CSTNode, why: str) -> str | None:
    """Return ``why`` little is at stake in such a wait; None in decoding and serving,
    where waits are taken out at any cost.

    The one by which a decoding loop ends is left in by all but servers.
    """
    if in_server(module, node):
        return None
    decoding = frequency(module, node) is Frequency.TOKEN and not leaves_loop(module, node)
    return None if decoding else why


def inherent(module: Module, node: cst.CSTNode) -> str | None:
    """Return why little is at stake in a wait for the size of what is wanted itself;
    None in servers, which pad instead.
    """
    return None if in_server(module, node) else "the selected elements are the result"


def in_server(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a place runs at every step of an engine for inference, which is rid of its waits one
    after the other.

    What is given tensors of a pass of a model, and nothing else of an engine, is part of a training as well.
    What only looks as if it ran at each step, such as the processing of results, is as elsewhere.
    """
    function = module.function(node)
    if not in_engine(module, node):
        return False
    if isinstance(function, cst.FunctionDef) and is_of_engine(module, function):
        return True
    return phase(module, node) is not Phase.TRAINING and not module.mentions(".backward(")


def unspared(module: Module, hot: Hot, remedy: str) -> str | None:
    """Return why little is at stake in a wait in whose place nothing is known to put, in a function that is
    hot by its role alone; None in a `forward`, and where an engine calls the function.
    """
    if not is_makeshift(remedy) or not runs_as_function(hot) or in_forward(hot):
        return None
    assert isinstance(hot.loop, FUNCTIONS)
    engine = steps_engine(module.home(hot.loop), hot.loop)
    return None if engine else "nothing is known that could take its place"


def in_row(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the host waits just before or behind a wait, so that it gains little without this one.

    Servers are rid of all waits in a row, one after the other.
    """
    return (after_a_wait(module, node) or before_a_wait(module, node)) and not in_server(module, node)


def behind_wait(module: Module, node: cst.BaseExpression, *, guards: bool = False) -> str | None:
    """Return that little is at stake in a wait for which a device tensor decides just before: in the branch
    of that decision, and with ``guards`` behind the one that leaves a round; None for any other.
    """
    waited = after_a_decision(module, node) or (guards and after_a_guard(module, node))
    return BESIDE if waited else None


def leaves_loop(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a loop or function is left by a decision on ``node``."""
    decision = module.flow.condition(node)
    if isinstance(decision, cst.While):
        return True
    if not isinstance(decision, cst.If):
        return False
    leaving = any(isinstance(part, _LEAVING) for part in module.tree.descendants(decision.body))
    return leaving or _stays_else_leaves(module, decision)


_LEAVING = (cst.Break, cst.Return)


def _stays_else_leaves(module: Module, decision: cst.If) -> bool:
    """Return whether it is ``if not done: continue``, and ``break`` at the end of the block."""
    block = module.tree.parent(decision)
    if not isinstance(block, cst.IndentedBlock):
        return False
    last, inside = block.body[-1], decision.body.body[-1]
    goes_on = isinstance(inside, cst.SimpleStatementLine) and isinstance(inside.body[-1], cst.Continue)
    return goes_on and isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], _LEAVING)

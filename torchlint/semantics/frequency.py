"""How often a place runs: every decoding step, every training step, every evaluated batch, every epoch, once.

`places.hot` says what runs at every step. Elsewhere the loops around a place tell how often it runs, those
around the calls of its function included: in a loop of steps, a place that is not hot is reached in a few of
them; in a loop whose rounds hold loops of steps, once an epoch. If a function is not seen to be called, that
cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.semantics import places
from torchlint.semantics.flow.graph import Loop
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Cause, Heat, Hot

_RUNS_MODEL = frozenset({Cause.MODULE_CALL, Cause.MODULE_METHOD, Cause.GIVEN_MODEL})


def frequency(module: Module, node: cst.CSTNode) -> Frequency:
    """How often a program runs a node; of several ways to it, the one that runs most often counts.

    A function that is defined, or its name there, runs as often as it is called.
    """
    node = _defined(module, node)
    doing = phase(module, node)
    if doing is Phase.DATASET:
        # Workers make the batches of the next steps.
        return Frequency.STEP
    hot = places.hot(module, node)
    if hot is None:
        return _beside_steps(module, node)
    if doing is not Phase.TRAINING and _feeds_itself(module, hot):
        return Frequency.TOKEN
    return Frequency.BATCH if doing is Phase.EVALUATION else Frequency.STEP


def _defined(module: Module, node: cst.CSTNode) -> cst.CSTNode:
    """The body of the function that a node defines or names where it is defined; any other node itself."""
    around = module.tree.parent(node)
    if isinstance(node, cst.FunctionDef):
        return node.body
    return around.body if isinstance(around, cst.FunctionDef) and node is around.name else node


# --- decoding -------------------------------------------------------------------------------------------


def _feeds_itself(module: Module, hot: Hot) -> bool:
    """Whether each round of a loop gives a model what an earlier round got from it, and nothing is learnt."""
    loop = hot.loop
    if not isinstance(loop, (cst.For, cst.While)) or hot.reason.cause not in _RUNS_MODEL:
        return False
    if places.over_loader(module, loop):
        return False
    if phase(module, loop.body) is not Phase.EVALUATION and grad(module, loop.body) is not Grad.OFF:
        return False
    calls = module.tree.within(loop, module.tree.nodes(cst.Call))
    return any(places.computes(module, call) and _is_carried(module, call, loop) for call in calls)


def _is_carried(module: Module, call: cst.Call, loop: cst.For | cst.While) -> bool:
    """Whether a call is given something that the loop makes anew behind it, for its next round."""
    tree = module.tree
    waiting = [name for argument in call.args for name in _names(module, argument)]
    seen = {name.value for name in waiting}
    for name in waiting:
        for binding in module.bindings(name):
            if binding.kind is not BindingKind.ASSIGN or not tree.contains(loop, binding.node):
                continue
            made = binding.value
            if made is None:
                continue
            if tree.contains(made, call) or tree.order[made] > tree.order[call]:
                return True
            fresh = [each for each in _names(module, made) if each.value not in seen]
            seen.update(each.value for each in fresh)
            waiting += fresh
    return False


def _names(module: Module, node: cst.CSTNode) -> Iterator[cst.Name]:
    return (each for each in module.tree.descendants(node) if isinstance(each, cst.Name))


# --- what is not hot ------------------------------------------------------------------------------------


def _beside_steps(module: Module, node: cst.CSTNode) -> Frequency:
    """How often a node runs that does not run at every step."""
    found: list[Frequency] = []
    places_to_go: list[cst.CSTNode] = [node]
    seen: set[cst.CSTNode] = set()
    for place in places_to_go:
        around = _by_loops(module, place)
        if around is not None:
            found.append(around)
            continue
        function = module.function(place)
        if function is None:
            found.append(Frequency.ONCE)
        elif function not in seen:
            seen.add(function)
            callers = module.callers(function)
            if callers:
                places_to_go += callers
            else:
                once = phase(module, place) is Phase.SETUP or places.starts_run(module, function)
                found.append(Frequency.ONCE if once else Frequency.UNKNOWN)
    return max(found, default=Frequency.UNKNOWN)


def _by_loops(module: Module, place: cst.CSTNode) -> Frequency | None:
    """What the loops around a place in its function say; None if there are none."""
    loops: list[Loop] = module.flow.loops(place)
    for loop in loops:
        if places.heat(module, loop) is not Heat.COLD:
            return Frequency.RARELY
        if places.computes(module, loop):
            return Frequency.EPOCH
    return Frequency.UNKNOWN if loops else None

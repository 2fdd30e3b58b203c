"""Waits that stay whatever is done about those beside them, so that taking these out gains nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Cause
from torchlint.semantics.remembered import remembered, solved
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import (
    asks_device,
    conversion,
    host_copy,
    mask_of,
    may_be_on_device,
    shape_wait,
)
from torchlint.semantics.usage import feeds_host_engine, handed_to

from .destinations import steps_environment, writes_out
from .invariance import never_changes
from .needs import Need, needed_on_host
from .purpose import keeps_results, reads_items
from .remedies import packs_sequences
from .selections import Fate, fates
from .stakes import leaves_loop
from .waits import after_a_wait, waiting_place

if TYPE_CHECKING:
    from torchlint.semantics.flow.control import Facts
    from torchlint.semantics.flow.graph import Function, Root
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot

_SELECTING = frozenset({"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive", "where"})


def beside_staying_wait(module: Module, node: cst.BaseExpression, hot: Hot) -> bool:
    """Return whether each round of a hot place waits for what the program cannot do without,
    near ``node``.
    """
    return (
        waits_anyway(module, node, hot)
        or after_staying_wait(module, node)
        or before_staying_wait(module, node, hot)
    )


def waits_anyway(module: Module, node: cst.CSTNode, hot: Hot) -> bool:
    """Return whether the host waits in the same iteration of a loop for a value by which it ends the loop,
    or for the action of an agent.

    Any loop will do that runs at each step, in the functions that the hot place comes by as well. Where
    a step trains, gradients may be computed between the two, so that only waits nearby count.
    """
    trains = hot.reason.cause in (Cause.OPTIMIZER_STEP, Cause.GRADIENTS)
    around = (loop for place in (*hot.path, node) for loop in module.flow.loops(place))
    outside = {id(loop) for loop in module.flow.loops(hot.loop)}
    return any(
        other is not node
        for loop in (hot.loop, *around)
        if isinstance(loop, (cst.For, cst.While)) and id(loop) not in outside
        for other in (*(() if trains else _deciding(module, loop)), *_acting(module, loop))
    )


@remembered
def _acting(module: Module, loop: cst.For | cst.While) -> list[cst.Call]:
    """Return the calls in a loop by which an agent acts in an environment, which is given no tensor.

    The host has read the action then, and has nothing queued while it simulates.
    """
    return [
        call
        for call in module.tree.nodes_within(loop, cst.Call)
        if last_name(call.func) == "step" and steps_environment(module, call)
        if not places.throttled(module, call)
        if not any(may_be_on_device(module, argument.value) for argument in call.args)
    ]


@remembered
def _deciding(module: Module, loop: cst.For | cst.While) -> list[cst.BaseExpression]:
    """Return the reads in a loop, or in the condition of a ``while``, by which it goes on or not."""
    asked = list(asks_device(module, loop.test)) if isinstance(loop, cst.While) else []
    return asked + [
        call
        for call in module.tree.nodes_within(loop, cst.Call)
        if conversion(module, call) is not None or host_copy(module, call) is not None
        if not places.throttled(module, call)
        if needed_on_host(module, call) is Need.DECISION
    ]


def after_staying_wait(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the host has waited shortly before ``node`` for what the program cannot do without.

    Where it has waited for what could be read later as well, such as a loss that is added up, or for the size
    of a selection that is only summed, both are to be changed: a step gains nothing before the last is gone.
    """
    return after_a_wait(module, node, _could_be_later)


def _could_be_later(module: Module, wait: cst.BaseExpression) -> bool:
    """Return whether it is a call that reads a number or a tensor
    which nothing in the same iteration needs on the host, or a selection that is not the result.
    """
    if isinstance(wait, cst.Subscript):
        return mask_of(module, wait) is not None and not _is_result(module, wait)
    return isinstance(wait, cst.Call) and _reads_what_could_be_later(module, wait)


def _is_result(module: Module, selected: cst.Subscript) -> bool:
    """Return whether a mask selects what is wanted itself, by other places in each step."""
    mask = mask_of(module, selected)
    if mask is None or Fate.KEPT not in fates(module, selected):
        return False
    return not never_changes(module, mask)


def _reads_what_could_be_later(module: Module, call: cst.Call) -> bool:
    if host_copy(module, call) is None and conversion(module, call) is None:
        return False
    if module.flow.condition(call) is not None or _is_needed(module, call):
        return False
    return waiting_place(module, call) is not None and not _keeps(module, call)


def _keeps(module: Module, call: cst.Call) -> bool:
    """Return whether a call copies the results of an evaluation to the host, which are wanted there."""
    hot = waiting_place(module, call)
    return hot is not None and keeps_results(module, call, hot)


def _is_needed(module: Module, call: cst.Call) -> bool:
    """Return whether something in the same iteration needs what a call reads on the host."""
    return (
        needed_on_host(module, call) is not None
        or handed_to(module, call, _takes_from_host)
        or reads_items(module, call)
    )


def _takes_from_host(module: Module, receiver: cst.Call) -> bool:
    """Return whether a call works with what is on the host: a simulation, a writer of files, a library."""
    return (
        steps_environment(module, receiver)
        or packs_sequences(module, receiver)
        or feeds_host_engine(module, receiver)
        or (writes_out(module, receiver) and phase(module, receiver) is not Phase.TRAINING)
    )


def before_staying_wait(module: Module, node: cst.BaseExpression, hot: Hot) -> bool:
    """Return whether the host waits behind ``node`` for what the program cannot do without,
    before it runs a model.

    That is a number or an array that the host needs, results of an evaluation, a selection that is the
    result, or a decision by which a loop or function is left, on every way that the same iteration can take,
    in the functions that the hot loop comes by as well.
    """
    at_end = False
    for place in (*hot.path, node):
        at_end = module.flow.at_point(place, _waits_behind(module, module.flow.root(place), at_end))
    return at_end


@remembered
def _waits_behind(module: Module, root: Root, at_end: bool) -> Facts:
    """Return for each point of a function, and its start, whether such a wait comes behind it,
    or ``at_end``.
    """

    def waits(point: cst.CSTNode) -> bool | None:
        part = point.iter if isinstance(point, cst.For) else point
        if places.computes(module, part):
            return False
        return True if _needs_wait(module, part) else None

    return module.flow.anticipated(root, waits, at_end=at_end)


@solved(nothing=False)
def _begins_with_wait(module: Module, function: Function) -> bool:
    """Return whether each call of a function waits for what the program needs, before it runs a model."""
    return not isinstance(function, cst.Lambda) and _waits_behind(module, function, False).far


def _needs_wait(module: Module, part: cst.CSTNode) -> bool:
    """Return whether something waits for a value or a size that the program needs."""
    if isinstance(part, cst.BaseCompoundStatement):
        return False
    if module.flow.condition(part) is not None and _stays(module, part):
        return True
    for each in module.tree.descendants(part):
        if isinstance(each, cst.Subscript):
            if _is_result(module, each):
                return True
        elif isinstance(each, cst.Call):
            if conversion(module, each) is not None or host_copy(module, each) is not None:
                if _is_needed(module, each) or _keeps(module, each):
                    return True
            elif last_name(each.func) in _SELECTING and shape_wait(module, each):
                if Fate.KEPT in fates(module, each):
                    return True
            else:
                callees = module.callees(each)
                if callees and all(_begins_with_wait(module, callee) for callee in callees):
                    return True
    return False


def _stays(module: Module, test: cst.CSTNode) -> bool:
    """Return whether a decision asks the device, and a loop or function is left by it,
    if only with an error.
    """
    if not isinstance(test, cst.BaseExpression) or not any(asks_device(module, test)):
        return False
    decision = module.flow.condition(test)
    raises = isinstance(decision, cst.If) and module.flow.ends_badly(decision.body.body[0])
    return raises or isinstance(decision, cst.Assert) or leaves_loop(module, test)

"""Waits that stay whatever is done about those beside them, so that taking these out gains nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics import places
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import (
    after_a_wait,
    conversion,
    host_copy,
    mask_of,
    shape_wait,
    waiting_place,
)
from torchlint.semantics.usage import feeds_host_engine, handed_to, steps_environment, writes_out

from .needs import needed_on_host
from .purpose import keeps_results
from .remedies import packs_sequences
from .selections import Fate, fates

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SELECTING = frozenset({"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive", "where"})


def after_staying_wait(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the host has waited shortly before ``node`` for what the program cannot do without.

    Where it has waited for what could be read later as well, such as a loss that is added up, both reads are
    to be changed: a step gains nothing before the last of them is gone.
    """
    return after_a_wait(module, node, _could_be_later)


def _could_be_later(module: Module, call: cst.Call) -> bool:
    """Whether a call reads a number or a tensor that nothing in the same iteration needs on the host."""
    copies = host_copy(module, call) is not None
    if not copies and conversion(module, call) is None:
        return False
    if module.flow.condition(call) is not None or needed_on_host(module, call) is not None:
        return False
    if handed_to(module, call, _takes_from_host):
        return False
    hot = waiting_place(module, call)
    return hot is not None and not (copies and keeps_results(module, call, hot))


def _takes_from_host(module: Module, receiver: cst.Call) -> bool:
    """Whether a call works with what is on the host: a simulation, a writer of files, a library."""
    return (
        steps_environment(module, receiver)
        or packs_sequences(module, receiver)
        or feeds_host_engine(module, receiver)
        or (writes_out(module, receiver) and phase(module, receiver) is not Phase.TRAINING)
    )


def before_staying_wait(module: Module, node: cst.BaseExpression) -> bool:
    """Whether the host waits behind ``node`` for what the program cannot do without, before it runs a model.

    That is a number or an array that the host needs, or a selection that is the result, in one of the
    statements that follow that of ``node`` in its block.
    """
    tree = module.tree
    statement = tree.statement(node)
    block = tree.parent(statement)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)) or isinstance(
        statement, cst.BaseCompoundStatement
    ):
        return False
    return _waits_behind(module, block)[tree.position(statement)]


@remembered
def _waits_behind(module: Module, block: cst.IndentedBlock | cst.Module) -> tuple[bool, ...]:
    """Of each statement of a block, whether such a wait comes behind it."""
    found: list[bool] = []
    waits = False
    for statement in reversed(block.body):
        found.append(waits)
        first = _evaluated_first(statement)
        if places.computes(module, first):
            waits = False
        elif _needs_wait(module, first):
            waits = True
        elif first is not statement:
            waits = False  # What stands in a branch or loop may not run.
    return tuple(reversed(found))


def _evaluated_first(statement: cst.CSTNode) -> cst.CSTNode:
    """What surely runs of a statement."""
    match statement:
        case cst.If(test=test) | cst.While(test=test):
            return test
        case cst.For(iter=iterable):
            return iterable
    return statement


def _needs_wait(module: Module, part: cst.CSTNode) -> bool:
    """Whether something waits for a value or a size that the program needs."""
    if isinstance(part, cst.BaseCompoundStatement):
        return False
    for each in (part, *module.tree.descendants(part)):
        if isinstance(each, cst.Subscript):
            if mask_of(module, each) is not None and Fate.KEPT in fates(module, each):
                return True
        elif isinstance(each, cst.Call):
            if conversion(module, each) is not None or host_copy(module, each) is not None:
                if needed_on_host(module, each) is not None:
                    return True
            elif last_name(each.func) in _SELECTING and shape_wait(module, each):
                if Fate.KEPT in fates(module, each):
                    return True
    return False

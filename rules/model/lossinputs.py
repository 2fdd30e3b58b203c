"""Edits that take the last operation out of what losses are given."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.fixes import Edits, remove_statement, replace
from torchlint.semantics.constancy import same_later
from torchlint.semantics.formulas import argument
from torchlint.semantics.operations import operations_of

from .formulas import one_line, superfluous
from .losses import GivenTo, given_to

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def of_same_value(module: Module, given: GivenTo, function: str, names: Collection[str]) -> list[GivenTo]:
    """Return a loss, and the other calls of the function that read the same value, if nothing but those does.

    They are rewritten in one edit: with each by itself the value would be left, and nothing would read it.
    """
    reads = {use for name in given.ending.through for b in module.bindings(name) for use in module.uses(b)}
    found = [given]
    for read in reads.difference(given.ending.through):
        call = module.tree.enclosing(read, cst.Call)
        if call is None or module.qualified(call.func) != function:
            return [given]
        other = given_to(module, call, function, "", names)
        if other is None or other.given is not read or other.ending.operation is not given.ending.operation:
            return [given]
        found.append(other)
    return sorted(found, key=lambda each: module.tree.order[each.call])


def without_ending(module: Module, losses: Sequence[GivenTo]) -> list[Edits | None] | None:
    """Return the edits that give losses what their input was computed of;
    None if they cannot be made here.
    """
    edits: list[Edits | None] = []
    replaced = {name for each in losses for name in each.ending.through}
    for given in losses:
        operation = given.ending.operation
        if operation is None or given.ending.reshaped or module.tree.is_elsewhere(given.call):
            return None
        x = operation.operands[0]
        code = argument(module, x)
        found = superfluous(module, given.ending.through, replaced)
        if found is None or not one_line(code):
            return None
        gone, all_gone = found
        if not same_later(module, x, given.call, gone):
            return None
        if (not all_gone or len(losses) > 1) and not operations_of(module).at_hand(x):
            # The value is needed elsewhere, too, and what it is computed of would be computed twice.
            return None
        edits.append(replace(module, given.given, code))
        edits += [remove_statement(module, statement) for statement in gone]
    return edits

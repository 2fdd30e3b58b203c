"""Edits that take the last operation out of what a loss is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.diagnostics import Edit
from torchlint.semantics.algebra import argument, one_line, superfluous
from torchlint.semantics.constancy import same_later
from torchlint.semantics.model.losses import GivenTo

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

Edits = tuple[Edit, ...]


def without_ending(module: Module, given: GivenTo) -> list[Edits | None] | None:
    """The edits that give the loss what its input was computed of; None if they cannot be made here."""
    operation = given.ending.operation
    if operation is None or given.ending.reshaped:
        return None
    x = operation.operands[0]
    code = argument(module, x)
    found = superfluous(module, given.ending.through)
    if found is None or not one_line(code):
        return None
    gone, all_gone = found
    if not same_later(module, x, given.call, gone):
        return None
    if not all_gone and not module.dataflow.operations.at_hand(x):
        # The value is needed elsewhere, too, and what it is computed of would be computed twice.
        return None
    return [
        module.replace(given.given, code),
        *(module.remove_statement(statement) for statement in gone),
    ]

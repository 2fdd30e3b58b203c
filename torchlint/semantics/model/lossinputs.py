"""Edits that take the last operation out of what a loss is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.diagnostics import Edit
from torchlint.semantics.algebra import argument, one_line, removable, still
from torchlint.semantics.model.losses import GivenTo

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

Edits = tuple[Edit, ...]


def without_ending(module: Module, found: GivenTo) -> list[Edits | None] | None:
    """The edits that give the loss what its input was computed of; None if they cannot be made here."""
    operation = found.ending.operation
    if operation is None or found.ending.reshaped:
        return None
    x = operation.operands[0]
    code = argument(module, x)
    if not one_line(code) or not still(module, x, found.call):
        return None
    gone = [removable(module, name) for name in found.ending.through]
    if any(statement is None for statement in gone) and not module.dataflow.operations.at_hand(x):
        # The value is needed elsewhere, too, and what it is computed of would be computed twice.
        return None
    statements = [statement for statement in gone if statement is not None] if None not in gone else []
    return [
        module.replace(found.given, code),
        *(module.remove_statement(statement) for statement in dict.fromkeys(statements)),
    ]

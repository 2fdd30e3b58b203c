"""What is left of a formula when one call takes its place: the text of its operands, and its assignments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.constancy import unwritten
from torchlint.semantics.names import BindingKind, ScopeKind
from torchlint.semantics.operations import operations_of
from torchlint.semantics.usage import uses_by_name
from torchlint.semantics.wholeprogram import used_elsewhere

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding


def through_names(module: Module, node: cst.BaseExpression, steps: int) -> list[cst.Name]:
    """Return the names on the way from an expression through the first operands of this many operations."""
    found: list[cst.Name] = []
    current: cst.CSTNode | None = node
    for _ in range(steps + 1):
        while isinstance(current, cst.Name):
            found.append(current)
            bindings = module.bindings(current)
            current = operations_of(module).definition(bindings[0]) if len(bindings) == 1 else None
        operation = operations_of(module).of(current) if current is not None else None
        if operation is None:
            break
        current = operation.operands[0]
    return found


def superfluous(
    module: Module, names: Sequence[cst.Name], replaced: Collection[cst.CSTNode] = ()
) -> tuple[list[cst.CSTNode], bool] | None:
    """Return the statements that nothing needs once ``names`` are not read any more,
    and whether those are all.

    The names lead from one to the next, each to what the one before it is computed of. ``replaced`` are
    reads that go away in the same edit. None if a value would be left that nothing reads, or was changed
    in between.
    """
    gone: list[cst.CSTNode] = []
    for name in names:
        bindings = module.bindings(name)
        if len(bindings) != 1 or not unwritten(module, name):
            return None
    for name in names:
        (binding,) = module.bindings(name)
        if any(use is not name and use not in replaced for use in module.uses(binding)):
            return gone, False
        statement = _only_assignment(module, binding)
        if statement is None:
            return None
        if statement not in gone:
            gone.append(statement)
    return gone, True


def removable(module: Module, name: cst.Name) -> cst.CSTNode | None:
    """Return the statement that gives a name its only value,
    if nothing else reads it and no comment is lost.
    """
    bindings = module.bindings(name)
    if len(bindings) != 1 or len(module.uses(bindings[0])) != 1:
        return None
    return _only_assignment(module, bindings[0])


def _only_assignment(module: Module, binding: Binding) -> cst.CSTNode | None:
    """Return the line on which a binding is made and nothing else happens; None if it would be missed.

    A comment would go with it, or code asks for the name otherwise: by ``del``, by ``locals()``, as an
    attribute of a class, or from another file.
    """
    if any(other.kind is BindingKind.DELETE for other in binding.scope.bindings.get(binding.name, ())):
        return None
    if uses_by_name(module, binding) or (
        binding.scope.kind is ScopeKind.MODULE and used_elsewhere(module, binding.name)
    ):
        return None
    line = module.tree.statement(binding.node)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    small = line.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    return None if loses_comment(module, line) else line


def loses_comment(module: Module, statement: cst.CSTNode) -> bool:
    """Return whether a comment would be lost with a statement: one inside, or at the end of its last line."""
    span = module.tree.span(statement)
    end = module.tree.text.find("\n", span.end)
    end = len(module.tree.text) if end < 0 else end
    return bool(module.tree.comments_between(span.start, end))


def one_line(code: str) -> bool:
    """Return whether code fits a line as it is: no comment in it, and no line end."""
    return "#" not in code and "\n" not in code

"""Where a file uses names that a library gave up, and whether it knows that it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.upgrades import SYMBOLS, Upgrade
from torchlint.semantics.identifiers import named
from torchlint.semantics.names import canonical
from torchlint.semantics.releasechecks import ReleaseChecks
from torchlint.semantics.upgrading import GIVEN_UP, last_part, root_of, upgrade_at
from torchlint.syntax import alike
from torchlint.target import TORCH

from .spectra import of_call

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What waits for a warning or an error, in pytest, unittest and Python's own ``warnings``.
_EXPECTING = frozenset(
    {"warns", "raises", "deprecated_call", "catch_warnings", "assertWarns", "assertWarnsRegex"}
    | {"assertRaises", "assertRaisesRegex"}
)


def uses_of_given_up(
    module: Module, node: cst.Attribute | cst.ImportFrom
) -> Iterator[tuple[cst.BaseExpression | cst.ImportAlias, Upgrade]]:
    """Yield what a file does with names that were given up, with the rows of the table.

    An attribute is such a use itself; an import gives the reads of what it names, or itself without any.
    """
    if isinstance(node, cst.Attribute):
        row = upgrade_at(module, node)
        if (
            row is None
            or row.owner
            or isinstance(module.tree.parent(node), (cst.ImportFrom, cst.ImportAlias))
        ):
            return
        # That torch is tried to be imported says nothing of what torch has.
        parts = [each for each in module.bindings(root_of(node)) if each.imported != row.package]
        if not any(ReleaseChecks.of(module).tries(binding.node, broadly=True) for binding in parts):
            yield node, of_call(module, node, row)
        return
    for alias in () if isinstance(node.names, cst.ImportStar) else node.names:
        if not isinstance(alias.name, cst.Name) or alias.name.value not in GIVEN_UP:
            continue
        binding = module.binding_of(alias)
        row = SYMBOLS.get(canonical(binding.imported or "")) if binding is not None else None
        if binding is None or row is None or row.owner or ReleaseChecks.of(module).tries(node, broadly=True):
            continue
        reads = module.uses(binding)
        for read in reads:
            if upgrade_at(module, read) is row:
                yield read, of_call(module, read, row)
        if not reads:
            yield alias, row


def guarded(module: Module, node: cst.CSTNode, row: Upgrade) -> bool:
    """Return whether the file knows that some releases lack a name, or wants to see its warning.

    It asks for the release or for the name, tries, gives the library what it lacks, or is a test of the
    warning.
    """
    checks = ReleaseChecks.of(module)
    names = {last_part(row.symbol), last_part(row.replacement or "") if not row.argument else ""} - {""}
    if any(checks.asks_for(name) for name in names) or _is_given(module, row):
        return True
    if (
        stands_in(module, node, row.package)
        or checks.tries(node, broadly=True)
        or _is_supplanted(module, node)
    ):
        return True
    if isinstance(node, (cst.Name, cst.Attribute)):
        # What was imported under a check is used under it, wherever that is.
        bindings = module.bindings(root_of(node))
        if any(checks.over(binding.node, row.package) for binding in bindings if binding.imported):
            return True
    contexts = module.flow.contexts(node, outward=True)
    return any(not _EXPECTING.isdisjoint(named(module, item.item)) for item in contexts)


def _is_given(module: Module, row: Upgrade) -> bool:
    """Return whether the file gives the library the name that takes the place of the old one."""
    if row.argument or row.replacement is None:
        return False
    given = module.names.attributes.get(last_part(row.replacement), ())
    return any(module.qualified(each.target) == canonical(row.replacement) for each in given)


def _is_supplanted(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the file sets the attribute that ``node`` reads,
    as in ``F.upsample = traced(F.upsample)``.

    Whoever calls it by that name finds something else there, for which the old name is needed.
    """
    if not isinstance(node, cst.Attribute) or module.tree.is_called(node):
        return False
    return any(alike(binding.target, node) for binding in module.names.attributes.get(node.attr.value, ()))


def stands_in(module: Module, node: cst.CSTNode, package: str = TORCH) -> bool:
    """Return whether a node is for some releases only: behind a check, tried,
    or for where what is tried fails.
    """
    return ReleaseChecks.of(module).over(node, package) or ReleaseChecks.of(module).tries(node)

"""Whether a loop over epochs changes the dataset, of which workers that live on keep a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.sources import Path, Through, traced
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def data_changes(module: Module, constructor: cst.Call, loop: cst.For | cst.While) -> bool:
    """Return whether a loop over epochs changes the dataset, of which workers that live on keep a copy."""
    dataset = Loaders.of(module).dataset(constructor)
    if module.link is not None:
        return _changed_in_program(module, dataset, loop)
    known = {module.source(dataset)} if dataset is not None else set()
    return any(
        _is_held(node) or module.source(node.value) in known
        for node in module.tree.descendants(loop)
        if isinstance(node, cst.Attribute) and _changes(module, node)
    )


def _changed_in_program(
    module: Module, dataset: cst.BaseExpression | None, loop: cst.For | cst.While
) -> bool:
    """Return whether a loop, or a function that it calls, in whatever file, changes a dataset."""
    made = _makers(module, dataset) - {None} if dataset is not None else frozenset()
    spelt = module.source(dataset) if dataset is not None and not module.tree.is_elsewhere(dataset) else None
    seen: dict[cst.CSTNode, None] = {loop: None}
    waiting: list[cst.CSTNode] = [loop]
    for around in waiting:
        home = module.home(around)
        for node in home.tree.descendants(around):
            if isinstance(node, cst.Call):
                callee = home.callee(node)
                if callee is not None and callee not in seen and len(seen) < MANY:
                    seen[callee] = None
                    waiting.append(callee)
            elif isinstance(node, cst.Attribute) and _changes(home, node):
                if _is_held(node) or (around is loop and home is module and home.source(node.value) == spelt):
                    return True
                if not made.isdisjoint(_makers(home, node.value)):
                    return True
    return False


def _is_held(attribute: cst.Attribute) -> bool:
    """Return whether an attribute is one of ``loader.dataset``."""
    return isinstance(attribute.value, cst.Attribute) and attribute.value.attr.value == "dataset"


def _changes(module: Module, attribute: cst.Attribute) -> bool:
    """Return whether an attribute is set, or called as a method whose result is discarded.

    A method that returns samples, or transforms what it is given, is called for its result.
    """
    parent = module.tree.parent(attribute)
    if isinstance(parent, (cst.AssignTarget, cst.AugAssign)):
        return True
    return isinstance(parent, cst.Call) and isinstance(module.tree.parent(parent), cst.Expr)


@traced(Through.ITEMS | Through.RETURNS | Through.PARAMETERS)
def _makers(module: Module, node: cst.CSTNode, path: Path) -> cst.CSTNode | None:
    """Return the calls that make an object of a class."""
    if not isinstance(node, cst.Call) or path:
        return None
    runs_function = isinstance(module.callee(node), cst.FunctionDef)
    return node if not runs_function or module.value(node.func).kind is Kind.CLASS else None

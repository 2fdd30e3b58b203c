"""Code that is there beside what torch has of it, by the names and words around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def with_fused_kernel(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a decorator of the class around gives it another kernel where there is one."""
    owner = module.tree.enclosing(node, cst.ClassDef)
    return owner is not None and any("kernel" in module.source(mark) for mark in owner.decorators)


_BESIDE = ("_python", "_fallback", "_reference", "_naive")


def known_to_author(module: Module, node: cst.CSTNode, function: str) -> bool:
    """Return whether the function around knows what torch has as ``function``: it calls it, too,
    or says so.
    """
    around = module.tree.enclosing(node, cst.FunctionDef)
    if around is None:
        return False
    documented = around.get_docstring() or ""
    if around.name.value.endswith(_BESIDE) or f"F.{function}" in documented:
        return True
    return any(
        isinstance(part, cst.Name) and part.value == function for part in module.tree.descendants(around.body)
    )

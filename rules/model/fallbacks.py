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


def implements_operator(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the function around is registered as what an operator of torch does.

    A decomposition of ``aten.silu`` cannot call what it takes apart.
    """
    around = module.tree.enclosing(node, cst.FunctionDef)
    marks = (mark.decorator for mark in around.decorators) if around is not None else ()
    given = (part for mark in marks if isinstance(mark, cst.Call) for part in module.tree.descendants(mark))
    return any(isinstance(part, cst.Attribute) and _names_operator(module, part) for part in given)


def _names_operator(module: Module, node: cst.Attribute) -> bool:
    name = module.qualified(node) or module.source(node)
    return name.startswith(("torch.ops.", "aten."))


_BESIDE = ("_python", "_fallback", "_reference", "_naive")


def known_to_author(module: Module, node: cst.CSTNode, function: str) -> bool:
    """Return whether the function around knows what torch has as ``function``: it calls it, too,
    or says so.
    """
    around = module.tree.enclosing(node, cst.FunctionDef)
    if around is None:
        return False
    if implements_operator(module, node):
        return True
    documented = around.get_docstring() or ""
    if around.name.value.endswith(_BESIDE) or f"F.{function}" in documented:
        return True
    return any(
        isinstance(part, cst.Name) and part.value == function for part in module.tree.descendants(around.body)
    )

"""Code that stands in for what an older release of a library does not have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# ``is_torch_npu_available`` asks for a device.
_ASKS_FOR_RELEASE = re.compile(
    r"\bhasattr\b|__version__|\b_?is_torch(?!_(?:npu|xla|tpu|mlu|musa|xpu|mps|hpu|cuda|sdaa)_)\w*|version\b|\bhas_\w+|_after\(|torch\w*_\d",
    re.IGNORECASE,
)


def for_older_releases(module: Module, node: cst.CSTNode) -> bool:
    """Whether a node stands in ``except ImportError`` or its like, or where the release is asked for."""
    child: cst.CSTNode = node
    for ancestor in module.tree.ancestors(node):
        if isinstance(ancestor, cst.ExceptHandler) and child is ancestor.body:
            if ancestor.type is None or re.search(
                r"ImportError|AttributeError|ModuleNotFoundError|TypeError", module.source(ancestor.type)
            ):
                return True
        if isinstance(ancestor, (cst.If, cst.IfExp)) and child is not ancestor.test:
            if _ASKS_FOR_RELEASE.search(module.source(ancestor.test)):
                return True
        child = ancestor
    return False


def with_fused_kernel(module: Module, node: cst.CSTNode) -> bool:
    """Whether a decorator of the class around gives it another kernel where there is one."""
    owner = module.tree.enclosing(node, cst.ClassDef)
    return owner is not None and any("kernel" in module.source(mark) for mark in owner.decorators)


def known_to_author(module: Module, node: cst.CSTNode, function: str) -> bool:
    """Whether the function around knows what torch has as ``function``: it calls it, too, or says so."""
    around = module.tree.enclosing(node, cst.FunctionDef)
    if around is None:
        return False
    documented = around.get_docstring() or ""
    if around.name.value.endswith(("_python", "_fallback", "_reference")) or f"F.{function}" in documented:
        return True
    return any(
        isinstance(part, cst.Name) and part.value == function for part in module.tree.descendants(around.body)
    )

"""The semantic model of a file, put together: the façade with the context that its values depend on."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from torchlint.diagnostics import Position
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.module import Module, Settings
from torchlint.syntax import SyntaxTree


def build(tree: SyntaxTree, settings: Settings, locate: Callable[[int], Position] | None = None) -> Module:
    """The model of a file; ``locate`` tells the place of an offset as people count it."""
    return Module(tree, settings, locate, _grad_off)


def _grad_off(module: Module, node: cst.CSTNode) -> bool:
    return grad(module, node) is Grad.OFF

"""The semantic model of a file, put together: the façade with the context that its values depend on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import libcst as cst

from torchlint.diagnostics import Position
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.handedon import handed_on
from torchlint.semantics.linked import Link, handing_on
from torchlint.semantics.module import Module, Settings
from torchlint.syntax import SyntaxTree


def build(
    tree: SyntaxTree,
    settings: Settings,
    locate: Callable[[int], Position] | None = None,
    link: Link | None = None,
    fixpoint: Fixpoint[Any, Any] | None = None,
    path: PurePath | None = None,
) -> Module:
    """Return the model of a file; ``locate`` tells the place of an offset as people count it.

    ``path`` is where the file is, for what the configuration declares of its functions.

    With ``link`` it is one of several that know one another, and share a ``fixpoint``.
    """
    if link is None:
        return Module(tree, settings, locate, path, _grad_off, handed_on)
    return handing_on(Module)(tree, settings, locate, path, _grad_off, handed_on, link, fixpoint)


def _grad_off(module: Module, node: cst.CSTNode) -> bool:
    return grad(module, node) is Grad.OFF

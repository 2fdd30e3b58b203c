"""What layers and containers of layers are, by their names in torch, and which code runs one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

MODULE_LIST = "torch.nn.ModuleList"
# Functions that hand back the layer given to them, changed in place.
WRAPPERS = frozenset(
    {
        "torch.nn.utils.spectral_norm",
        "torch.nn.utils.weight_norm",
        "torch.nn.utils.parametrizations.spectral_norm",
        "torch.nn.utils.parametrizations.weight_norm",
        "torch.nn.utils.parametrizations.orthogonal",
        "torch.nn.utils.skip_init",
    }
)
# Methods of a module that return the module itself.
RETURNS_SELF = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "train", "eval", "apply", "requires_grad_"}
)


def runs_layer(module: Module, nodes: Iterable[cst.CSTNode], kept: str) -> bool:
    """Whether code runs a layer, which may have hooks, other than in the text that is ``kept``."""
    return any(
        isinstance(call, cst.Call)
        and isinstance(call.func, (cst.Name, cst.Attribute, cst.Subscript))
        and module.value(call.func).kind is Kind.MODULE
        and module.tree.source(call) not in kept
        for node in nodes
        for call in module.tree.descendants(node)
    )

"""Optimizers that get each parameter in a group of its own, so that they update one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.signatures import SIGNATURES
from torchlint.semantics.names import BindingKind
from torchlint.semantics.sources import Item, Path, Source, Through, every, traced

from .updates import over_parameters

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


OPTIMIZERS = frozenset(
    name for package, _, name in (each.rpartition(".") for each in SIGNATURES) if package == "torch.optim"
)
"""What the optimizers of torch are named."""


def grouped_one_by_one(module: Module, call: cst.Call) -> bool:
    """Return whether a call makes an optimizer of torch from groups that hold one parameter each."""
    name = module.qualified(call.func) or ""
    if not name.startswith("torch.optim.") or name.startswith(
        ("torch.optim.lr_scheduler.", "torch.optim.swa")
    ):
        return False
    given = module.argument(call, "params").node
    return given is not None and every(_is_single(module, Source(given, (Item.ANY, "params"))))


@traced(Through.ITEMS | Through.RETURNS | Through.PARAMETERS)
def _is_single(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether the parameters of a group are one, or a list of one,
    that a loop over parameters visits.
    """
    if path:
        return None
    match node:
        case cst.List(elements=[cst.Element(value=only)]) | cst.Tuple(elements=[cst.Element(value=only)]):
            return _is_visited(module, only)
        case cst.Name():
            return _is_visited(module, node) or None
        case _:
            return False


def _is_visited(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a name is bound by a loop over parameters."""
    bindings = module.bindings(node)
    loops = (BindingKind.LOOP, BindingKind.COMPREHENSION)
    return bool(bindings) and all(
        binding.kind in loops
        and isinstance(binding.value, cst.BaseExpression)
        and over_parameters(module, binding.value)
        for binding in bindings
    )

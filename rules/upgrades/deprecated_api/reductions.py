"""How losses were told to average or sum before ``reduction``: two switches, which every release warns of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit
from torchlint.fixes import unset_argument
from torchlint.fixes.callforms import constant
from torchlint.semantics.api.signatures import SIGNATURES

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SWITCHES = ("size_average", "reduce")


@dataclass(frozen=True)
class LegacyReduction:
    """The first of the switches in a call, what both come to, and the edits that say it by ``reduction``."""

    arg: cst.Arg
    reduction: str | None
    edits: tuple[Edit, ...] | None


def legacy_reduction(module: Module, call: cst.Call) -> Iterator[LegacyReduction]:
    """Yield what a call tells a loss by ``size_average=`` and ``reduce=``;
    nothing unless one is True or False.
    """
    found = {arg.keyword.value: arg for arg in call.args if arg.keyword and arg.keyword.value in _SWITCHES}
    if not found:
        return
    name = module.qualified(call.func) or module.base_constructed(call)
    signature = SIGNATURES.get(name or "")
    if signature is None or signature.get("size_average") is None:
        return
    values = {each: constant(module, found.get(each), None) for each in _SWITCHES}
    if not any(isinstance(values[each], bool) for each in found):
        return
    first, *others = sorted(found.values(), key=call.args.index)
    reduction = _meant(values["size_average"], values["reduce"])
    given = any(arg.keyword is not None and arg.keyword.value == "reduction" for arg in call.args)
    # One of them may be given by its place.
    apart = all(module.argument(call, each).absent for each in _SWITCHES if each not in found)
    reduction = reduction if apart else None
    edits: tuple[Edit, ...] | None = None
    if reduction is not None and not given and not any(arg.star for arg in call.args):
        edits = (Edit(module.tree.span(first), f'reduction="{reduction}"'),)
        for other in others:
            assert other.keyword is not None
            removed = unset_argument(module, call, other.keyword.value)
            edits = edits + removed if removed is not None else None
            if edits is None:
                break
    yield LegacyReduction(first, reduction, edits)


def _meant(size_average: object, reduce: object) -> str | None:
    """Return the reduction that the two switches come to; None if one of them is not known."""
    if not all(value in (None, True, False) for value in (size_average, reduce)):
        return None
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"

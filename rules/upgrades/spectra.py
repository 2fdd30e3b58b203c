"""The Fourier transforms of old: what takes the place of a call, by its dimensions and sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.spellings import given_as
from torchlint.semantics.values import MISSING

if TYPE_CHECKING:
    from torchlint.semantics.api.upgrades import Upgrade
    from torchlint.semantics.module import Module

_SUFFIXES = {1: "", 2: "2", 3: "n"}
_NOTES = {
    "rfft": "which returns complex tensors",
    "irfft": "which takes complex tensors",
    "ifft": "which takes and returns complex tensors",
}


def of_call(module: Module, use: cst.CSTNode, row: Upgrade) -> Upgrade:
    """Return the row about a name as it concerns the call that ``use`` is the function of.

    ``torch.rfft`` gives both sides of a spectrum with ``onesided=False``, as ``torch.fft.fft`` does, and
    ``torch.irfft`` takes both sides then. How many dimensions are transformed tells the function.
    """
    call = module.tree.parent(use)
    name = row.symbol.removeprefix("torch.")
    if name not in ("rfft", "irfft", "ifft") or not isinstance(call, cst.Call) or call.func is not use:
        return row
    dimensions = _constant(module, call, "signal_ndim", 1)
    suffix = _SUFFIXES.get(dimensions) if isinstance(dimensions, int) else None
    if suffix is None or any(arg.star for arg in call.args):
        return row
    note = _NOTES[name]
    if name != "ifft" and _constant(module, call, "onesided", 3) is False:
        if name == "irfft":
            note += "; keep `.real` of the result"
        name = {"rfft": "fft", "irfft": "ifft"}[name]
    return replace(row, replacement=f"torch.fft.{name}{suffix}", note=note)


def _constant(module: Module, call: cst.Call, name: str, position: int) -> object:
    given = given_as(call, name, position)
    return module.value(given).constant if given is not None else MISSING

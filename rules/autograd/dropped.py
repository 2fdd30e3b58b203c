"""Graphs that a program drops: every way from a forward pass ends in what has no graph."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import GRAPHLESS_ELEMENTS, GRAPHLESS_METHODS, TENSOR_METHODS
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, verdicts
from torchlint.semantics.values import Kind
from torchlint.semantics.wholeprogram import calls_shown

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_SHAPES = frozenset({"shape", "dtype", "device", "ndim", "size", "dim", "numel", "is_cuda", "requires_grad"})
_NUMBERS = frozenset({"item", "tolist"})
# Functions of Python that make a number, a truth or a text of a tensor, or ask for its kind.
_OF_HOST = frozenset(
    f"builtins.{name}" for name in ("bool", "float", "int", "isinstance", "len", "print", "str", "type")
)
_DIFFERENTIATING = ("torch.autograd.", "torch.distributed.", "torch.func.", "torch.save")
_PASSING = (
    UseKind.ASSIGNED,
    UseKind.UNPACKED,
    UseKind.AUGMENTED,
    UseKind.AUGMENTS,
    UseKind.ITEM,
    UseKind.ITERATED,
    UseKind.ELEMENT,
    UseKind.OPERAND,
    UseKind.CHOICE,
    UseKind.RETURNED,
)
_LOOKING = (UseKind.COMPARED, UseKind.TESTED, UseKind.FORMATTED, UseKind.INDEX)


class _Fate(Enum):
    """What becomes of the graph of a value."""

    DROPPED = "dropped"
    NEEDED = "needed"


def drops_graph(module: Module, call: cst.Call) -> bool:
    """Return whether the program shows everything that is done with the result of a call,
    and the graph is not used.

    The result is detached, made a number, compared, sampled from, or only its indices are taken.
    """
    return verdicts(module, call, _fate) == frozenset({_Fate.DROPPED})


def _fate(module: Module, use: Use) -> Verdict[_Fate]:
    match use.kind:
        case UseKind.DISCARDED | UseKind.SET:
            return ()
        case UseKind.ATTRIBUTE:
            if use.name in _SHAPES:
                return ()
            return _Fate.DROPPED if use.name in ("data", "indices") else ONWARD
        case UseKind.METHOD:
            return _of_method(module, use)
        case UseKind.ARGUMENT:
            return _of_argument(module, use)
        case UseKind.ELSEWHERE if isinstance(use.by, cst.Return):
            # All calls of a function that is shown are followed.
            function = module.function(use.node)
            shown = isinstance(function, cst.FunctionDef) and calls_shown(module, function)
            return () if shown else _Fate.NEEDED
    if use.kind in _LOOKING:
        return _Fate.DROPPED
    return ONWARD if use.kind in _PASSING else _Fate.NEEDED


def _of_method(module: Module, use: Use) -> Verdict[_Fate]:
    name = use.name
    if name in _SHAPES:
        return ()
    if module.value(use.node).cls == "torch.distributions.Distribution":
        return _Fate.DROPPED if name in ("sample", "sample_n") else Standing(use.call)
    if name in GRAPHLESS_METHODS or name in _NUMBERS:
        return _Fate.DROPPED
    if name in ("backward", "numpy", "register_hook", "retain_grad") or name not in TENSOR_METHODS:
        # ``numpy()`` of a tensor with a graph raises: there is none.
        return _Fate.NEEDED
    return _computed(use, name)


def _of_argument(module: Module, use: Use) -> Verdict[_Fate]:
    dotted = module.qualified(use.call.func) or ""
    name = dotted.rpartition(".")[2]
    if dotted in _OF_HOST:
        return _Fate.DROPPED
    if dotted.startswith("torch."):
        if dotted.startswith(_DIFFERENTIATING):
            return _Fate.NEEDED
        return _Fate.DROPPED if name in GRAPHLESS_METHODS else _computed(use, name)
    if module.value(use.call.func).kind is Kind.MODULE:
        return Standing(use.call)
    return ONWARD if module.callee(use.call) is not None else _Fate.NEEDED


def _computed(use: Use, name: str) -> Verdict[_Fate]:
    """Return what is computed of a tensor has its graph; of values and indices only the values have."""
    if name in GRAPHLESS_ELEMENTS and len(use.call.args) > (0 if use.kind is UseKind.METHOD else 1):
        return (_Fate.DROPPED, Standing(use.call, (0,)))
    return Standing(use.call)

"""Values that leave the device and come back to it within one step, or leave the host and come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import libcst as cst

from torchlint.rules.host_device.purpose import computes_on_host, offloads
from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS
from torchlint.semantics.evidence import on_device
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sharing import changed_later
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.spellings import last_words
from torchlint.semantics.synchronisation import host_copy
from torchlint.semantics.transfers import MOVING_METHODS, TRANSFERS, move_to_accelerator, transferred
from torchlint.semantics.values import Device, Kind

from .waits import waiting_place

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module

_MAKERS = frozenset(
    {"torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray", "torch.Tensor"}
    | set(LEGACY_CONSTRUCTORS)
)
MOVES = last_words(_MAKERS) | TRANSFERS
"""What the calls are named that may bring something to the device."""


def copied_back_from(module: Module, move: cst.Call) -> cst.Call | None:
    """Return the copy to the host whose result, as it is or changed there,
    ``move`` brings back to the device.

    Followed are tensors, arrays, and the functions of torch and NumPy; what another library computes, or a
    loop of Python, may have no counterpart on the device.
    """
    if isinstance(move.func, cst.Attribute) and move.func.attr.value in MOVING_METHODS:
        if move_to_accelerator(module, move) is None:
            return None
        start: cst.BaseExpression = move.func.value
    elif module.qualified(move.func) in _MAKERS and _on_device(module, move):
        start = move.args[0].value
    else:
        return None
    copies = (end for end in _copies(module, start) if end is not None)
    found = min(copies, key=module.tree.order.__getitem__, default=None)
    if found is None or offloads(module, found) or computes_on_host(module, found):
        return None
    return None if _loop_between(module, found, move) else found


def _loop_between(module: Module, copy: cst.Call, move: cst.Call) -> bool:
    """Return whether an algorithm that goes step by step runs on the host between a copy and the way back."""
    order, tree, function = module.tree.order, module.tree, module.function(copy)
    if order[copy] > order[move]:
        return False
    return any(
        module.function(loop) is function and not tree.contains(loop, copy) and not tree.contains(loop, move)
        for loop in tree.between(copy, move, cst.For, cst.While)
    )


def _on_device(module: Module, call: cst.Call) -> bool:
    """Return whether a call makes its tensor with ``device=`` on an accelerator."""
    return (
        any(a.keyword is not None and a.keyword.value == "device" for a in call.args)
        and call.args[0].keyword is None
        and on_device(module, call)
    )


@traced(Through.OPERANDS)
def _copies(module: Module, node: cst.CSTNode, path: Path) -> cst.Call | list[Source] | None:
    """Return the copies to the host that an expression on the host is made of."""
    match node:
        case cst.Call():
            return node if host_copy(module, node) is not None else onward(*_given(module, node), path=path)
        case cst.Subscript() | cst.Attribute():
            return onward(node.value, path=path) if _is_data(module, node.value) else []
        case cst.Name() if not (_is_data(module, node) and _assigned_once(module, node)):
            return []
        case _:
            return None


def _given(module: Module, call: cst.Call) -> list[cst.BaseExpression]:
    """Return the data that a function of torch or NumPy, or a method, computes its result of."""
    qualified = module.qualified(call.func)
    if qualified is None:
        owner = call.func.value if isinstance(call.func, cst.Attribute) else None
        return [owner] if owner is not None and _is_data(module, owner) else []
    taken = qualified in _MAKERS or qualified.startswith(("numpy.", "torch."))
    return [argument.value for argument in call.args] if taken else []


def _assigned_once(module: Module, name: cst.Name) -> bool:
    """Return whether one statement of the same function gives a variable its value."""
    match module.bindings(name):
        case (Binding(kind=BindingKind.ASSIGN, path=()) as binding,):
            return module.function(binding.node) is module.function(name)
        case _:
            return False


def _is_data(module: Module, node: cst.BaseExpression) -> bool:
    return module.value(node).kind in (Kind.TENSOR, Kind.NDARRAY)


def returns_to_device(module: Module, copy: cst.Call) -> bool:
    """Return whether what a copy to the host gives comes back to the device in the same hot place."""
    move = _ways_back(module, module.function(copy)).get(copy)
    return move is not None and waiting_place(module, move) is not None


@remembered
def _ways_back(module: Module, function: Function | None) -> dict[cst.Call, cst.Call]:
    """Return by its copy to the host: the first call of the same function that brings a tensor back."""
    found: dict[cst.Call, cst.Call] = {}
    for call in module.calls_in(function):
        copy = copied_back_from(module, call)
        if copy is not None:
            found.setdefault(copy, call)
    return found


# Methods that the host can call as well, on what it has sent.
_ALIKE: Final = frozenset(
    {"contiguous", "detach", "flatten", "float", "int", "long", "reshape", "squeeze", "unsqueeze", "view"}
)


def still_on_host(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether a tensor that is read is what the same function has sent from the host,
    as it was sent.
    """
    return not changed_later(module, tensor) and every(_sent(module, tensor, module.function(tensor)))


@traced(Through.NOTHING)
def _sent(
    module: Module, node: cst.CSTNode, path: Path, function: Function | None
) -> bool | list[Source] | None:
    """Return whether an expression is what this function sends to the device from host memory.

    Where that is done in a branch, ``if cuda: y = y.cuda()``, the other way leads to what is there anyway.
    """
    if isinstance(node, cst.Name):
        made = [each for each in module.bindings(node) if each.kind is not BindingKind.LOOP]
        return [Source(each, path) for each in made] or False
    if isinstance(node, cst.Subscript) or (isinstance(node, cst.Attribute) and node.attr.value == "data"):
        return onward(node.value, path=path)
    if not isinstance(node, cst.Call):
        return None
    moved = transferred(module, node)
    if moved is not None:
        return module.function(node) is function and _on_host(module, moved)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _ALIKE:
        return onward(node.func.value, path=path)
    if module.qualified(node.func) == "torch.autograd.Variable" and node.args:
        return onward(node.args[0].value, path=path)
    return False


def _on_host(module: Module, moved: cst.BaseExpression) -> bool:
    """Return whether what is moved to the device is in host memory: as all is that a loop goes over,
    by its move.
    """
    sent = module.value(moved)
    if sent.device is Device.CPU:
        return sent.kind in (Kind.BATCH, Kind.TENSOR)
    bindings = module.bindings(moved)
    taken = bool(bindings) and all(each.kind is BindingKind.LOOP for each in bindings)
    return taken and sent.device is Device.UNKNOWN

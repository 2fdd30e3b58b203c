"""Calls that move a tensor: ``.to(…)``, ``.cuda(…)``, ``.type_as(…)``, ``.type(torch.cuda.FloatTensor)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS, MOVES_TO_ACCELERATOR
from torchlint.semantics.sources import Path, Through, some, traced
from torchlint.semantics.spellings import given_as, word_of
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


TRANSFERS = MOVES_TO_ACCELERATOR | {"to"}
"""Methods of tensors and modules that take them to a device."""
MOVING_METHODS = TRANSFERS | {"type", "type_as"}
"""Methods of tensors that may take them to an accelerator."""


@dataclass(frozen=True, slots=True)
class Move:
    """A call that moves a tensor to an accelerator: where to, and what else it changes.

    ``code`` is the device as a factory takes it. ``dtype`` and ``dtype_code`` are the dtype that it casts
    to, ``other`` the tensor whose device and dtype it takes. ``shown``: the file puts that tensor on an
    accelerator; else it may only have come from one. ``certain``: ``code`` means the same device whatever it
    evaluates to. ``fixable``: all arguments have a counterpart in a factory.
    """

    call: cst.Call
    code: str
    device: cst.BaseExpression | None = None
    dtype: cst.BaseExpression | None = None
    dtype_code: str | None = None
    other: cst.BaseExpression | None = None
    shown: bool = True
    certain: bool = True
    fixable: bool = True


def move_to_accelerator(module: Module, call: cst.Call) -> Move | None:
    """Return what ``call`` certainly moves to an accelerator, read as a tensor's method."""
    assert isinstance(call.func, cst.Attribute)
    if any(arg.star for arg in call.args):
        return None
    match call.func.attr.value:
        case "to":
            return _to_move(module, call)
        case name if name in MOVES_TO_ACCELERATOR:
            return _named_move(module, call, name)
        case "type":
            return _type_move(module, call)
        case "type_as" if len(call.args) == 1:
            return _like_move(module, call, call.args[0].value, fixable=True)
    return None


def moved_at_once(module: Module, call: cst.Call) -> Move | None:
    """Return the move that is made of the result of ``call`` as soon as it is there."""
    outer = module.tree.method_call(call)
    return move_to_accelerator(module, outer) if outer is not None else None


def transferred(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the object, tensor or not, that ``to`` or ``cuda`` moves to an accelerator."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in TRANSFERS:
        return None
    if module.qualified(func) is not None:
        return None
    move = move_to_accelerator(module, call)
    # What takes the device of a tensor that came from elsewhere may only take its dtype.
    return func.value if move is not None and move.shown else None


def copied_in(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return ``source`` in ``target.copy_(source)``, where the target is on the accelerator."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "copy_":
        return None
    target = module.value(call.func.value)
    there = target.kind is Kind.TENSOR and target.device is Device.ACCELERATOR
    return given_as(call, "src", 0) if there else None


def _named_move(module: Module, call: cst.Call, kind: str) -> Move | None:
    """Return the move that ``x.cuda(…)`` is, or its like for another kind of device."""
    device: cst.BaseExpression | None = None
    fixable = True
    for position, arg in enumerate(call.args):
        keyword = (
            arg.keyword.value if arg.keyword is not None else ("device", "non_blocking")[min(position, 1)]
        )
        if keyword == "device":
            device = arg.value
        elif keyword != "non_blocking":
            fixable = False
    if device is None:
        return Move(call, f'"{kind}"', fixable=fixable)
    value = module.value(device)
    source = module.tree.source(device)
    if value.constant is None:
        return Move(call, f'"{kind}"', fixable=fixable)
    if isinstance(value.constant, int) and isinstance(device, cst.Integer):
        return Move(call, f'"{kind}:{value.constant}"', fixable=fixable)
    if value.kind in (Kind.DEVICE, Kind.STRING) or _named_device(device):
        # ``.cuda(None)`` is the current device, ``device=None`` is the host.
        return Move(call, source, device, certain=not some(_none(module, device)), fixable=fixable)
    certain = value.kind is Kind.NUMBER and not some(_none(module, device))
    maker = module.names.spelling("torch.device", call)
    if maker is None:
        return Move(call, source, device, fixable=False)
    return Move(call, f'{maker}("{kind}", {source})', device, certain=certain, fixable=fixable)


@traced(Through.PARAMETERS)
def _none(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether a device may be None: who may leave out a number may also give None in its place."""
    if path:
        return None
    if isinstance(node, cst.BaseExpression):
        return True if module.value(node).kind is Kind.NONE else None
    if not isinstance(node, cst.Param) or node.default is None:
        return None
    function = module.tree.parents[module.tree.parents[node]]
    if node.annotation is None and not module.callers(function):
        return module.value(node.default).kind in (Kind.NUMBER, Kind.NONE)
    return None


def _to_move(module: Module, call: cst.Call) -> Move | None:
    device = dtype = other = None
    fixable = True
    for position, arg in enumerate(call.args):
        keyword = arg.keyword.value if arg.keyword is not None else None
        if keyword == "memory_format":
            fixable = False
        elif keyword == "device" or (keyword is None and position == 0 and _is_device(module, arg.value)):
            device = arg.value
        elif (keyword is None and position == 0 and module.value(arg.value).tensorlike) or keyword == "other":
            other = arg.value
        elif keyword == "dtype" or (keyword is None and position == 1 and device is not None):
            dtype = arg.value
        elif keyword is None and position == 0:
            return None
    if other is not None:
        return _like_move(module, call, other, fixable)
    if device is None or on_host(module, device):
        return None
    source = module.tree.source(device)
    return Move(
        call,
        source,
        device,
        dtype,
        None if dtype is None else module.tree.source(dtype),
        certain=not some(_other_target(module, device)),
        fixable=fixable,
    )


def _like_move(module: Module, call: cst.Call, other: cst.BaseExpression, fixable: bool) -> Move | None:
    """Return the move of ``.to(other)``, which takes device and dtype of another tensor."""
    device = module.value(other).device
    if device is Device.CPU:
        return None
    simple = isinstance(other, cst.Name) or (
        isinstance(other, cst.Attribute) and isinstance(other.value, cst.Name)
    )
    source = module.tree.source(other)
    return Move(
        call,
        f"{source}.device",
        dtype_code=f"{source}.dtype",
        other=other,
        shown=device is Device.ACCELERATOR,
        fixable=fixable and simple,
    )


def _type_move(module: Module, call: cst.Call) -> Move | None:
    """Return the move of ``.type(torch.cuda.FloatTensor)`` or ``.type(x.type())``, which also casts."""
    if len(call.args) != 1:
        return None
    match call.args[0].value:
        case cst.Call(func=cst.Attribute(value=other, attr=cst.Name("type")), args=[]) if module.value(
            other
        ).tensorlike:
            return _like_move(module, call, other, fixable=True)
    constant = module.value(call.args[0].value).constant
    name = constant if isinstance(constant, str) else module.qualified(call.args[0].value)
    dtype = LEGACY_CONSTRUCTORS.get((name or "").replace("torch.cuda.", "torch."))
    if name is None or not name.startswith("torch.cuda.") or dtype is None:
        return None
    return Move(call, '"cuda"', dtype_code=dtype)


def _named_device(node: cst.BaseExpression) -> bool:
    """Return whether it has the name of a device: ``self.device``, ``dev``, ``get_device()``."""
    name = word_of(node.func if isinstance(node, cst.Call) else node)
    return name in ("dev", "_dev") or name.strip("_").lower().endswith("device")


def _is_device(module: Module, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
        return False
    value = module.value(node)
    if value.kind is Kind.DEVICE or isinstance(value.constant, (str, int)):
        return not isinstance(value.constant, bool)
    if value.kind is Kind.UNKNOWN:
        return _named_device(node)
    return value.kind in (Kind.STRING, Kind.NUMBER)


@traced(Through.PARAMETERS)
def _other_target(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
    """Return whether what ``to`` is given comes from a tensor or a dtype."""
    value = module.value(node) if isinstance(node, cst.BaseExpression) and not path else None
    return True if value is not None and (value.tensorlike or value.kind is Kind.DTYPE) else None


def on_host(module: Module, device: cst.BaseExpression) -> bool:
    """Return whether an expression given as a device names the CPU, or no place at all (``"meta"``)."""
    value = module.value(device)
    if isinstance(value.constant, str):
        return value.constant.startswith(("cpu", "meta"))
    return value.device is Device.CPU

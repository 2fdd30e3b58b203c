"""Tensors of the device that are made of lists, arrays and several numbers; how to send them otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import add_argument, filled_by_callers, graded, remove_argument, replace
from torchlint.semantics.evidence import accelerated, default_device_changes, on_device
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.origins import computed_elsewhere
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.spellings import given_as, last_name, last_words
from torchlint.semantics.synchronisation import conversion
from torchlint.semantics.transfers import move_to_accelerator, on_host
from torchlint.semantics.values import Device, Kind, Memory, Value, item_of
from torchlint.semantics.wholeprogram import passed_by_others

from .legacytypes import LEGACY_NAMES, copies_to_device
from .roundtrips import copied_back_from
from .sending import single_number
from .sizes import exceeds_staging

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_MAKERS = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
MAKERS = last_words(_MAKERS) | {"new", "new_tensor"}
"""What the calls are named that may make a tensor of data on the device."""
SENDERS = MAKERS | (LEGACY_NAMES - {"type"})
"""The same, with the tensor types of before dtypes."""
_CONTAINERS = frozenset({Kind.LIST, Kind.TUPLE, Kind.NDARRAY, Kind.SHAPE})


def sent_data(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the data of which a call makes a tensor with ``device=`` of an accelerator,
    if there are several items.

    A single number is told apart (``single_number``), and so are tensors of the device that are read one by
    one, and what was read from the device just before.
    """
    if not accelerated(module) or any(arg.star for arg in call.args):
        return None
    data = given_as(call, "data", 0) or given_as(call, "obj", None)
    if data is not None and copies_to_device(module, call):
        return data if module.value(data).kind is Kind.NDARRAY else None
    if (
        data is None
        or not _goes_to_accelerator(module, call)
        or given_as(call, "pin_memory", None) is not None
    ):
        return None
    if isinstance(data, (cst.List, cst.Tuple)) and not data.elements:
        return None  # nothing is copied
    value = module.value(data)
    counted = counts_up(module, data)
    if last_name(call.func) == "new" and value.kind not in (Kind.LIST, Kind.NDARRAY) and not counted:
        return None  # a size
    on_cpu = value.kind is Kind.TENSOR and value.device is Device.CPU
    copied = value.kind in _CONTAINERS or on_cpu or counted
    # Of what is not known, `torch.tensor` copies all but a tensor of the device, which one would clone.
    open_ = value.kind is Kind.UNKNOWN and value.device is Device.UNKNOWN
    if not copied and not (open_ and _is_tensor(module, call) and not computed_elsewhere(module, data)):
        return None
    if _holds_device_tensors(value) or single_number(module, data) is not None:
        return None
    if copied_back_from(module, call) is not None:
        return None
    return None if some(_reads(module, data)) else data


def _is_tensor(module: Module, call: cst.Call) -> bool:
    return module.qualified(call.func) == "torch.tensor"


def _goes_to_accelerator(module: Module, call: cst.Call) -> bool:
    device = given_as(call, "device", None)
    if module.qualified(call.func) in _MAKERS:
        return (
            device is not None and module.value(device).constant is not None and not on_host(module, device)
        )
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("new", "new_tensor"):
        return False
    if device is not None:
        return not on_host(module, device)
    return module.value(call.func.value).tensorlike and on_device(module, call.func.value)


def _holds_device_tensors(value: Value) -> bool:
    item = item_of(value) if value.kind in (Kind.LIST, Kind.TUPLE) else None
    among = (*(value.elements or ()), *((item,) if item is not None else ()))
    return any(one.tensorlike and one.device is not Device.CPU for one in among)


@traced(Through.ITEMS)
def _reads(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether data comes from a tensor on the device: that wait is told of already."""
    if isinstance(node, cst.Call) and conversion(module, node) is not None:
        return True
    if isinstance(node, (cst.List, cst.Tuple)):
        return onward(*(element.value for element in node.elements))
    return onward(node.elt) if isinstance(node, (cst.ListComp, cst.GeneratorExp)) else None


def is_drawn(module: Module, data: cst.BaseExpression) -> bool:
    """Return whether data is random numbers of NumPy, which the device could draw itself."""
    return isinstance(data, cst.Call) and (module.qualified(data.func) or "").startswith("numpy.random.")


def counts_up(module: Module, data: cst.BaseExpression) -> bool:
    """Return whether data is a ``range``, which the device could count itself."""
    return isinstance(data, cst.Call) and module.qualified(data.func) == "builtins.range"


# --- sending it without a wait ------------------------------------------------------------------------------


def made_and_sent(module: Module, call: cst.Call, data: cst.BaseExpression) -> Fix | None:
    """Return the fix that makes the tensor in host memory and copies it with ``non_blocking=True``."""
    device = next((a for a in call.args if a.keyword is not None and a.keyword.value == "device"), None)
    if device is None or given_as(call, "requires_grad", None) is not None:
        return None
    if default_device_changes(module):
        hosted = replace(module, device.value, '"cpu"')
    else:
        hosted = remove_argument(module, device)
    if hosted is None or any("#" in module.tree.text[edit.span.start : edit.span.end] for edit in hosted):
        return None
    end = module.tree.span(call).end
    moved = (Edit(Span(end, end), f".to({module.source(device.value)}, non_blocking=True)"),)
    # What `as_tensor` takes over may be pinned, and written to while the copy is on its way.
    copied = _is_tensor(module, call) or module.value(data).kind in (Kind.LIST, Kind.TUPLE, Kind.SHAPE)
    certain = copied or _certainly_pageable(module, data)
    return graded(module, _COPY, hosted, moved, risk=_risk(module, certain=certain))


def copied_like(module: Module, copy: cst.Call) -> str | None:
    """Return the code of ``other`` in ``x.type_as(other)`` or ``x.type(other.type())``,
    which always block.
    """
    move = move_to_accelerator(module, copy) if last_name(copy.func) in ("type", "type_as") else None
    return None if move is None or move.other is None else module.source(move.other)


def sent_ahead(module: Module, copy: cst.Call, source: cst.BaseExpression) -> Fix | None:
    """Return the fix that gives ``non_blocking=True`` to a copy of a tensor in host memory.

    From pageable memory the driver takes the data over before the call returns, whether or not it waits for
    the device, so that the tensor may be written to afterwards; from pinned memory it may not.
    """
    if copied_like(module, copy) is not None:
        return None
    if module.value(source).memory is Memory.PAGEABLE and exceeds_staging(module, source):
        return None  # the host would wait for it all the same
    given = given_as(copy, "non_blocking", None)
    if given is not None:
        edits = replace(module, given, "True")
    else:
        edits = add_argument(module, copy, "True", keyword="non_blocking")
    certain = _certainly_pageable(module, source) and not filled_by_callers(module, given)
    return graded(module, _COPY, edits, risk=_risk(module, certain=certain))


def _certainly_pageable(module: Module, source: cst.BaseExpression) -> bool:
    """Return whether a tensor is in pageable memory whoever calls the functions that it is given to.

    Others may pass one in pinned memory, or one on the device for a copy to the host, which reads it early.
    The same happens to one that is made on a default device.
    """
    pageable = module.value(source).memory is Memory.PAGEABLE and not default_device_changes(module)
    return pageable and not passed_by_others(module, source)


def _risk(module: Module, *, certain: bool) -> str | None:
    """Return what could read or change data too early,
    if it is not certainly pageable or the accelerator does not order its copies.
    """
    if not certain:
        return "data in pinned memory must not change before the copy has ended"
    return None if Loaders.of(module).pinning_helps else "not every accelerator waits for the copy by itself"


_COPY = "Copy with `non_blocking=True`"

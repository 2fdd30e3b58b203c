"""Tensor types of before dtypes: their constructors, casts to them, and what says the same today.

What each form gives was compared with torch 2.13: of a list, ``torch.tensor`` with a dtype makes the same
tensor; the memory of an array is shared where its dtype fits, as by ``torch.as_tensor``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import add_argument, graded, replace, safe, spell
from torchlint.semantics.evidence import accelerated, default_device_changes, default_dtype_changes
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.values import Device, Kind

from ..factories import (
    factory,
    given_sizes,
    moved_later,
    takes_no_data,
    without_device,
)
from ..legacytypes import DTYPES, ON_CUDA
from ..remedies import inline, tight

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def legacy_constructor(module: Module, call: cst.Call) -> str | None:
    """Return the name of the tensor type that ``call`` makes a tensor by; None for any other call."""
    names = module.names.either_qualified(call.func)
    return names[0] if names and all(name in DTYPES for name in names) else None


def legacy_cast(module: Module, call: cst.Call) -> str | None:
    """Return the name of the tensor type to which ``x.type(torch.cuda.FloatTensor)`` casts;
    None for other calls.
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "type" or len(call.args) != 1:
        return None
    target = call.args[0].value
    constant = module.value(target).constant
    name = constant if isinstance(constant, str) else module.qualified(target)
    return name if name in DTYPES and name != "torch.Tensor" else None


def reported_as_move(module: Module, call: cst.Call) -> bool:
    """Return whether the tensor is made on the host and moved to an accelerator,
    which TL201 reports and mends.
    """
    if not accelerated(module) or phase(module, call) is Phase.DATASET:
        return False
    name = legacy_cast(module, call)
    if name is not None:
        assert isinstance(call.func, cst.Attribute)
        made = factory(module, call.func.value) if name in ON_CUDA else None
        return made is not None and takes_no_data(module, made)
    made = factory(module, call)
    return made is not None and takes_no_data(module, made) and moved_later(module, call)


def modern_constructor(module: Module, call: cst.Call) -> Fix | None:
    """Return the fix that writes ``torch.empty``,
    ``torch.tensor`` or ``torch.as_tensor`` for a constructor.
    """
    name = module.qualified(call.func)
    if name not in DTYPES or any(arg.keyword is not None or arg.star for arg in call.args):
        return None
    if default_dtype_changes(module) or default_device_changes(module):
        return None
    by_size = True if not call.args else given_sizes(module, call)
    if by_size is None:
        return None
    dtype = DTYPES[name] or (None if by_size else "torch.float32")
    array = bool(call.args) and module.value(call.args[0].value).kind is Kind.NDARRAY
    maker = "torch.empty" if by_size else "torch.as_tensor" if array else "torch.tensor"
    spelling = spell(module, maker, call)
    cast = spell(module, dtype, call) if dtype is not None else None
    if spelling is None or spelling.edits or (cast is not None and cast.edits) or (dtype and cast is None):
        return None
    keywords = [f"dtype={cast.text}"] if cast is not None else []
    if name in ON_CUDA:
        keywords.append('device="cuda"')
    message = f"Use `{spelling.text}`"
    renamed = replace(module, call.func, spelling.text)
    if not call.args:
        code = ", ".join(["0", *keywords])
        return safe(module, message, replace(module, call, f"{spelling.text}({code})"))
    if not keywords:
        return safe(module, message, renamed)
    # One edit for both: two would insert at the same place.
    keyword, _, value = ", ".join(keywords).partition("=")
    added = add_argument(module, call, value, keyword=keyword, keyword_only=True)
    return safe(module, message, renamed, added)


def constructor_by_hand(module: Module, call: cst.Call) -> str:
    """Return what to write for a constructor of which the file does not show what it makes."""
    names = module.names.either_qualified(call.func)
    dtype = DTYPES.get(names[0] or "") or "torch.get_default_dtype()"
    options = f"dtype={dtype}"
    args = without_device(call)
    device = next((arg.value for arg in call.args if arg not in args), None)
    if device is not None:
        options += f", device={inline(module, device)}"
    elif len(names) > 1:
        options += ", device=…"
    elif names[0] in ON_CUDA or default_device_changes(module):
        options += f', device="{"cuda" if names[0] in ON_CUDA else "cpu"}"'
    if device is None and len(args) == 1 and module.value(args[0].value).kind is Kind.TENSOR:
        return f"Use `{tight(module, args[0].value)}.to({dtype})`"
    sized = not args or any(arg.star for arg in args)
    by_size = True if sized else given_sizes(module, call)
    if by_size is None:
        return f"Use `torch.tensor(…, {options})` for data, or `torch.empty(…, {options})` for a size"
    given = ", ".join(f"{arg.star}{inline(module, arg.value)}" for arg in args)
    return f"Use `torch.{'empty' if by_size else 'tensor'}({given or 0}, {options})`"


def cast_by_hand(module: Module, call: cst.Call) -> str:
    """Return what to write for a cast of what may be no tensor."""
    name = legacy_cast(module, call)
    assert isinstance(call.func, cst.Attribute) and name is not None
    device = "cuda" if name in ON_CUDA else "cpu"
    return f'Use `{tight(module, call.func.value)}.to("{device}", {DTYPES[name]})`'


def modern_cast(module: Module, call: cst.Call) -> Fix | None:
    """Return the fix that writes ``.to(device, dtype)`` for a cast to a tensor type."""
    name = legacy_cast(module, call)
    assert isinstance(call.func, cst.Attribute)
    tensor = module.value(call.func.value)
    dtype = spell(module, DTYPES[name] or "", call) if name is not None else None
    if name is None or dtype is None or dtype.edits or not tensor.tensorlike:
        return None
    arguments = dtype.text
    hosted = tensor.device is Device.CPU and not default_device_changes(module)
    if name in ON_CUDA:
        arguments = f'"cuda", {dtype.text}'
    elif not hosted:
        arguments = f'"cpu", {dtype.text}'
    span = module.tree.outer_span(call.args[0].value)
    edits = (replace(module, call.func.attr, "to"), (Edit(span, arguments),))
    # A tensor on the second GPU stays there when it is cast to a type, and ``"cuda"`` is the current one.
    exact = name not in ON_CUDA or hosted
    message = f"Use `.to({arguments})`"
    risk = None if exact else "a tensor on another GPU moves to the current one"
    return graded(module, message, *edits, risk=risk)

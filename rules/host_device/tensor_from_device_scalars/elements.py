"""Tensors on the device that are handed over in a list and read one by one, with a wait for each.

``torch.tensor([loss_a, loss_b])`` copies one number after the other to the host, NumPy takes what it is
given element by element, and ``max()`` and the like compare pair by pair. ``stacked`` writes the call that
joins them on the device and copies once.

What both forms give was compared with torch 2.13. ``torch.stack`` promotes dtypes as ``torch.tensor`` does,
but keeps the graph, stays on the device, has no answer for an empty list, and keeps the dimensions of
tensors of one element, which ``torch.tensor`` drops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import Edits, graded, replace, spell, unsafe
from torchlint.semantics.api.results import LEGACY_CONSTRUCTORS, READING_ARGUMENTS, READING_FILL
from torchlint.semantics.evidence import accelerated, on_device
from torchlint.semantics.spellings import given_as, keywords, last_name, last_words
from torchlint.semantics.synchronisation import may_be_on_device
from torchlint.semantics.transfers import moved_at_once
from torchlint.semantics.values import Device, Graph, Kind, Value, item_of

from ..dimensionless import is_single_number
from ..waits import waiting_place

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot


_MAKERS = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
_LEGACY = frozenset({"torch.Tensor", *LEGACY_CONSTRUCTORS})
_OF_NUMPY = frozenset(
    f"numpy.{name}"
    for name in (
        *("array", "asarray", "amax", "amin", "argmax", "argmin", "average", "max", "mean", "median", "min"),
        *("nanmean", "prod", "quantile", "stack", "std", "sum", "var"),
    )
)
_EXTREMES = frozenset({"builtins.max", "builtins.min"})
_COMPARING = _EXTREMES | {"builtins.sorted"}
_FLOATING = frozenset(
    {"torch.float", "torch.float32", "torch.double", "torch.float64", "torch.half", "torch.float16"}
    | {"torch.bfloat16"}
)
_WHOLE = frozenset({"torch.bool", "torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64"})
_WIDE = frozenset({"torch.int64", "torch.long"})
_READERS = _MAKERS | _LEGACY | _OF_NUMPY | _COMPARING
_TAKING_NUMBERS = last_words(READING_ARGUMENTS)

READERS = last_words(_READERS) | _TAKING_NUMBERS | READING_FILL
"""What the calls are named that may read device tensors one by one, or one given as a number."""


@dataclass(frozen=True, slots=True)
class ReadOneByOne:
    """A call that reads the tensors of a list one by one.

    ``written`` are the expressions of all elements, where the call spells the list itself; else None.
    """

    call: cst.Call
    name: str
    items: cst.BaseExpression
    tensors: tuple[Value, ...]
    written: tuple[cst.BaseExpression, ...] | None

    @property
    def refused(self) -> bool:
        """Whether the call raises for tensors that are not in host memory, as NumPy does."""
        return self.name in _OF_NUMPY


def read_one_by_one(module: Module, call: cst.Call) -> ReadOneByOne | None:
    """Return the list of device tensors that ``call`` reads one by one; None for any other call."""
    name = module.qualified(call.func)
    if name not in _READERS or not call.args or call.args[0].star or call.args[0].keyword is not None:
        return None
    if name in _COMPARING and any(arg.keyword is None for arg in call.args[1:]):
        return None
    items = call.args[0].value
    written = _written(items)
    value = module.value(items)
    if written is not None:
        tensors = tuple(module.value(element) for element in written)
    elif value.kind in (Kind.LIST, Kind.TUPLE, Kind.ITERATOR):
        item = item_of(value)
        tensors = value.elements or (() if item is None else (item,))
    else:
        return None
    # What NumPy is given is on the host, unless the file says otherwise.
    places = (Device.ACCELERATOR,) if name in _OF_NUMPY else (Device.ACCELERATOR, Device.UNKNOWN)
    if not accelerated(module) or not any(t.kind is Kind.TENSOR and t.device in places for t in tensors):
        return None
    return ReadOneByOne(call, name, items, tensors, written)


def _written(items: cst.BaseExpression) -> tuple[cst.BaseExpression, ...] | None:
    if not isinstance(items, (cst.List, cst.Tuple)):
        return None
    if any(isinstance(element, cst.StarredElement) for element in items.elements):
        return None
    return tuple(element.value for element in items.elements)


def filled_in(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the device scalar that ``torch.full``, ``new_full``, ``masked_fill`` and their like fill in;
    None for any other call.
    """
    name = last_name(call.func) or ""
    if name not in READING_FILL:
        return None
    qualified = module.qualified(call.func)
    method = qualified is None and isinstance(call.func, cst.Attribute)
    if not method and (qualified or "").rpartition(".")[0] != "torch":
        return None
    position = _FILL_POSITION.get(name, 1) + (0 if method or name.startswith("full") else 1)
    for index, arg in enumerate(call.args):
        if arg.star:
            return None
        keyword = arg.keyword.value if arg.keyword is not None else None
        if keyword in ("fill_value", "value") or (keyword is None and index == position):
            return arg.value if _is_read(module, call, arg.value, method=method) else None
    return None


def _is_read(module: Module, call: cst.Call, number: cst.BaseExpression, *, method: bool) -> bool:
    """Return whether a number is a device scalar, and a call is one of torch, or a ``method`` of a tensor.

    Most are numbers of Python, which is told sooner than what the method is called on.
    """
    if not may_be_on_device(module, number):
        return False
    return not method or (isinstance(call.func, cst.Attribute) and on_device(module, call.func.value))


# Of a method; a function has the tensor in front.
_FILL_POSITION = {"index_fill": 2}


def taken_as_number(module: Module, call: cst.Call) -> tuple[str, cst.BaseExpression] | None:
    """Return the parameter of ``x.add_(y, alpha=s)`` and the like that is read as a number,
    and the device scalar that it is given.
    """
    word = last_name(call.func) or ""
    if word not in _TAKING_NUMBERS:
        return None
    qualified = module.qualified(call.func)
    name = word if qualified in (None, f"torch.{word}") else qualified
    parameter = READING_ARGUMENTS.get(name)
    given = None if parameter is None else given_as(call, *parameter)
    if parameter is None or given is None or not _is_read(module, call, given, method=qualified is None):
        return None
    return parameter[0], given


def made_step_by_step(module: Module, items: cst.BaseExpression) -> Hot | None:
    """Return the hot place that makes the elements of a list, so that there are many of them."""
    if isinstance(items, (cst.ListComp, cst.GeneratorExp)):
        return waiting_place(module, items.elt)
    return next((hot for node in _put_into(module, items) if (hot := waiting_place(module, node))), None)


def _put_into(module: Module, items: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what is appended to the list that a variable holds, and the elements of its comprehension."""
    for binding in module.bindings(items):
        if isinstance(binding.value, cst.ListComp) and not binding.path:
            yield binding.value.elt
        for use in module.uses(binding):
            value = module.inference.containers.appended(use)
            if value is not None:
                yield value


def stacked(module: Module, read: ReadOneByOne) -> Fix | None:
    """Return the fix that joins the tensors by ``torch.stack`` and copies the result;
    None if not all can be.
    """
    if any(t.kind is not Kind.TENSOR or t.device is Device.CPU for t in read.tensors):
        return None
    spelling = spell(module, "torch.stack", read.call)
    if spelling is None:
        return None
    detached = "" if all(t.graph is Graph.DETACHED for t in read.tensors) else ".detach()"
    joined = f"{spelling.text}({_as_list(module, read.items)})"
    if read.name in _OF_NUMPY:
        edits = replace(module, read.items, f"{joined}{detached}.cpu().numpy()")
        told = "Stack the tensors, and copy once"
        return unsafe(module, told, edits, spelling.edits, risk=_STACKED)
    if read.name in _COMPARING:
        if read.name not in _EXTREMES or len(read.call.args) > 1:
            return None
        edits = replace(module, read.call, f"{joined}.{read.name.rpartition('.')[2]}()")
        told = "Stack the tensors, and compare on the device"
        return unsafe(module, told, edits, spelling.edits, risk=_COMPARED)
    suffix = _destination(module, read)
    if suffix is None:
        return None
    edits = _stack(module, read, spelling.text, f"{detached}{suffix}")
    message = "Stack the tensors on the device"
    risk = None if _joins_alike(module, read) else "the tensor may get a different shape, dtype or device"
    return graded(module, message, edits, spelling.edits, risk=risk)


_STACKED = "`torch.stack` raises an error for an empty list, of which NumPy makes an empty array"
_COMPARED = "on the device, NaN is compared differently than by Python's `max` and `min`"


def _as_list(module: Module, items: cst.BaseExpression) -> str:
    code = module.source(items)
    return f"[{code}]" if isinstance(items, cst.GeneratorExp) and not module.tree.parentheses(items) else code


def _stack(module: Module, read: ReadOneByOne, stack: str, suffix: str) -> Edits | None:
    """Return the edits that rename the call, and let what follows the list say where the result goes."""
    tree = module.tree
    renamed = replace(module, read.call.func, stack)
    end = tree.span(read.call).end
    if len(read.call.args) == 1:
        return None if renamed is None else (*renamed, Edit(Span(end, end), suffix))
    behind = tree.outer_span(read.call.args[0].value).end
    if renamed is None or "#" in tree.text[behind:end]:
        return None
    return (*renamed, Edit(Span(behind, end), f"){suffix}"))


def _joins_alike(module: Module, read: ReadOneByOne) -> bool:
    """Return whether stacking gives the same tensor: there is something, without dimensions,
    and in one place.
    """
    if not read.written or len({t.device for t in read.tensors}) > 1:
        return False
    given = any(a.keyword is not None and a.keyword.value == "device" for a in read.call.args)
    if not given and module.value(read.call).device is not Device.CPU:
        return False  # the default device is another one
    named = keywords(read.call)
    cast = read.name in _LEGACY or "dtype" in named
    asked = module.value(named["dtype"]).cls if "dtype" in named else LEGACY_CONSTRUCTORS.get(read.name)
    if cast and asked not in _FLOATING:
        # ``torch.tensor`` refuses what does not fit into a narrow dtype, and a cast cuts it off.
        if asked not in _WIDE or any(t.dtype not in _WHOLE for t in read.tensors):
            return False
    return all(is_single_number(module, tensor) for tensor in read.written)


def _destination(module: Module, read: ReadOneByOne) -> str | None:
    """Return the method call that puts the stacked tensor where, and into the dtype in which, it was made."""
    if any(arg.keyword is None for arg in read.call.args[1:]):
        return None
    given = keywords(read.call)
    device, dtype = given.pop("device", None), given.pop("dtype", None)
    if given or (device is not None and module.value(device).constant is None):
        return None
    place = None if device is None else module.source(device)
    cast = None if dtype is None else module.source(dtype)
    if read.name in _LEGACY:
        spelling = spell(module, LEGACY_CONSTRUCTORS.get(read.name, "torch.float32"), read.call)
        if spelling is None or spelling.edits or read.name == "torch.Tensor":
            return None
        cast = spelling.text
    if place is None and moved_at_once(module, read.call) is None:
        place = '"cpu"'
    if cast is None:
        return "" if place is None else ".cpu()" if place == '"cpu"' else f".to({place})"
    return f".to({cast})" if place is None else f".to({place}, {cast})"

"""``torch.tensor(data)`` of an array or tensor: who would notice if nothing were copied.

A tensor that shares the memory of an array shows what is later written to either of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.arrays import array, named_dtype
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.transfers import moved_at_once
from torchlint.semantics.values import Device, Kind, item_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What makes an array that may be the memory of something else, or that must not be written to.
_SHARED = frozenset(
    f"numpy.{name}"
    for name in (
        *("asarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d", "atleast_3d"),
        *("broadcast_to", "expand_dims", "flip", "fliplr", "flipud", "moveaxis", "ravel", "reshape"),
        *("rollaxis", "rot90", "squeeze", "swapaxes", "transpose"),
    )
)
_READ_ONLY = frozenset({"numpy.frombuffer", "numpy.broadcast_to", "numpy.asarray"})
_WRITING = frozenset({"fill", "itemset", "partition", "put", "resize", "setfield", "sort"})
_WRITERS = frozenset({"numpy.copyto", "numpy.random.shuffle", "random.shuffle", "numpy.put", "numpy.place"})
_KEEPERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"})
_KEEPING = frozenset({"register_buffer", "register_parameter", "requires_grad_"})


# Attributes of tensors that arrays have as well.
_OF_ARRAYS_TOO = frozenset({"data", "T", "real", "imag"})


@dataclass(frozen=True, slots=True)
class Copied:
    """What a call of ``torch.tensor`` copies: the expression, and whether it is a tensor."""

    data: cst.BaseExpression
    tensor: bool


def copied(module: Module, call: cst.Call) -> Copied | None:
    """Return the array or tensor that ``torch.tensor`` copies without need; None for all other calls."""
    if module.qualified(call.func) != "torch.tensor":
        return None
    data = module.argument(call, "data").node
    if data is None:
        return None
    if every(_is_tensor(module, data)):
        return Copied(data, tensor=True)
    found = array(module, data)
    if found is None or any(arg.star for arg in call.args):
        return None
    dtype, device = module.argument(call, "dtype"), module.argument(call, "device")
    if dtype.node is not None and dtype.constant is not None:
        asked = named_dtype(module, dtype.node)
        if asked is None or asked != found.dtype:
            return None  # It is converted, which takes a copy.
    if device.node is not None and device.constant is not None and device.value.device is not Device.CPU:
        return None
    for name in ("requires_grad", "pin_memory"):
        if module.argument(call, name).given and module.argument(call, name).constant is not False:
            return None
    if moved_at_once(module, call) is not None or not _often(module, call):
        return None
    if _read_only(module, data) or _backwards(data) or _counted_out(module, data):
        return None
    return (
        None if not _fresh(module, data) and _copy_needed(module, call, data) else Copied(data, tensor=False)
    )


def _often(module: Module, call: cst.Call) -> bool:
    """Return whether a call runs again and again: what is copied once, while all is set up, is no loss."""
    return may_repeat(module, call) or phase(module, call) in (Phase.DATASET, Phase.FORWARD)


@traced(Through.NOTHING)
def _is_tensor(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether an expression is a tensor by what makes it: no name and no parameter tells.

    What is computed from something, or is a part of it, is a tensor if that is one: ``image[0]`` and
    ``image.transpose(2, 0, 1)`` are arrays where ``image`` is.
    """
    if path:
        # The results of a function that gives tensors only.
        return isinstance(node, cst.Call) or None
    if isinstance(node, cst.Param):
        return node.annotation is not None and module.qualified(node.annotation.annotation) == "torch.Tensor"
    if module.value(node).kind is not Kind.TENSOR or _asked_for(module, node):
        return False
    match node:
        case cst.Name():
            # What is added to a tensor leaves a tensor.
            return [Source(b) for b in module.bindings(node) if b.kind is not BindingKind.AUGMENT] or False
        case cst.Call(func=func) if module.qualified(func) is None:
            called = module.value(func)
            if called.kind is Kind.MODULE:  # by more than its name
                return bool(called.cls or called.definition or called.origin)
            if isinstance(func, cst.Attribute) and not isinstance(called.definition, cst.FunctionDef):
                return onward(func.value)
            return True
        case cst.BinaryOperation(left=left, right=right):
            tensors = [side for side in (left, right) if module.value(side).kind is Kind.TENSOR]
            # One that certainly is a tensor is enough.
            return any(every(_is_tensor(module, side)) for side in tensors) or onward(*tensors) or False
        case cst.UnaryOperation(expression=inner) | cst.Subscript(value=inner):
            return onward(inner)
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            told = name not in _OF_ARRAYS_TOO and isinstance(owner, cst.Name)
            return told or onward(owner)
        case _:
            return isinstance(node, cst.Call) or None


def _asked_for(module: Module, node: cst.CSTNode) -> bool:
    """Return whether it is ``if not isinstance(norm, torch.Tensor): norm = torch.tensor(norm)``."""
    text = module.source(node)
    tests = (module.source(decision.test) for decision in module.flow.decisions(node))
    return any(text in test and ("isinstance" in test or "is_tensor" in test) for test in tests)


def _backwards(data: cst.BaseExpression) -> bool:
    """Return whether it is ``array[::-1]``: no tensor has such strides."""
    return isinstance(data, cst.Subscript) and any(
        isinstance(element.slice, cst.Slice) and isinstance(element.slice.step, cst.UnaryOperation)
        for element in data.slice
    )


def _read_only(module: Module, data: cst.BaseExpression) -> bool:
    """Return whether PyTorch would warn that nobody may write to the memory of an array."""
    made = Loaders.of(module).made(data)
    if not isinstance(made, cst.Call):
        return False
    mapped = any(arg.keyword is not None and arg.keyword.value == "mmap_mode" for arg in made.args)
    return mapped or module.qualified(made.func) in _READ_ONLY


def _counted_out(module: Module, data: cst.BaseExpression) -> bool:
    """Return whether the array is made of a list of numbers, which takes far longer than copying it."""
    made = Loaders.of(module).made(data)
    match made:
        case cst.Call(args=[cst.Arg(value=held, keyword=None), *_]) if module.qualified(made.func) in (
            "numpy.array",
            "numpy.asarray",
        ):
            numbers = item_of(module.value(held))
            if numbers is not None and numbers.kind in (Kind.NUMBER, Kind.BOOL):
                return True
            return isinstance(held, cst.Call) and last_name(held.func) == "tolist"
        case _:
            return False


def _fresh(module: Module, data: cst.BaseExpression) -> bool:
    """Return whether the array is made here and nothing else holds it."""
    match data:
        case cst.Call():
            name = module.qualified(data.func)
            if name is not None:
                return name.startswith("numpy.") and name not in _SHARED
            return isinstance(data.func, cst.Attribute) and data.func.attr.value in (
                "astype",
                "copy",
                "flatten",
            )
        case cst.BinaryOperation() | cst.UnaryOperation():
            return True
        case _:
            return False


# --- who writes where ---------------------------------------------------------------------------------


def _copy_needed(module: Module, call: cst.Call, data: cst.BaseExpression) -> bool:
    """Return whether the file writes to the array or to the tensor, or keeps either where others may."""
    return _kept(module, call) or _owner_written(module, data)


def _owner_written(module: Module, data: cst.BaseExpression) -> bool:
    node: cst.BaseExpression = data
    while True:
        match node:
            case cst.Subscript(value=inner) | cst.Attribute(value=inner, attr=cst.Name(value="T")):
                node = inner
            case cst.Call(func=cst.Attribute(value=inner)) if module.qualified(node.func) is None:
                node = inner
            case cst.Call(args=[cst.Arg(value=inner), *_]):
                node = inner
            case _:
                break
    match node:
        case cst.Name():
            return any(_written(module, binding) for binding in module.bindings(node))
        case cst.Attribute(value=cst.Name(), attr=cst.Name(value=attr)):
            # What an object holds is written to by whoever holds the object.
            return attr in _written_attributes(module)
        case _:
            return False


def _written(module: Module, binding: Binding) -> bool:
    """Return whether something is written to the array, or tensor, behind a name."""
    if binding.kind is BindingKind.AUGMENT:
        return True
    return any(_writes(module, use) for use in module.uses(binding))


def _writes(module: Module, use: cst.BaseExpression) -> bool:
    """Return whether this use of an array or tensor changes it in place,
    or keeps it where it may be changed.
    """
    parent = module.tree.parent(use)
    while isinstance(parent, cst.Subscript) and parent.value is use:
        use, parent = parent, module.tree.parent(parent)
        if isinstance(parent, (cst.AssignTarget, cst.AugAssign)):
            return not (isinstance(parent, cst.AugAssign) and parent.value is use)
    match parent:
        case cst.AugAssign():
            return parent.target is use
        case cst.Attribute(attr=cst.Name(value=method)) if isinstance(module.tree.parent(parent), cst.Call):
            in_place = method.endswith("_") and not method.endswith("__")
            return in_place or method in _WRITING
        case cst.Arg(keyword=cst.Name(value="out")):
            return True
        case cst.Arg():
            outer = module.tree.parent(parent)
            if not isinstance(outer, cst.Call):
                return False
            name = module.qualified(outer.func)
            return name in _WRITERS or name in _KEEPERS or _keeps(outer)
        case _:
            return False


def _keeps(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _KEEPING


def _written_attributes(module: Module) -> set[str]:
    """Return the attributes of this file that hold something that is written to in place."""
    return {
        attribute.attr.value
        for attribute in module.tree.nodes(cst.Attribute)
        if isinstance(attribute.value, cst.Name) and _writes(module, attribute)
    }


def _kept(module: Module, call: cst.Call) -> bool:
    """Return whether the tensor is changed in place, or becomes a parameter or buffer,
    which training changes.
    """
    node: cst.BaseExpression = call
    parent = module.tree.parent(node)
    while isinstance(parent, cst.Attribute):
        if parent.attr.value in _KEEPING or parent.attr.value.endswith("_"):
            return True
        outer = module.tree.parent(parent)
        if not isinstance(outer, cst.Call):
            return False
        node, parent = outer, module.tree.parent(outer)
    if _writes(module, node):
        return True
    match parent:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            binding = module.binding_of(target)
            return binding is not None and _written(module, binding)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value=attr)))]):
            return attr in _written_attributes(module)
        case _:
            return False

"""Who shares the memory of a tensor or array: what its uses do to it, and what it was made of.

A view is the tensor by another name, and so is what ``to`` or ``float`` answers where there is nothing to
convert. ``fate`` follows a tensor through them; ``fresh`` says whether it began without any. ``writes_to``
says whether the file certainly writes to a tensor.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.memory import READING_FUNCTIONS, READING_METHODS, WRITTEN_PARAMETERS
from torchlint.semantics.api.results import (
    FACTORIES,
    LEGACY_CONSTRUCTORS,
    LIKE_FACTORIES,
    NN_LOSSES,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.sources import Path, Source, Through, every, onward, traced
from torchlint.semantics.spellings import positional
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


class Fate(IntEnum):
    """The worst that comes of a tensor where it is used."""

    READ = 0
    """Nothing: what is computed from it has memory of its own."""
    HELD = 1
    """Something that the file does not show, or not fully, may write to it, now or later."""
    WRITTEN = 2
    """It is written to, or told to need a gradient."""


_READING_BUILTINS = frozenset(f"builtins.{name}" for name in ("float", "int", "isinstance", "len", "print"))
# Attributes that are tensors of the same memory, or hang on the tensor.
_PARTS = frozenset({"data", "grad", "T", "mT", "H", "mH", "real", "imag"})
_FROM_MEMORY = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.asarray", "torch.Tensor"})
# What NumPy makes of something else without a copy, perhaps.
_NUMPY_VIEWS = frozenset(
    f"numpy.{name}"
    for name in (
        *("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d"),
        *("atleast_3d", "array_split", "broadcast_arrays", "broadcast_to", "diag", "diagonal"),
        *("expand_dims", "flip", "fliplr", "flipud", "frombuffer", "hsplit", "load", "moveaxis", "ravel"),
        *("real", "imag", "reshape", "rollaxis", "rot90", "split", "squeeze", "swapaxes", "transpose"),
        *("vsplit",),
    )
)
# Methods that answer with the same memory, or may.
_VIEWING = frozenset(
    {"view", "view_as", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze", "expand", "narrow"}
    | {"select", "unbind", "detach", "numpy", "flatten", "ravel", "contiguous", "float", "cpu", "swapaxes"}
)
# Methods whose result is no tensor.
_NUMBERS = frozenset({"tolist", "item", "numel", "dim", "size"})
_LITERALS = (cst.List, cst.ListComp, cst.Tuple, cst.Integer, cst.Float)


def fate(module: Module, value: cst.BaseExpression | Binding) -> Fate:
    """Return what comes of the tensor that an expression evaluates to, or that a name is bound to."""
    return max(verdicts(module, value, _fate), default=Fate.READ)


def _fate(module: Module, use: Use) -> Verdict[Fate]:
    """Return what one use does to a tensor, or to one in a list or tuple that is written out."""
    if use.path and use.kind not in (UseKind.INDEX, UseKind.ARGUMENT):
        return Fate.HELD
    match use.kind:
        case (
            UseKind.OPERAND
            | UseKind.COMPARED
            | UseKind.TESTED
            | UseKind.FORMATTED
            | UseKind.INDEX
            | UseKind.AUGMENTS
            | UseKind.DISCARDED
        ):
            return Fate.READ
        case UseKind.AUGMENTED | UseKind.SET:
            return Fate.WRITTEN
        case UseKind.CHOICE | UseKind.ITEM | UseKind.ITERATED | UseKind.ASSIGNED | UseKind.UNPACKED:
            return ONWARD
        case UseKind.ELEMENT if isinstance(use.by, (cst.List, cst.Tuple)):
            return ONWARD
        case UseKind.ATTRIBUTE:
            if use.name in _PARTS:
                return ONWARD
            return Fate.READ if use.name in TENSOR_ATTRIBUTES else Fate.HELD
        case UseKind.METHOD:
            return _of_method(use.name)
        case UseKind.ARGUMENT:
            return _of_argument(module, use)
        case UseKind.STORED if (
            isinstance(use.by, cst.Subscript) and module.value(use.by.value).kind is Kind.TENSOR
        ):
            return Fate.READ
    return Fate.HELD


def _of_method(name: str) -> Verdict[Fate]:
    """Return whether a method writes, ``x.add_(1)``, reads, ``x.sum()``, or shares, ``x.view(-1)``."""
    if name.endswith("_") and not name.endswith("__"):
        return Fate.WRITTEN
    if name in READING_METHODS:
        return Fate.READ
    return ONWARD if name in TENSOR_METHODS or name == "astype" else Fate.HELD


def _of_argument(module: Module, use: Use) -> Verdict[Fate]:
    """Return what a call does to the tensor that it is given, or to one of a list of them."""
    call, argument = use.call, use.argument
    name = module.qualified(call.func)
    if use.path:
        return Fate.READ if argument.keyword is None and name in READING_FUNCTIONS else Fate.HELD
    if argument.star:
        return Fate.HELD
    if name is not None:
        return _by_library(module, call, argument, name)
    if isinstance(module.callee(call), cst.FunctionDef):
        return ONWARD
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in TENSOR_METHODS:
        if module.value(call.func.value).kind is Kind.TENSOR:
            return Fate.READ  # ``y.add_(x)`` and ``y.view_as(x)`` change ``y``, if any.
    value = module.value(call.func)
    known = value.kind is Kind.MODULE and value.cls in NN_LOSSES
    return Fate.READ if known else Fate.HELD


def _by_library(module: Module, call: cst.Call, arg: cst.Arg, name: str) -> Verdict[Fate]:
    if name in _READING_BUILTINS:
        return Fate.READ
    if arg.keyword is not None and arg.keyword.value in WRITTEN_PARAMETERS:
        return Fate.WRITTEN
    if name.startswith("torch.distributed.") or (name.startswith("torch.") and name.endswith("_")):
        return Fate.WRITTEN
    if any(module.argument(call, parameter).node is arg.value for parameter in WRITTEN_PARAMETERS):
        return Fate.WRITTEN
    in_place = module.argument(call, "inplace")
    if in_place.given and in_place.constant is not False:
        return Fate.WRITTEN if in_place.constant is True else Fate.HELD
    if name in READING_FUNCTIONS:
        return Fate.READ if module.argument(call, "max_norm").absent else Fate.HELD
    function = name.removeprefix("torch.")
    if "." not in function and function in TENSOR_METHODS:
        return ONWARD
    return ONWARD if name in _FROM_MEMORY else Fate.HELD


def other_names(module: Module, binding: Binding) -> tuple[list[Binding], list[cst.Attribute]]:
    """Return the further variables, and the attributes,
    that hold the memory of the tensor that a variable has.

    Aliases, views and arrays, those that it was made of as well as those that are made of it, and what a
    function or class of the file keeps of them. A move to the device has memory of its own.
    """
    found = {binding: None}
    attributes: list[cst.Attribute] = []
    waiting = [binding]
    for one in waiting:
        reached: list[Binding] = []
        source = _held_by(module, one.value) if one.value is not None and not one.path else None
        if source is not None and one.kind is BindingKind.ASSIGN:
            reached += module.bindings(source)
        for kept in (kept for use in module.uses(one) for kept in _kept_as(module, use)):
            if isinstance(kept, Binding):
                reached.append(kept)
            else:
                attributes.append(kept)
        reached = [other for other in dict.fromkeys(reached) if other not in found]
        found.update(dict.fromkeys(reached))
        waiting += reached
    return waiting[1:], attributes


def _held_by(module: Module, node: cst.BaseExpression) -> cst.Name | None:
    """Return the variable whose memory an expression has: ``x``, ``x.view(-1)[0]``, ``from_numpy(x)``."""
    while not isinstance(node, cst.Name):
        match node:
            case cst.Call(func=cst.BaseExpression() as func, args=args):
                name = module.qualified(func)
                if name is not None:
                    viewing = name.removeprefix("torch.") in _VIEWING or name in _FROM_MEMORY
                    if not (viewing or name in _NUMPY_VIEWS) or not args or args[0].star:
                        return None
                    node = args[0].value
                elif isinstance(func, cst.Attribute) and func.attr.value in _VIEWING:
                    node = func.value
                else:
                    return None
            case cst.Subscript(value=owner):
                node = owner
            case cst.Attribute(value=owner, attr=cst.Name(value=name)) if name in _PARTS:
                node = owner
            case _:
                return None
    return node


def _kept_as(module: Module, use: cst.Name) -> list[Binding | cst.Attribute]:
    """Return the variables, parameters and attributes that get the memory of what is read at ``use``."""
    tree = module.tree
    outermost: cst.CSTNode = use
    for around in tree.ancestors(use):
        if not isinstance(around, cst.BaseExpression | cst.Arg | cst.Index | cst.SubscriptElement):
            break
        if isinstance(around, cst.BaseExpression) and _held_by(module, around) is use:
            outermost = around
    holder = tree.parent(outermost)
    if isinstance(holder, cst.Assign):
        targets = [target.target for target in holder.targets]
        names = [module.binding_of(target) for target in targets if isinstance(target, cst.Name)]
        kept = [target for target in targets if isinstance(target, cst.Attribute)]
        return [*(name for name in names if name is not None), *kept]
    call = tree.call_given(outermost)
    function = module.callee(call) if call is not None else None
    if call is None or not isinstance(function, cst.FunctionDef):
        return []
    bound = module.call(call)
    return [
        binding
        for name, bindings in module.names.scope_of(function).bindings.items()
        for binding in bindings
        if binding.kind is BindingKind.PARAMETER and bound.get(name).node is outermost
    ]


def fresh(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the tensor, or array,
    that an expression makes is in memory that nobody else may write to.

    Of a variable, all reads of it count: the caller asks for the fate of those it knows.
    """
    return every(_is_fresh(module, node))


@traced(Through.NOTHING)
def _is_fresh(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    match node:
        case cst.BinaryOperation() | cst.UnaryOperation():
            return not path
        case cst.Name():
            bindings = module.bindings(node)
            single = len(bindings) == 1 and bindings[0].kind is BindingKind.ASSIGN and not bindings[0].path
            return None if single and fate(module, bindings[0]) is Fate.READ else False
        case cst.Call():
            return _made_fresh(module, node)
        case _:
            return False


def _made_fresh(module: Module, call: cst.Call) -> bool | list[Source]:
    """Return whether the result of a call has memory of its own, or whose it may be."""
    given = positional(call)
    name = module.qualified(call.func)
    if name is None:
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if method in _NUMBERS or not (method in TENSOR_METHODS or method == "astype"):
            return False
        return method in READING_METHODS or onward(cst.ensure_type(call.func, cst.Attribute).value)
    if name in LEGACY_CONSTRUCTORS or name in _FROM_MEMORY:
        known = (Kind.NUMBER, Kind.LIST)
        held = [x for x in given if not isinstance(x, _LITERALS) and module.value(x).kind not in known]
        return onward(*held) if held else bool(given)
    if name in FACTORIES or name in LIKE_FACTORIES or name in READING_FUNCTIONS:
        return True
    if name.startswith("numpy."):
        return name not in _NUMPY_VIEWS
    function = name.removeprefix("torch.")
    if "." not in function and function in TENSOR_METHODS and call.args:
        return onward(call.args[0].value)
    return False


# --- what writes to it ----------------------------------------------------------------------------


def changed_later(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether the file writes to a tensor, so that whoever keeps it sees it change."""
    root: cst.BaseExpression = tensor
    while isinstance(root, cst.Call) and isinstance(root.func, cst.Attribute):
        if root.func.attr.value not in ("detach", "view", "reshape", "squeeze", "cpu"):
            return False
        root = root.func.value
    return any(writes_to(module, binding) for binding in module.bindings(root))


def writes_to(module: Module, value: cst.BaseExpression | Binding) -> bool:
    """Return whether the tensor that a name is bound to, or that is read here, is changed in place.

    By setting a part of it, a method, ``out=``, a collective, or a function of the file that does so.
    """
    return True in verdicts(module, value, _writes)


def _writes(module: Module, use: Use) -> Verdict[bool]:
    match use.kind:
        case UseKind.AUGMENTED | UseKind.SET:
            return True
        case UseKind.ATTRIBUTE if use.name in ("data", "grad"):
            return ONWARD
        case UseKind.METHOD:
            return use.name.endswith("_") and not use.name.endswith("__") and use.name != "requires_grad_"
        case UseKind.ARGUMENT:
            keyword = use.argument.keyword
            if keyword is not None and keyword.value == "out":
                return True
            if (module.qualified(use.call.func) or "").startswith("torch.distributed."):
                return True
            if isinstance(module.callee(use.call), cst.FunctionDef):
                return ONWARD
    return False

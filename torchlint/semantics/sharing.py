"""Who shares the memory of a tensor or array: what its uses do to it, and what it was made of.

A view is the tensor by another name, and so is what ``to`` or ``float`` answers where there is nothing to
convert. ``fate`` follows a tensor through them; ``fresh`` says whether it began without any.
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
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchlint.semantics.module import Module


class Fate(IntEnum):
    """The worst that comes of a tensor where it is used."""

    READ = 0
    """Nothing: what is computed from it has memory of its own."""
    HELD = 1
    """Something that the file does not show, or not fully, may write to it, now or later."""
    WRITTEN = 2
    """It is written to, or told to need a gradient."""


_HOPS = 4
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
_MOST_NAMES = 20
_LITERALS = (cst.List, cst.ListComp, cst.Tuple, cst.Integer, cst.Float)


def fate(module: Module, node: cst.BaseExpression, hops: int = _HOPS) -> Fate:
    """What comes of the tensor that ``node`` evaluates to, where ``node`` stands."""
    tree = module.tree
    parent = tree.parent(node)
    match parent:
        case (
            cst.BinaryOperation()
            | cst.UnaryOperation()
            | cst.Comparison()
            | cst.ComparisonTarget()
            | cst.FormattedStringExpression()
            | cst.Index()
            | cst.Expr()
            | cst.Assert()
            | cst.If()
            | cst.While()
        ):
            return Fate.READ
        case cst.BooleanOperation():
            return fate(module, parent, hops)
        case cst.IfExp():
            return Fate.READ if parent.test is node else fate(module, parent, hops)
        case cst.AugAssign():
            return Fate.WRITTEN if parent.target is node else Fate.READ
        case cst.AssignTarget() | cst.Del():
            return Fate.WRITTEN
        case cst.Attribute():
            return _of_attribute(module, parent, hops)
        case cst.Subscript():
            return fate(module, parent, hops)
        case cst.Arg():
            return _of_argument(module, parent, hops)
        case cst.Assign():
            return max(_of_target(module, target.target, hops) for target in parent.targets)
        case cst.AnnAssign() if parent.value is node:
            return _of_target(module, parent.target, hops)
        case cst.NamedExpr() if parent.value is node:
            return max(_of_target(module, parent.target, hops), fate(module, parent, hops))
        case cst.For() | cst.CompFor() if parent.iter is node:
            return _of_target(module, parent.target, hops)
        case cst.Element():
            return _of_element(module, parent, hops)
    return Fate.HELD


@remembered
def fate_of_binding(module: Module, binding: Binding, hops: int = _HOPS) -> Fate:
    """What comes of the tensor that a name is bound to, wherever the name is read."""
    if hops <= 0:
        return Fate.HELD
    return max((fate(module, use, hops - 1) for use in module.uses(binding)), default=Fate.READ)


def _of_attribute(module: Module, attribute: cst.Attribute, hops: int) -> Fate:
    """``x.add_(1)``, ``x.sum()``, ``x.view(-1)``, ``x.shape``, ``x.data``."""
    name = attribute.attr.value
    outer = module.tree.parent(attribute)
    if isinstance(outer, cst.Call) and outer.func is attribute:
        if name.endswith("_") and not name.endswith("__"):
            return Fate.WRITTEN
        if name in READING_METHODS:
            return Fate.READ
        return fate(module, outer, hops) if name in TENSOR_METHODS or name == "astype" else Fate.HELD
    if isinstance(outer, (cst.AssignTarget, cst.AugAssign)) and outer.target is attribute:
        return Fate.WRITTEN
    if name in _PARTS:
        return fate(module, attribute, hops)
    return Fate.READ if name in TENSOR_ATTRIBUTES else Fate.HELD


def _of_target(module: Module, target: cst.BaseExpression, hops: int) -> Fate:
    """What comes of a tensor that is assigned, or whose rows are."""
    match target:
        case cst.Name():
            binding = module.binding_of(target)
            return Fate.HELD if binding is None else fate_of_binding(module, binding, hops)
        case cst.Tuple() | cst.List():
            return max((_of_target(module, e.value, hops) for e in target.elements), default=Fate.READ)
        case cst.Subscript() if module.is_tensor(target.value):
            return Fate.READ
    return Fate.HELD


def _of_element(module: Module, element: cst.Element, hops: int) -> Fate:
    """A tensor in a list or tuple that is written out: of ``torch.cat([x, y])``, or of ``a, b = x, y``."""
    display = module.tree.parent(element)
    if not isinstance(display, (cst.List, cst.Tuple)):
        return Fate.HELD
    if isinstance(module.tree.parent(display), cst.SubscriptElement | cst.Index):
        return Fate.READ
    holder = module.tree.parent(display)
    match holder:
        case cst.Arg(keyword=None):
            call = module.tree.parent(holder)
            name = module.qualified(call.func) if isinstance(call, cst.Call) else None
            return Fate.READ if name in READING_FUNCTIONS else Fate.HELD
        case cst.Assign(targets=[cst.AssignTarget(target=(cst.Tuple() | cst.List()) as target)]):
            index = list(display.elements).index(element)
            targets = [e.value for e in target.elements]
            starred = any(isinstance(e, cst.StarredElement) for e in (*target.elements, *display.elements))
            if not starred and len(targets) == len(display.elements):
                return _of_target(module, targets[index], hops)
    return Fate.HELD


def _of_argument(module: Module, arg: cst.Arg, hops: int) -> Fate:
    """What a call does to the tensor that it is given."""
    call = module.tree.parent(arg)
    if not isinstance(call, cst.Call) or arg.star:
        return Fate.HELD
    name = module.qualified(call.func)
    if name is not None:
        return _by_library(module, call, arg, name, hops)
    function = module.callee(call)
    if isinstance(function, cst.FunctionDef):
        return _by_function(module, call, arg, function, hops)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in TENSOR_METHODS:
        if module.is_tensor(call.func.value):
            return Fate.READ  # ``y.add_(x)`` and ``y.view_as(x)`` change ``y``, if any.
    value = module.value(call.func)
    known = value.kind is Kind.MODULE and value.cls in NN_LOSSES
    return Fate.READ if known else Fate.HELD


def _by_library(module: Module, call: cst.Call, arg: cst.Arg, name: str, hops: int) -> Fate:
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
        return fate(module, call, hops)
    return fate(module, call, hops) if name in _FROM_MEMORY else Fate.HELD


def _by_function(module: Module, call: cst.Call, arg: cst.Arg, function: cst.FunctionDef, hops: int) -> Fate:
    """What a function of the file does to its argument."""
    bound = module.call(call)
    for name, bindings in module.names.scope_of(function).bindings.items():
        if bound.get(name).node is arg.value:
            return _worst(module, (b for b in bindings if b.kind is BindingKind.PARAMETER), hops)
    return Fate.HELD


def _worst(module: Module, bindings: Iterable[Binding], hops: int) -> Fate:
    return max((fate_of_binding(module, binding, hops) for binding in bindings), default=Fate.HELD)


def other_names(module: Module, binding: Binding) -> tuple[list[Binding], list[cst.Attribute]]:
    """The further variables, and the attributes, that hold the memory of the tensor that a variable has.

    Aliases, views and arrays, those that it was made of as well as those that are made of it, and what a
    function or class of the file keeps of them. A move to the device has memory of its own.
    """
    found: list[Binding] = [binding]
    attributes: list[cst.Attribute] = []
    for one in found:
        reached: list[Binding] = []
        source = _held_by(module, one.value) if one.value is not None and not one.path else None
        if source is not None and one.kind is BindingKind.ASSIGN:
            reached += module.bindings(source)
        for kept in (kept for use in module.uses(one) for kept in _kept_as(module, use)):
            if isinstance(kept, Binding):
                reached.append(kept)
            else:
                attributes.append(kept)
        if len(found) < _MOST_NAMES:
            found += [other for other in dict.fromkeys(reached) if other not in found]
    return found[1:], attributes


def _held_by(module: Module, node: cst.BaseExpression) -> cst.Name | None:
    """The variable whose memory an expression has: ``x``, ``x.view(-1)[0]``, ``torch.from_numpy(x)``."""
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
    """The variables, parameters and attributes that get the memory of what is read at ``use``."""
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
    call = tree.parent(holder) if isinstance(holder, cst.Arg) else None
    function = module.callee(call) if isinstance(call, cst.Call) else None
    if not isinstance(call, cst.Call) or not isinstance(function, cst.FunctionDef):
        return []
    bound = module.call(call)
    return [
        binding
        for name, bindings in module.names.scope_of(function).bindings.items()
        for binding in bindings
        if binding.kind is BindingKind.PARAMETER and bound.get(name).node is outermost
    ]


@remembered
def fresh(module: Module, node: cst.BaseExpression, hops: int = _HOPS) -> bool:
    """Whether the tensor, or array, that an expression makes is in memory that nobody else may write to.

    Of a variable, all reads of it count: the caller asks for the fate of those it knows.
    """
    if hops <= 0:
        return False
    match node:
        case cst.BinaryOperation() | cst.UnaryOperation():
            return True
        case cst.Name():
            bindings = module.bindings(node)
            return len(bindings) == 1 and _made_fresh(module, bindings[0], hops)
        case cst.Call():
            name = module.qualified(node.func)
            if name is not None:
                return _made_by_library(module, node, name, hops)
            if not isinstance(node.func, cst.Attribute):
                return False
            method = node.func.attr.value
            if method in ("tolist", "item", "numel", "dim", "size") or method not in {
                *TENSOR_METHODS,
                "astype",
            }:
                return False
            return method in READING_METHODS or fresh(module, node.func.value, hops)
    return False


def _made_fresh(module: Module, binding: Binding, hops: int) -> bool:
    if binding.kind is not BindingKind.ASSIGN or binding.value is None or binding.path:
        return False
    if not fresh(module, binding.value, hops - 1):
        return False
    return fate_of_binding(module, binding, hops - 1) is Fate.READ


def _made_by_library(module: Module, call: cst.Call, name: str, hops: int) -> bool:
    legacy = name in LEGACY_CONSTRUCTORS or name in _FROM_MEMORY
    if legacy:
        given = [arg.value for arg in call.args if arg.keyword is None]
        return bool(given) and all(
            isinstance(data, _LITERALS)
            or module.value(data).kind in (Kind.NUMBER, Kind.LIST)
            or fresh(module, data, hops - 1)
            for data in given
        )
    if name in FACTORIES or name in LIKE_FACTORIES or name in READING_FUNCTIONS:
        return True
    if name.startswith("numpy."):
        return name not in _NUMPY_VIEWS
    function = name.removeprefix("torch.")
    if "." not in function and function in TENSOR_METHODS and call.args:
        return fresh(module, call.args[0].value, hops)
    return False

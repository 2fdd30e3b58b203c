"""Running totals and lists of numbers: how they could hold tensors instead, and who would notice.

``total += loss.item()`` and ``losses.append(loss.item())`` wait for the device only to keep a number that
nobody looks at before the loop is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.semantics.api.results import FUNCTIONAL_LOSSES, NN_LOSSES
from torchlint.semantics.usage import Effect, accumulator_start, tensor_instead_of_number
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_HOPS = 4
_REDUCTIONS = frozenset(
    ["max", "mean", "median", "min", "nanmean", "nansum", "norm", "prod", "std", "sum", "var"]
)
_NORMS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.get_total_norm"})


def keep_on_device(module: Module, call: cst.Call, tensor: cst.BaseExpression) -> Fix | None:
    """The fix that accumulates ``tensor`` instead of the number that ``call`` reads from it.

    None if ``call`` feeds no accumulator, or if a tensor there would raise or change later.
    """
    if not _plain_conversion(module, call):
        return None
    accumulator = _accumulator(module, call)
    if accumulator is None or _changed_in_place(module, tensor, accumulator):
        return None
    effect = _effect(module, accumulator)
    single = is_single_number(module, tensor)
    if effect is Effect.BREAKS or (accumulator.many and not single):
        # A list may well hold tokens or indices, which are wanted as numbers.
        return None
    edits = module.replace(call, _detached(module, tensor))
    message = "Accumulate the tensor and read it after the loop"
    if effect is Effect.NONE and single:
        return module.safe(message, edits)
    return module.unsafe(message, edits)


def _plain_conversion(module: Module, call: cst.Call) -> bool:
    """``x.item()`` and ``float(x)``: those that keep the value as it is."""
    if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
        return call.func.attr.value == "item"
    return module.qualified(call.func) == "builtins.float"


def _detached(module: Module, tensor: cst.BaseExpression) -> str:
    code = module.tree.source(tensor)
    match tensor:
        case (
            cst.Call(func=cst.Attribute(attr=cst.Name(value="detach")))
            | cst.Attribute(attr=cst.Name(value="data"))
        ):
            return code
        case cst.Name() | cst.Attribute() | cst.Call() | cst.Subscript():
            return f"{code}.detach()"
    return f"{code}.detach()" if tensor.lpar else f"({code}).detach()"


@dataclass(frozen=True, slots=True)
class _Accumulator:
    """What a statement adds to: the expression that names it, whether it is a list, and what it rebinds."""

    target: cst.BaseExpression
    many: bool
    written: cst.BaseExpression


def _accumulator(module: Module, call: cst.Call) -> _Accumulator | None:
    """The accumulator that ``call`` feeds, directly or through arithmetic that a tensor bears as well."""
    tree = module.tree
    node: cst.CSTNode = call
    parent = tree.parent(node)
    while isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)):
        if isinstance(parent, cst.BinaryOperation):
            other = parent.right if parent.left is node else parent.left
            target = _assigned(module, parent)
            if target is not None and isinstance(other, cst.Name) and other.value == target.value:
                return _Accumulator(other, False, target)
            value = module.value(other)
            if value.kind not in (Kind.NUMBER, Kind.BOOL, Kind.UNKNOWN) and not value.tensorlike:
                return None
        elif isinstance(parent.operator, cst.Not):
            return None
        node, parent = parent, tree.parent(parent)
    match parent:
        case cst.AugAssign(operator=cst.AddAssign()) if parent.value is node:
            return _Accumulator(parent.target, False, parent.target)
        case cst.Arg():
            append = tree.parent(parent)
            match append:
                case cst.Call(func=cst.Attribute(value=holder, attr=cst.Name(value="append")), args=[_]):
                    return _Accumulator(holder, True, holder)
        case cst.Element():
            display = tree.parent(parent)
            extended = tree.parent(display) if display is not None else None
            match display, extended:
                case cst.List(elements=[_]), cst.AugAssign(operator=cst.AddAssign(), target=holder):
                    return _Accumulator(holder, True, holder)
    return None


def _assigned(module: Module, node: cst.BinaryOperation) -> cst.Name | None:
    """The name that a sum is assigned to: ``total = total + x``."""
    match module.tree.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
            return target if isinstance(node.operator, cst.Add) else None
    return None


def _effect(module: Module, accumulator: _Accumulator) -> Effect:
    target = accumulator.target
    if isinstance(target, cst.Subscript):
        return Effect.NOTICED if module.value(target.value).kind in (Kind.DICT, Kind.LIST) else Effect.BREAKS
    value = module.value(target)
    if isinstance(target, cst.Attribute):
        fits = value.kind in ((Kind.LIST,) if accumulator.many else (Kind.NUMBER, Kind.TENSOR, Kind.UNKNOWN))
        return Effect.NOTICED if fits else Effect.BREAKS
    if not isinstance(target, cst.Name):
        return Effect.BREAKS
    if accumulator.many:
        if value.kind is not Kind.LIST:
            return Effect.NOTICED if value.kind is Kind.UNKNOWN else Effect.BREAKS
        bindings = module.bindings(target)
        effects = [tensor_instead_of_number(module, binding, many=True) for binding in bindings]
        return min(effects, default=Effect.NOTICED)
    binding = module.binding_of(accumulator.written)
    if binding is None:
        return Effect.NOTICED
    return min(accumulator_start(module, binding), tensor_instead_of_number(module, binding, many=False))


def _changed_in_place(module: Module, tensor: cst.BaseExpression, accumulator: _Accumulator) -> bool:
    """Whether a list would hold a tensor whose memory the loop writes to again."""
    root: cst.BaseExpression = tensor
    while isinstance(root, cst.Call) and isinstance(root.func, cst.Attribute):
        if root.func.attr.value not in ("detach", "view", "reshape", "squeeze", "cpu"):
            return False
        root = root.func.value
    if not accumulator.many or not isinstance(root, cst.Name):
        return False
    for use in (use for binding in module.bindings(root) for use in module.uses(binding)):
        parent = module.tree.parent(use)
        if isinstance(parent, cst.AugAssign) and parent.target is use:
            return True
        if isinstance(parent, cst.Attribute) and parent.attr.value.endswith("_") and parent.attr.value != "_":
            called = module.tree.parent(parent)
            if (
                isinstance(called, cst.Call)
                and called.func is parent
                and parent.attr.value != "requires_grad_"
            ):
                return True
    return False


# --- tensors of no dimension ------------------------------------------------------------------------


def is_single_number(module: Module, node: cst.BaseExpression, hops: int = _HOPS) -> bool:
    """Whether a tensor provably has no dimension, so that it formats and adds up like a number."""
    match node:
        case cst.Call():
            return _returns_single(module, node, hops)
        case cst.BinaryOperation():
            sides = (node.left, node.right)
            return any(module.is_tensor(side) for side in sides) and all(
                module.value(side).kind in (Kind.NUMBER, Kind.BOOL) or is_single_number(module, side, hops)
                for side in sides
            )
        case cst.UnaryOperation():
            return is_single_number(module, node.expression, hops)
        case cst.Attribute(attr=cst.Name(value=("loss" | "data") as name)):
            return name == "loss" or is_single_number(module, node.value, hops)
        case cst.Name() if hops:
            bindings = [b for b in module.bindings(node) if b.kind.value != "augment"]
            return bool(bindings) and (
                all(
                    b.value is not None and not b.path and is_single_number(module, b.value, hops - 1)
                    for b in bindings
                )
                or _backpropagated(module, node)
            )
    return False


def _returns_single(module: Module, call: cst.Call, hops: int) -> bool:
    qualified = module.qualified(call.func)
    if qualified is not None:
        if qualified in FUNCTIONAL_LOSSES:
            return module.argument(call, "reduction").constant != "none"
        if qualified in _NORMS:
            return True
        package, _, name = qualified.rpartition(".")
        return package == "torch" and name in _REDUCTIONS and len(call.args) == 1
    if isinstance(call.func, cst.Attribute):
        name, owner = call.func.attr.value, call.func.value
        if name in _REDUCTIONS and module.is_tensor(owner):
            return all(arg.keyword is not None and arg.keyword.value == "dtype" for arg in call.args)
        if name in ("detach", "float", "double", "half", "cpu", "clone", "to", "abs", "sqrt", "log", "exp"):
            return is_single_number(module, owner, hops)
    criterion = module.value(call.func)
    if criterion.kind is Kind.MODULE and criterion.cls in NN_LOSSES:
        origin = criterion.origin
        return isinstance(origin, cst.Call) and module.argument(origin, "reduction").constant != "none"
    return False


def _backpropagated(module: Module, name: cst.Name) -> bool:
    """Whether ``name.backward()`` is called without a gradient: only a single number can be."""
    for binding in module.bindings(name):
        for use in module.uses(binding):
            parent = module.tree.parent(use)
            if isinstance(parent, cst.Attribute) and parent.attr.value == "backward":
                call = module.tree.parent(parent)
                if isinstance(call, cst.Call) and not any(
                    arg.keyword is None or arg.keyword.value == "gradient" for arg in call.args
                ):
                    return True
            if isinstance(parent, cst.Arg) and _is_backward(module.tree.parent(parent)):
                return True
    return False


def _is_backward(call: cst.CSTNode | None) -> bool:
    """``scaler.scale(loss)``, ``accelerator.backward(loss)``, ``self.manual_backward(loss)``."""
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("scale", "backward", "manual_backward")
    )

"""Tensors of no dimension, which hold a single number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import FUNCTIONAL_LOSSES, NN_LOSSES
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_HOPS = 4
_REDUCTIONS = frozenset(
    ["max", "mean", "median", "min", "nanmean", "nansum", "norm", "prod", "std", "sum", "var"]
)
_RESHAPING = frozenset({"view", "reshape", "unsqueeze", "expand", "repeat", "flatten"})
_NORMS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.get_total_norm"})


@remembered
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
                or (
                    _backpropagated(module, node)
                    and not any(_shaped(module, b.value, hops) for b in bindings)
                )
            )
    return False


def _returns_single(module: Module, call: cst.Call, hops: int) -> bool:
    qualified = module.qualified(call.func)
    if qualified is not None:
        if qualified in FUNCTIONAL_LOSSES:
            return _reduces(module, call)
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
        return isinstance(origin, cst.Call) and _reduces(module, origin)
    return False


def _reduces(module: Module, loss: cst.Call) -> bool:
    """Whether a loss, or its constructor, is certainly asked for one number, as it is by default."""
    reduction = module.argument(loss, "reduction")
    return reduction.absent or reduction.constant in ("mean", "sum", "batchmean")


@remembered
def _shaped(module: Module, node: cst.BaseExpression | None, hops: int) -> bool:
    """Whether a tensor, single as it may be, is seen to be given a dimension."""
    match node:
        case cst.BinaryOperation():
            return _shaped(module, node.left, hops) or _shaped(module, node.right, hops)
        case cst.UnaryOperation():
            return _shaped(module, node.expression, hops)
        case cst.Name() if hops:
            return any(_shaped(module, b.value, hops - 1) for b in module.bindings(node) if not b.path)
        case cst.Call():
            callee = module.callee(node)
            if isinstance(callee, cst.FunctionDef) and hops:
                returns = (r for r in module.tree.nodes(cst.Return) if module.function(r) is callee)
                return any(_shaped(module, r.value, hops - 1) for r in returns)
            if not isinstance(node.func, cst.Attribute) or module.qualified(node.func) is not None:
                return False
            name = node.func.attr.value
            if name in _RESHAPING or (name in _REDUCTIONS and node.args):
                return True
            return name not in _REDUCTIONS and _shaped(module, node.func.value, hops)
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

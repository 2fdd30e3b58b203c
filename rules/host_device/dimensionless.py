"""Tensors of no dimension, which hold a single number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.dimensions import has_no_dimension
from torchlint.semantics.sources import Path, Source, Through, every, onward, some, traced
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_ELEMENTWISE = frozenset(
    {"abs", "clone", "cpu", "detach", "double", "exp", "float", "half", "log", "sqrt", "to"}
)
_NORMS = frozenset({"torch.nn.utils.clip_grad_norm_", "torch.nn.utils.get_total_norm"})
_REDUCTIONS = frozenset(
    ["max", "mean", "median", "min", "nanmean", "nansum", "norm", "prod", "std", "sum", "var"]
)
_RESHAPING = frozenset({"view", "reshape", "unsqueeze", "expand", "repeat", "flatten"})


def is_single_number(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a tensor provably holds one number, so that it adds up like one."""
    return every(_single(module, node, True))


def formats_as_number(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a tensor provably has no dimension; of one with a single element,
    `format` takes no format.
    """
    return every(_single(module, node, False))


@traced(Through.OPERANDS)
def _single(
    module: Module, node: cst.CSTNode, path: Path, with_dimensions: bool
) -> bool | list[Source] | None:
    """Return whether what an expression is computed of is one number, of Python or of a tensor.

    With ``with_dimensions`` it may also be a tensor of one element, such as what ``backward()`` takes.
    """
    if path or not isinstance(node, cst.BaseExpression):
        return None
    if module.value(node).kind in (Kind.NUMBER, Kind.BOOL) or has_no_dimension(module, node):
        return True
    match node:
        case cst.Attribute(attr=cst.Name("loss")):
            return True
        case cst.Call() if module.qualified(node.func) in _NORMS:
            return True
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if method in _ELEMENTWISE:
            return onward(owner)
        case cst.Name() if (
            with_dimensions and _backpropagated(module, node) and not some(_shaped(module, node))
        ):
            return True
        case _:
            return None


@traced(Through.OPERANDS | Through.RETURNS)
def _shaped(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a tensor, single as it may be, is seen to be given a dimension."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(method))) if (
            not path and module.qualified(node.func) is None and module.callee(node) is None
        ):
            if method in _RESHAPING or (method in _REDUCTIONS and node.args):
                return True
            return False if method in _REDUCTIONS else onward(owner)
        case _:
            return None


def _backpropagated(module: Module, name: cst.Name) -> bool:
    """Return whether ``name.backward()`` is called without a gradient: only a single number can be."""
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
    """Return whether it is ``scaler.scale(loss)``,
    ``accelerator.backward(loss)``, ``self.manual_backward(loss)``.
    """
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value in ("scale", "backward", "manual_backward")
    )

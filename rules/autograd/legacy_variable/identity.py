"""Whether it matters which of two tensor objects stands somewhere, where both have the same memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import FACTORIES, HOST_FACTORIES
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Graph

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What is asked or done of a variable that must not reach the tensor it was made of.
_ASKED = frozenset(
    {"requires_grad", "requires_grad_", "grad", "retain_grad", "volatile", "register_hook", "resize_", "set_"}
    | {"resize_as_", "squeeze_", "unsqueeze_", "t_", "transpose_"}
)
# What a function that is given the variable may do so.
_CHANGES = re.compile(
    r"requires_grad|retain_grad|register_hook|\.(?:resize|squeeze|unsqueeze|transpose|set|t)\w*_\("
)
_HOPS = 3


def is_fresh(module: Module, data: cst.BaseExpression) -> bool:
    """Whether an expression makes a tensor object that has no graph and that nothing else holds."""
    if isinstance(data, cst.Attribute) and data.attr.value == "data":
        owner = module.value(data.value)
        return owner.tensorlike or not owner.known
    if module.value(data).graph is not Graph.DETACHED:
        return False
    if isinstance(data, (cst.BinaryOperation, cst.UnaryOperation)):
        return True
    while isinstance(data, cst.Call):
        name = module.qualified(data.func)
        if name is not None:
            if name in ("torch.as_tensor", "torch.asarray"):
                # A tensor comes back as it is.
                given = module.value(data.args[0].value) if data.args else None
                return given is not None and given.known and not given.tensorlike
            return name in FACTORIES or name in HOST_FACTORIES or name == "torch.from_numpy"
        if not isinstance(data.func, cst.Attribute):
            return False
        data = data.func.value
    return False


def may_be_told_apart(module: Module, call: cst.Call, data: cst.BaseExpression) -> bool:
    """Whether it may matter that a variable and the tensor it was made of are two objects.

    It does where either is told to need a gradient, is asked for one, changes its size or gets an attribute.
    """
    reads: list[cst.CSTNode] = [call]
    if isinstance(data, cst.Name):
        reads += [use for b in module.bindings(data) for use in module.uses(b) if use is not data]
    return any(_is_noticed(read, module) for read in reads)


def _is_noticed(read: cst.CSTNode, module: Module, hops: int = _HOPS) -> bool:
    """Whether what a tensor is used for here depends on which object it is, or changes the object."""
    parent = module.tree.parent(read)
    match parent:
        case cst.Attribute():
            outer = module.tree.parent(parent)
            if isinstance(outer, cst.AssignTarget):
                return True
            return parent.attr.value in _ASKED or (
                parent.attr.value == "data" and _is_noticed(parent, module, hops)
            )
        case cst.Assign():
            return any(_is_noticed_later(module, target.target, hops) for target in parent.targets)
        case cst.AnnAssign() if parent.value is read:
            return _is_noticed_later(module, parent.target, hops)
        case cst.Element():
            target = _unpacked_to(parent, module)
            return target is None or _is_noticed_later(module, target, hops)
        case cst.Arg():
            user = module.tree.parent(parent)
            if not isinstance(user, cst.Call):
                return False
            if module.qualified(user.func) == "builtins.id":
                return True
            function = module.callee(user)
            return (
                isinstance(function, cst.FunctionDef) and _CHANGES.search(module.source(function)) is not None
            )
        case cst.ComparisonTarget():
            return isinstance(parent.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn))
        case cst.Comparison():
            operators = (target.operator for target in parent.comparisons)
            return any(isinstance(o, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for o in operators)
        case cst.Return() | cst.Yield() | cst.DictElement():
            return True
    return False


@remembered
def _is_noticed_later(module: Module, target: cst.BaseExpression, hops: int) -> bool:
    if not isinstance(target, cst.Name):
        return True
    binding = module.binding_of(target)
    if binding is None or hops <= 0:
        return True
    return any(_is_noticed(use, module, hops - 1) for use in module.uses(binding))


def _unpacked_to(element: cst.Element, module: Module) -> cst.BaseExpression | None:
    """``x`` for the first of ``x, y = Variable(x), Variable(y)``; None for other lists and tuples."""
    display = module.tree.parent(element)
    match module.tree.parent(display) if isinstance(display, cst.Tuple) else None:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() as target)]) if isinstance(
            display, cst.Tuple
        ):
            if len(target.elements) == len(display.elements):
                return target.elements[list(display.elements).index(element)].value
    return None

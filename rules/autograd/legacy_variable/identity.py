"""Whether it matters which of two tensor objects stands somewhere, where both have the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.api.results import FACTORIES, HOST_FACTORIES
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.values import Graph

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What is asked or done of a variable that must not reach the tensor it was made of.
_ASKED = frozenset(
    {"requires_grad", "requires_grad_", "grad", "retain_grad", "volatile", "register_hook", "resize_", "set_"}
    | {"resize_as_", "squeeze_", "unsqueeze_", "t_", "transpose_"}
)


def is_fresh(module: Module, data: cst.BaseExpression) -> bool:
    """Return whether an expression makes a tensor object that has no graph and that nothing else holds."""
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
    """Return whether it may matter that a variable and the tensor it was made of are two objects.

    It does where either is told to need a gradient, is asked for one, changes its size or gets an attribute.
    """
    reads: list[cst.BaseExpression] = [call]
    if isinstance(data, cst.Name):
        reads += [use for b in module.bindings(data) for use in module.uses(b) if use is not data]
    return any(True in verdicts(module, read, _is_noticed) for read in reads)


def _is_noticed(module: Module, use: Use) -> Verdict[bool]:
    """Return whether what a tensor is used for depends on which object it is, or changes the object."""
    match use.kind:
        case UseKind.ATTRIBUTE | UseKind.METHOD:
            return ONWARD if use.name == "data" else use.name in _ASKED
        case UseKind.SET:
            return isinstance(use.by, cst.Attribute)
        case UseKind.ASSIGNED:
            return ONWARD
        case UseKind.ARGUMENT:
            if module.qualified(use.call.func) == "builtins.id":
                return True
            function = module.callee(use.call)
            return isinstance(function, cst.FunctionDef) and any(
                isinstance(node, cst.Name) and node.value in _ASKED
                for node in module.tree.descendants(function)
            )
        case UseKind.COMPARED:
            operators = (target.operator for target in _compared(use))
            return any(isinstance(o, (cst.Is, cst.IsNot, cst.In, cst.NotIn)) for o in operators)
        case UseKind.RETURNED | UseKind.YIELDED | UseKind.ELEMENT | UseKind.STORED | UseKind.UNPACKED:
            return True
        case UseKind.OTHER | UseKind.ELSEWHERE:  # a key of a dict, above all
            return True
    return False


def _compared(use: Use) -> Sequence[cst.ComparisonTarget]:
    """Return the sides of a comparison that tell how it compares with a value."""
    if isinstance(use.part, cst.ComparisonTarget):
        return (use.part,)
    return use.by.comparisons if isinstance(use.by, cst.Comparison) else ()

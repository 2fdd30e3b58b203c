"""What the elements of a tensor may be on one of the ways by which it comes."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from torchlint.semantics import tensordtypes
from torchlint.semantics.api.results import METHOD_DTYPES
from torchlint.semantics.module import Module
from torchlint.semantics.sources import Source, Through, onward, some, traced
from torchlint.semantics.values import Graph, Kind

_OF_DATA = frozenset(
    {"torch.from_numpy", "torch.as_tensor", "torch.asarray", "torch.tensor", "numpy.asarray"}
)


def may_hold(module: Module, node: cst.BaseExpression, dtypes: Collection[str]) -> bool:
    """Whether an expression is seen to be a tensor of one of some dtypes, or an object of the program's own.

    A parameter is what any of the calls passes for it. What nothing is known of counts as neither.
    """
    return some(_holds(module, node, frozenset(dtypes)))


@traced(Through.ITEMS | Through.RETURNS | Through.PARAMETERS)
def _holds(
    module: Module, node: cst.CSTNode, path: tuple[object, ...], dtypes: frozenset[str]
) -> bool | list[Source] | None:
    if path or not isinstance(node, cst.BaseExpression):
        return None
    value = module.value(node)
    if value.dtype is not None:
        return f"torch.{value.dtype.removeprefix('torch.')}" in dtypes
    if value.kind is Kind.TENSOR and value.graph is Graph.ATTACHED:
        return False
    if value.kind is Kind.OBJECT and isinstance(value.definition, cst.ClassDef):
        return True
    match node:
        case cst.Call():
            return _of_call(module, node, dtypes)
        case cst.BinaryOperation():
            return _of_operation(module, node, dtypes)
        case cst.UnaryOperation(operator=cst.Minus() | cst.Plus() | cst.BitInvert(), expression=operand):
            return onward(operand)
        case cst.Subscript(value=owner) if module.value(owner).kind is Kind.TENSOR:
            return onward(owner)
        case cst.Attribute(attr=cst.Name("indices")):
            return "torch.int64" in dtypes
        case cst.Attribute(value=owner, attr=cst.Name("data" | "T" | "mT")):
            return onward(owner)
    return None


def _of_call(module: Module, call: cst.Call, dtypes: frozenset[str]) -> bool | list[Source] | None:
    """What is computed by element of a tensor, and the steps of ``torch.arange(n)``."""
    qualified = module.qualified(call.func)
    if qualified in _OF_DATA:
        return onward(call.args[0].value) if call.args else None
    if qualified in ("torch.arange", "numpy.arange"):
        # Hardly anybody counts in fractions up to a number that is not written down.
        return None if module.argument(call, "dtype").given else "torch.int64" in dtypes
    package, _, name = (qualified or "").rpartition(".")
    if package in ("torch", "torch.nn.functional"):
        return onward(call.args[0].value) if tensordtypes.keeps(name) and call.args else None
    if not isinstance(call.func, cst.Attribute) or module.value(call.func).kind is Kind.MODULE:
        return None
    name = call.func.attr.value
    if name == "integers":  # of a generator of NumPy
        return "torch.int64" in dtypes
    if name in METHOD_DTYPES:
        return METHOD_DTYPES[name] in dtypes
    return onward(call.func.value) if tensordtypes.keeps(name) else None


def _of_operation(module: Module, node: cst.BinaryOperation, dtypes: frozenset[str]) -> bool | None:
    """Whether no operand is promoted to floating-point numbers."""
    if isinstance(node.operator, cst.Divide):
        return False
    found: list[bool] = []
    for side in (node.left, node.right):
        value = module.value(side)
        if value.kind not in (Kind.NUMBER, Kind.BOOL):
            found.append(some(_holds(module, side, dtypes)))
        elif isinstance(value.constant, float):
            return False
    return bool(found) and all(found)

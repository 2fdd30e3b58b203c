"""Which blocks surely never make the host wait for the device."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.api.results import (
    FUNCTION_SYNCS,
    METHOD_SYNCS,
    READING_FILL,
    READING_SCALARS,
    SIZED_BY_SCALARS,
    TENSOR_ATTRIBUTES,
    TENSOR_METHODS,
)
from torchlint.semantics.module import Module
from torchlint.semantics.values import Kind

_HOST = frozenset(
    {Kind.NUMBER, Kind.BOOL, Kind.STRING, Kind.NONE, Kind.SHAPE, Kind.DTYPE, Kind.DEVICE, Kind.CLASS}
)
# What asks a tensor for nothing but its type and its sizes.
_HARMLESS = frozenset(f"builtins.{name}" for name in ("isinstance", "len", "type", "id", "hasattr", "super"))
# Methods that copy, beside those that are known to wait.
_COPYING = frozenset({"copy_", "cuda", "pin_memory", "type", "type_as", "new_tensor", "new"})
# Functions of torch that copy, or check a result on the host.
_WAITING = frozenset(
    {"tensor", "as_tensor", "asarray", "scalar_tensor", "from_numpy", "multinomial", "cholesky", "inverse"}
    | {"lu", "qr", "svd", "pinverse", "det", "logdet", "slogdet", "histc"}
)


def never_waits(module: Module, body: cst.CSTNode) -> bool:
    """Return whether nothing in a block can make the host wait for the device, whatever its tensors are."""
    return not any(_may_wait(module, node) for node in module.tree.descendants(body))


def _may_wait(module: Module, node: cst.CSTNode) -> bool:
    match node:
        case cst.Call():
            return not _is_known_to_go_on(module, node)
        case cst.Subscript():
            stored = isinstance(module.tree.parent(node), (cst.AssignTarget, cst.AugAssign, cst.AnnAssign))
            return stored or not all(_is_plain(module, element.slice) for element in node.slice)
        case cst.If(test=asked) | cst.While(test=asked) | cst.IfExp(test=asked) | cst.Assert(test=asked):
            return not _is_on_host(module, asked)
        case cst.BooleanOperation(left=asked) | cst.UnaryOperation(operator=cst.Not(), expression=asked):
            return not _is_on_host(module, asked)
        case cst.CompIf(test=asked) | cst.FormattedStringExpression(expression=asked):
            return not _is_on_host(module, asked)
        case cst.For(iter=items) | cst.CompFor(iter=items):
            counted = isinstance(items, cst.Call) and module.qualified(items.func) == "builtins.range"
            return not counted and module.value(items).kind not in (Kind.TENSOR, Kind.LIST, Kind.TUPLE)
        case cst.Comparison(comparisons=[first, *others]):
            asks = bool(others) or isinstance(first.operator, (cst.In, cst.NotIn))
            return asks and not _is_on_host(module, node)
        case cst.BinaryOperation(left=text, operator=cst.Modulo(), right=written):
            return module.value(text).kind is Kind.STRING and not _is_on_host(module, written)
        case cst.Attribute():
            return _may_be_property(module, node)
        case cst.Await() | cst.Yield():
            return True
    return False


def _may_be_property(module: Module, node: cst.Attribute) -> bool:
    """Return whether reading an attribute may run code: of what is not known,
    and no class of the file sets it.
    """
    name = node.attr.value
    if module.qualified(node) is not None or module.tree.is_called(node) or name in TENSOR_ATTRIBUTES:
        return False
    stored = isinstance(module.tree.parent(node), cst.AssignTarget)
    known = stored or bool(module.names.attributes.get(name))
    return not known and module.value(node).kind is Kind.UNKNOWN


def _is_on_host(module: Module, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Comparison):
        asks_identity = all(isinstance(c.operator, (cst.Is, cst.IsNot)) for c in node.comparisons)
        sides = (node.left, *(c.comparator for c in node.comparisons))
        return asks_identity or all(_is_on_host(module, side) for side in sides)
    return module.value(node).kind in _HOST


def _is_plain(module: Module, part: cst.BaseSlice) -> bool:
    if isinstance(part, cst.Index):
        return isinstance(part.value, cst.Ellipsis) or _is_on_host(module, part.value)
    assert isinstance(part, cst.Slice)
    bounds = (part.lower, part.upper, part.step)
    return all(bound is None or _is_on_host(module, bound) for bound in bounds)


def _is_known_to_go_on(module: Module, call: cst.Call) -> bool:
    qualified = module.qualified(call.func)
    if qualified is None:
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if name not in TENSOR_METHODS or name in METHOD_SYNCS or name in _COPYING:
            return False
        return name not in (READING_SCALARS | READING_FILL) or _takes_host_values(module, call)
    if qualified in _HARMLESS:
        return True
    package, _, name = qualified.rpartition(".")
    if package in ("builtins", "math"):
        return _takes_host_values(module, call)
    if package not in ("torch", "torch.nn.functional") or module.value(call).kind is not Kind.TENSOR:
        return False
    if qualified in FUNCTION_SYNCS or name in METHOD_SYNCS or name in _WAITING:
        return False
    reads = qualified in SIZED_BY_SCALARS or name in (READING_SCALARS | READING_FILL)
    return not reads or _takes_host_values(module, call, tensors=qualified not in SIZED_BY_SCALARS)


def _takes_host_values(module: Module, call: cst.Call, *, tensors: bool = False) -> bool:
    """Return whether the arguments of a call are values of the host;
    the first may be a tensor with ``tensors``.
    """
    given = [arg for arg in call.args if not (tensors and arg is call.args[0])]
    return all(not arg.star and _is_on_host(module, arg.value) for arg in given)

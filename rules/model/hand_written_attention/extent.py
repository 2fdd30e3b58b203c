"""Whether the matrix of scores is small whatever the length of the input: windows, and channels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.attributes import part_of
from torchlint.semantics.fixpoint import MANY
from torchlint.semantics.operations import operations_of
from torchlint.semantics.spellings import last_name

from .attention import Attention

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

# What leaves the dimensions of a tensor where they are.
_ELEMENTWISE = frozenset({"normalize", "contiguous", "to", "float", "half", "type_as", "softmax", "dropout"})
_LAST_GROUP = re.compile(r".*->.*[^\s)]\s*\((?P<axes>[^()]*)\)\s*")


def is_small(module: Module, found: Attention) -> bool:
    """Return whether the scores are of a fixed or small size, so that storing them costs little.

    A position bias that is looked up in a table of the module has the size of a window. Queries whose last
    dimension holds all positions attend from channel to channel.
    """
    biases = (step.other for step in found.inner if step.kind == "add" and step.other is not None)
    if any(_is_looked_up(module, bias) for bias in biases):
        return True
    if found.scores.name == "einsum" or not found.scores.operands:
        return False
    query = found.scores.operands[0]
    return _holds_positions(module, query) or _ends_in_length(module, query)


def biased_by_queries(module: Module, found: Attention) -> bool:
    """Return whether a term of the scores is computed from the queries, as relative positions are.

    It is as large as the scores, and the fused function has to be given it as a mask.
    """
    query = next(iter(found.scores.operands[found.scores.name == "einsum" :]), None)
    if query is None:
        return False
    own = set(_up_to_layer(module, query))
    terms = (step.other for step in found.inner if step.kind == "add" and step.other is not None)
    return any(node in own for term in terms for node in _up_to_layer(module, term))


def _up_to_layer(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what an expression is made of, up to the layer that computed it: masks are made of its input."""
    for part in _made_of(module, node):
        yield part
        if isinstance(part, cst.Call) and isinstance(part.func, cst.Attribute) and _is_own(part.func):
            if module.callee(part) is None:
                return


def _is_looked_up(module: Module, bias: cst.BaseExpression) -> bool:
    """Return whether a term is picked from a table by an index that the module keeps."""
    for node in _made_of(module, bias):
        if isinstance(node, cst.Subscript):
            parts = (node.slice[0], *module.tree.descendants(node.slice[0]))
            if any(isinstance(part, cst.Attribute) and _is_own(part) for part in parts):
                return True
    return False


def _is_own(node: cst.Attribute) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value == "self"


def _made_of(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what an expression is a view of or computed from, by way of names and first operands."""
    for _ in range(MANY):
        origin = operations_of(module).origin(node)
        if not isinstance(origin, cst.BaseExpression):
            return
        yield origin
        match origin:
            case cst.Call(func=cst.Attribute(value=cst.Name("self")), args=[cst.Arg(value=first), *_]):
                node = first
            case cst.Call(func=cst.Attribute(value=owner)) if module.qualified(origin.func) is None:
                node = owner
            case cst.Call(args=[cst.Arg(value=cst.SimpleString()), cst.Arg(value=first), *_]):
                node = first  # `einsum`
            case cst.Call(args=[cst.Arg(value=first), *_]):
                node = first
            case cst.BinaryOperation(left=left):
                node = left
            case _:
                return


def _holds_positions(module: Module, query: cst.BaseExpression) -> bool:
    """Return whether the last dimension of the queries is made of several, as in ``b head c (h w)``."""
    for node in _made_of(module, query):
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, (cst.Multiply, cst.Divide)):
                continue
            return False
        if not isinstance(node, cst.Call):
            return False
        name = last_name(node.func)
        if name == "rearrange":
            return _merges_axes(module, node)
        if name in ("view", "reshape"):
            return _is_area(module, node.args[-1].value)
        if name not in _ELEMENTWISE:
            return False
    return False


def _ends_in_length(module: Module, query: cst.BaseExpression) -> bool:
    """Return whether the axes of the queries were exchanged so that the last one is not
    that of the head's share.

    That is ``x.reshape(b, n, 3, heads, c // heads).permute(2, 0, 3, 4, 1)``, with ``n`` read from a shape.
    """
    axis, exchanged = -1, False
    for node in _unpacked_from(module, query):
        match node:
            case cst.Subscript() if _picks_first(node):
                continue
            case cst.Call(func=cst.Attribute(attr=cst.Name("permute" | "transpose" | "swapaxes" as name))):
                axes = [module.value(arg.value).constant for arg in node.args]
                order = [each for each in axes if isinstance(each, int)]
                if len(order) != len(axes) or not -len(order) <= axis < len(order):
                    return False
                if name == "permute":
                    axis = order[axis]
                elif (axis < 0) is all(each < 0 for each in order):
                    axis = order[1 - order.index(axis)] if axis in order else axis
                else:
                    return False
                exchanged = True
            case cst.Call(func=cst.Attribute(attr=cst.Name("view" | "reshape"))):
                return exchanged and _is_length(module, [arg.value for arg in node.args], axis)
            case cst.Call() if last_name(node.func) in (*_ELEMENTWISE, "unbind"):
                continue
            case _:
                return False
    return False


def _is_length(module: Module, sizes: list[cst.BaseExpression], axis: int) -> bool:
    """Return whether an axis has a size read from a shape, and another one a quotient:
    the share of a head.
    """
    size = sizes[axis] if -len(sizes) <= axis < len(sizes) else None
    if not isinstance(size, cst.Name):
        return False
    bindings = module.bindings(size)
    shape = bindings[0].value if len(bindings) == 1 and bindings[0].path else None
    unpacked = shape is not None and last_name(shape) == "shape"
    origins = (operations_of(module).origin(each) for each in sizes)
    return unpacked and any(
        isinstance(origin, cst.BinaryOperation) and isinstance(origin.operator, cst.FloorDivide)
        for origin in origins
    )


def _picks_first(node: cst.Subscript) -> bool:
    """Return whether a part is taken along the first axis: ``qkv[0]``."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Integer()))]:
            return True
    return False


def _unpacked_from(module: Module, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Yield what `_made_of` does, also through the tuples that names are unpacked from."""
    for _ in range(MANY):
        if isinstance(node, cst.Name):
            bindings = module.bindings(node)
            given = bindings[0].value if len(bindings) == 1 else None
            if given is None:
                return
            node = part_of(given, bindings[0].path) or given
            continue
        yield node
        match node:
            case cst.Call(func=cst.Attribute(value=owner)) if module.qualified(node.func) is None:
                node = owner
            case cst.Call(args=[cst.Arg(value=first), *_]):
                node = first
            case cst.Subscript(value=whole):
                node = whole
            case _:
                return


def _merges_axes(module: Module, call: cst.Call) -> bool:
    """Return whether ``rearrange`` makes one last dimension of dimensions that its input has one by one."""
    pattern = module.value(call.args[1].value).constant if len(call.args) > 1 else None
    match = _LAST_GROUP.fullmatch(pattern) if isinstance(pattern, str) else None
    if match is None or not isinstance(pattern, str):
        return False
    given = re.sub(r"\([^()]*\)", "", pattern.partition("->")[0]).split()
    axes = match["axes"].split()
    return len(axes) > 1 and all(axis in given for axis in axes)


def _is_area(module: Module, size: cst.BaseExpression) -> bool:
    """Return whether a size is the product of two that are unpacked from one shape: ``h * w``."""
    match operations_of(module).origin(size):
        case cst.BinaryOperation(left=cst.Name() as left, operator=cst.Multiply(), right=cst.Name() as right):
            pass
        case _:
            return False
    targets = []
    for name in (left, right):
        bindings = module.bindings(name)
        if len(bindings) != 1:
            return False
        targets.append(module.tree.enclosing(bindings[0].node, cst.Tuple))
    return targets[0] is not None and targets[0] is targets[1]

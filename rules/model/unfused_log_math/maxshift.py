"""The largest term that is taken out of a sum of exponentials, and added again behind the logarithm.

``m + log(sum(exp(x - m)))`` with ``m`` the maximum of ``x`` keeps ``exp`` from overflowing. ``logsumexp``
does that itself, so that all of it is ``logsumexp(x)``; with one half left it would be done twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.operations import operations_of

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_LARGEST = frozenset({"max", "amax"})
# What changes nothing of the maximum but its shape, or that it has a gradient.
_SAME_NUMBERS = frozenset(
    {"detach", "unsqueeze", "squeeze", "view", "reshape", "expand", "expand_as", "clone"}
)


@dataclass(frozen=True, slots=True)
class Shift:
    """A shift by hand.

    Attributes:
        x: what is shifted.
        whole: the sum that adds the shift again; None if that was not found, or is not the same for certain.
        names: the names of the maximum that are read for both.
    """

    x: cst.BaseExpression
    whole: cst.BaseExpression | None
    names: tuple[cst.Name, ...]


def shifted(
    module: Module,
    logarithm: cst.BaseExpression,
    exponent: cst.BaseExpression,
    dim: cst.BaseExpression,
    keepdim: cst.BaseExpression | None,
) -> Shift | None:
    """Return the shift of what is summed up, in ``exponent``;
    None if nothing is taken away that is added again.
    """
    operations = operations_of(module)
    difference = operations.behind(exponent)
    if difference is None or difference.name != "sub" or difference.options or difference.in_place:
        return None
    x, taken = difference.operands
    largest = _Maximum.of(module, taken)
    ours = largest is not None and operations.same(largest.x, x)
    added, whole = _added(module, logarithm)
    again = added is not None and bool(_variables(module, added) & _variables(module, taken))
    if not ours and not again:
        return None
    if largest is None or added is None or not ours or difference.node is not exponent:
        return Shift(x, None, ())
    kept = isinstance(keepdim, cst.Name) and keepdim.value == "True"
    plain = keepdim is None or (isinstance(keepdim, cst.Name) and keepdim.value == "False")
    over = operations.integer(dim)
    exact = (
        over is not None
        and largest.dim == over
        and isinstance(taken, cst.Name)
        and largest.steps <= {"detach"}
    )
    if kept and exact and largest.keepdim and operations.same(added, taken):
        assert isinstance(taken, cst.Name)
        return Shift(x, whole, tuple(name for name in (taken, added) if isinstance(name, cst.Name)))
    if plain and over is not None and largest.dim == over:
        if largest.keepdim and exact and _reshaped(module, added, "squeeze", over, taken):
            return Shift(x, whole, _read(module, taken, added))
        if (
            not largest.keepdim
            and isinstance(added, cst.Name)
            and _reshaped(module, taken, "unsqueeze", over, added)
        ):
            return Shift(x, whole, _read(module, taken, added))
    return Shift(x, None, ())


def _added(
    module: Module, logarithm: cst.BaseExpression
) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """Return what is added to the logarithm right where it stands, and the sum."""
    parent = module.tree.parent(logarithm)
    if isinstance(parent, cst.BinaryOperation) and isinstance(parent.operator, cst.Add):
        return parent.left if parent.right is logarithm else parent.right, parent
    return None, None


def _variables(module: Module, node: cst.BaseExpression) -> set[str]:
    return {name.value for name in operations_of(module).read_names(node) if module.bindings(name)}


def _read(module: Module, *nodes: cst.BaseExpression) -> tuple[cst.Name, ...]:
    return tuple(name for node in nodes for name in operations_of(module).read_names(node))


def _reshaped(
    module: Module, node: cst.BaseExpression, method: str, dim: int, inner: cst.BaseExpression
) -> bool:
    """Return whether a node is ``inner.squeeze(dim)``, or ``inner.unsqueeze(dim)``."""
    operation = operations_of(module).of(node)
    return (
        operation is not None
        and operation.name == method
        and operations_of(module).integer(operation.options.get("dim")) == dim
        and operations_of(module).same(operation.operands[0], inner)
    )


@dataclass(frozen=True, slots=True)
class _Maximum:
    """``x.max(dim, keepdim)[0]``, ``x.amax(dim)``, and what was made of it.

    Attributes:
        x: what it is the maximum of.
        dim: over which dimension; None if that is not one, or not known.
        keepdim: whether the dimension is kept.
        steps: what changes its shape or its gradient.
    """

    x: cst.BaseExpression
    dim: int | None
    keepdim: bool
    steps: frozenset[str]

    @staticmethod
    def of(module: Module, node: cst.CSTNode) -> _Maximum | None:
        steps: set[str] = set()
        seen: set[cst.CSTNode] = set()
        while node not in seen:
            seen.add(node)
            if isinstance(node, cst.Name):
                bindings = module.bindings(node)
                if len(bindings) != 1 or bindings[0].value is None:
                    return None
                if bindings[0].path not in ((), (0,)):
                    return None
                node = bindings[0].value
            match node:
                case cst.Subscript() | cst.Attribute(attr=cst.Name("values")):
                    node = node.value
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if (
                    name in _SAME_NUMBERS and module.qualified(node.func) is None
                ):
                    steps.add(name)
                    node = owner
                case cst.Call():
                    operation = operations_of(module).of(node)
                    if operation is None or operation.name not in _LARGEST:
                        return None
                    given = dict(operation.options)
                    rest = operation.operands[1:]
                    dim = given.get("dim", rest[0] if rest else None)
                    kept = given.get("keepdim", rest[1] if len(rest) > 1 else None)
                    return _Maximum(
                        operation.operands[0],
                        operations_of(module).integer(dim),
                        isinstance(kept, cst.Name) and kept.value == "True",
                        frozenset(steps),
                    )
                case cst.Name():
                    continue
                case _:
                    return None
        return None

"""Which parts of the tuple that a call returns anything reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import ScopeKind
from torchlint.semantics.remembered import solved

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_ELSEWHERE = -1
"""Stands for the places to which the tuple itself goes, beside the indices of its parts."""


def used_parts(module: Module, call: cst.BaseExpression, length: int) -> frozenset[int] | None:
    """The indices of the parts that something reads of a tuple of ``length`` parts.

    ``out, _ = f(x)``, ``f(x)[0]`` and ``both = f(x)`` with ``both[0]`` behind it are understood; None where
    the tuple itself goes somewhere.
    """
    found = _parts(module, call, length)
    return None if _ELSEWHERE in found else found


@solved(frozenset[int]())
def _parts(module: Module, node: cst.BaseExpression, length: int) -> frozenset[int]:
    """The indices of the parts that are read, and that of elsewhere."""
    parent = module.tree.parent(node)
    match parent:
        case cst.Expr():
            return frozenset()
        case cst.Subscript(slice=[cst.SubscriptElement(slice=taken)]) if parent.value is node:
            read = _taken(module, taken, length)
            return frozenset({_ELSEWHERE}) if read is None else read
        case cst.Assign():
            found = (_read_later(module, target.target, length) for target in parent.targets)
            return frozenset().union(*found)
        case _:
            return frozenset({_ELSEWHERE})


def _taken(module: Module, taken: cst.BaseSlice, length: int) -> frozenset[int] | None:
    """The parts that an index or a slice takes."""
    if isinstance(taken, cst.Index):
        constant = module.value(taken.value).constant
        if type(constant) is not int or not -length <= constant < length:
            return None
        return frozenset({range(length)[constant]})
    if not isinstance(taken, cst.Slice):
        return None
    constants: list[int | None] = []
    for bound in (taken.lower, taken.upper, taken.step):
        constant = None if bound is None else module.value(bound).constant
        if constant is not None and type(constant) is not int:
            return None
        constants.append(constant)
    lower, upper, step = constants
    return None if step == 0 else frozenset(range(length)[lower:upper:step])


def _read_later(module: Module, target: cst.BaseExpression, length: int) -> frozenset[int]:
    """The parts that are read of a tuple that is assigned to a target."""
    match target:
        case cst.Tuple() | cst.List():
            plain = all(isinstance(element, cst.Element) for element in target.elements)
            if not plain or len(target.elements) != length:
                return frozenset({_ELSEWHERE})
            return frozenset(
                index for index, element in enumerate(target.elements) if _is_read(module, element.value)
            )
        case cst.Name():
            binding = module.binding_of(target)
            if binding is None or binding.scope.kind is not ScopeKind.FUNCTION:
                return frozenset({_ELSEWHERE})
            return frozenset().union(*(_parts(module, use, length) for use in module.uses(binding)))
        case _:
            return frozenset({_ELSEWHERE})


def _is_read(module: Module, target: cst.BaseExpression) -> bool:
    """Whether something may read what is assigned to a target."""
    binding = module.binding_of(target) if isinstance(target, cst.Name) else None
    if binding is None:
        return True
    if binding.scope.kind is not ScopeKind.FUNCTION and not binding.name.startswith("_"):
        # Other files may import it.
        return True
    return bool(module.uses(binding))

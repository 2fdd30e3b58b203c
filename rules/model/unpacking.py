"""Which parts of the tuple that a call returns anything reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import ScopeKind
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts
from torchlint.semantics.usage import uses_by_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_ELSEWHERE = -1
"""Stands for the places to which the tuple itself goes, beside the indices of its parts."""


def used_parts(module: Module, call: cst.BaseExpression, length: int) -> frozenset[int] | None:
    """Return the indices of the parts that something reads of a tuple of ``length`` parts.

    ``out, _ = f(x)``, ``f(x)[0]`` and ``both = f(x)`` with ``both[0]`` behind it are understood; None where
    the tuple itself goes somewhere.
    """
    found = verdicts(module, call, _Parts(length))
    return None if _ELSEWHERE in found else found


@dataclass(frozen=True, slots=True)
class _Parts:
    """Judges which parts of a tuple are read, or that it goes elsewhere."""

    length: int

    def __call__(self, module: Module, use: Use) -> Verdict[int]:
        match use.kind, use.by:
            case UseKind.DISCARDED, _:
                return ()
            case UseKind.ITEM, cst.Subscript(slice=[cst.SubscriptElement(slice=taken)]):
                read = _taken(module, taken, self.length)
                return _ELSEWHERE if read is None else tuple(read)
            case UseKind.UNPACKED, cst.Tuple(elements=targets) | cst.List(elements=targets):
                plain = all(isinstance(target, cst.Element) for target in targets)
                if plain and len(targets) == self.length:
                    return tuple(i for i, target in enumerate(targets) if _is_read(module, target.value))
            case UseKind.ASSIGNED, name:
                binding = module.binding_of(name)
                if binding is not None and binding.scope.kind is ScopeKind.FUNCTION:
                    return ONWARD
        return _ELSEWHERE


def _taken(module: Module, taken: cst.BaseSlice, length: int) -> frozenset[int] | None:
    """Return the parts that an index or a slice takes."""
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


def _is_read(module: Module, target: cst.BaseExpression) -> bool:
    """Return whether something may read what is assigned to a target."""
    binding = module.binding_of(target) if isinstance(target, cst.Name) else None
    if binding is None:
        return True
    if binding.scope.kind is not ScopeKind.FUNCTION and not binding.name.startswith("_"):
        # Other files may import it.
        return True
    return bool(module.uses(binding)) or uses_by_name(module, binding)

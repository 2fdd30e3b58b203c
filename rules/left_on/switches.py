"""Whether the user of a program decides that a line runs, or whoever reads it finds it running always.

Aids for debugging are kept behind an option (``if args.debug:``), in functions that say what they are for, or
are switched off again; those that stand open are forgotten ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.remembered import remembered
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_DEBUGGING = (Role.DEBUGGING, Role.PROFILING, Role.MEASUREMENT, Role.ANOMALY)
_HOPS = 3
"""How many callers up a switch is looked for."""


@remembered
def optional(module: Module, node: cst.CSTNode, hops: int = _HOPS) -> bool:
    """Whether a node runs only if an option, the state of the program or a failure asks for it.

    Conditions that are about the machine (``torch.cuda.is_available()``) or about being the program that was
    started are no options. A function that is named after debugging counts as asked for, and so does one that
    is only called where it is optional.
    """
    if next(module.flow.alternatives(node), None) is not None:
        return True
    for branch in module.flow.branches(node):
        if not isinstance(branch.construct, cst.If) or not _always(module, branch.test):
            return True
    function = module.function(node)
    if isinstance(function, cst.FunctionDef):
        return _called_optionally(module, function, hops)
    return function is not None


def _called_optionally(module: Module, function: cst.FunctionDef, hops: int) -> bool:
    if has(function.name.value, *_DEBUGGING):
        return True
    callers = module.callers(function) if hops else []
    return bool(callers) and all(optional(module, call, hops - 1) for call in callers)


def _always(module: Module, test: cst.BaseExpression) -> bool:
    """Whether a condition says something about the machine or how the file was started, or is constant."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return _always(module, test.left) and _always(module, test.right)
    if isinstance(test, cst.Call):
        return last_name(test.func) in ("is_available", "is_built")
    if isinstance(test, cst.Comparison):
        sides = (test.left, *(target.comparator for target in test.comparisons))
        return any(last_name(side) in ("__name__", "device", "type", "device_count") for side in sides)
    return isinstance(test, cst.Name) and test.value == "True"

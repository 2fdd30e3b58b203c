"""Whether the user of a program decides that a line runs, or whoever reads it finds it running always.

Aids for debugging are kept behind an option (``if args.debug:``), in functions that say what they are for, or
are switched off again; those that stand open are forgotten ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.flow.guards import implied
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.names import BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.spellings import last_name

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_DEBUGGING = (Role.DEBUGGING, Role.PROFILING, Role.MEASUREMENT, Role.ANOMALY)


@solved(nothing=True)
def optional(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node runs only if an option, the state of the program or a failure asks for it.

    Conditions that are about the machine (``torch.cuda.is_available()``), about being the program that was
    started, or about whose turn it is (``for phase in ("train", "val")``) are no options. A function that is
    named after debugging counts as asked for, and so does one that is only called where it is optional.
    """
    if next(module.flow.alternatives(node), None) is not None:
        return True
    for branch in module.flow.branches(node):
        if not isinstance(branch.construct, cst.If) or not _always(module, branch.test):
            return True
    function = module.function(node)
    if not isinstance(function, cst.FunctionDef) or has(function.name.value, *_DEBUGGING):
        return function is not None
    callers = module.callers(function)
    return bool(callers) and all(optional(module, call) for call in callers)


def _always(module: Module, test: cst.BaseExpression) -> bool:
    """Return whether a condition says something about the machine or how the file was started,
    or is constant.
    """
    return all(guard.holds and _is_general(module, guard.test) for guard in implied(module, test, True))


def _is_general(module: Module, test: cst.BaseExpression) -> bool:
    match test:
        case cst.Call(func=func):
            return last_name(func) in ("is_available", "is_built")
        case cst.Comparison(left=left, comparisons=targets):
            sides = (left, *(target.comparator for target in targets))
            general = any(last_name(side) in ("__name__", "device", "type", "device_count") for side in sides)
            return general or (isinstance(left, cst.Name) and _takes_turns(module, left))
        case _:
            return isinstance(test, cst.Name) and test.value == "True"


def _takes_turns(module: Module, name: cst.Name) -> bool:
    """Return whether a variable goes over values that are written out: ``for phase in ("train", "val")``."""
    bindings = module.bindings(name)
    return bool(bindings) and all(
        binding.kind is BindingKind.LOOP and isinstance(binding.value, (cst.List, cst.Tuple))
        for binding in bindings
    )

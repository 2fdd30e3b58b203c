"""Aids for debugging that cost time: which of them a line switches on, and whether that is how it stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.contexts import is_test
from torchlint.semantics.environmentvariables import Setting, found_before, initialises_cuda, settings
from torchlint.semantics.lexicon import Role, has
from torchlint.semantics.spellings import given_as, last_name
from torchlint.semantics.values import MISSING

from ..switches import optional
from .aids import FUNCTIONS, VARIABLES, Aid

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


@dataclass(frozen=True, slots=True)
class SwitchedOn:
    """An aid that a line switches on, and what it is called."""

    name: str
    aid: Aid
    alone: bool
    """Whether the line does nothing else."""


def aids_left_on(module: Module, node: cst.Assign | cst.Call) -> Iterator[SwitchedOn]:
    """Yield the aids for debugging that a statement or call switches on for good,
    with nobody asking for them.
    """
    for found in _switched_on(module, node):
        if not is_test(module) and not optional(module, node) and not _in_function_asked_for(module, node):
            yield found


def _switched_on(module: Module, node: cst.Assign | cst.Call) -> Iterator[SwitchedOn]:
    if isinstance(node, cst.Call):
        name = module.qualified(node.func)
        if name is not None and name in FUNCTIONS:
            parameter, aid = FUNCTIONS[name]
            given = given_as(node, parameter, 0)
            value = module.value(given).constant if given is not None else MISSING
            if value is not MISSING and aid.switched_on(value) and not _called_again(module, node, name):
                yield SwitchedOn(name.rpartition(".")[2], aid, alone=True)
            return
    for setting in settings(module, node):
        if (
            setting.variable not in VARIABLES
            or not _turns_on(module, setting)
            or _switched_off(module, setting.variable)
        ):
            continue
        aid = VARIABLES[setting.variable]
        if aid.by_driver and found_before(module, node, initialises_cuda) is not None:
            continue  # nobody reads it any more
        alone = last_name(node.func) != "update" if isinstance(node, cst.Call) else len(node.targets) == 1
        yield SwitchedOn(setting.variable, aid, alone)


def _turns_on(module: Module, setting: Setting) -> bool:
    if setting.text is not None:
        return VARIABLES[setting.variable].switched_on(setting.text)
    constant = module.value(setting.value).constant if setting.value is not None else MISSING
    return constant is not MISSING and VARIABLES[setting.variable].switched_on(constant)


def _called_again(module: Module, call: cst.Call, name: str) -> bool:
    """Return whether another call of the file sets the mode, to put it back."""
    return any(
        other is not call and module.qualified(other.func) == name for other in module.tree.nodes(cst.Call)
    )


def _switched_off(module: Module, variable: str) -> bool:
    """Return whether the file removes the variable elsewhere, or sets it to what may not switch it on."""
    tree = module.tree
    if tree.text.count(variable) == 1:
        return False
    for string in tree.nodes(cst.SimpleString):
        if string.evaluated_value != variable:
            continue
        for parent in tree.ancestors(string):
            if isinstance(parent, cst.Del) or (
                isinstance(parent, cst.Call)
                and last_name(parent.func) in ("pop", "unsetenv", "patch", "dict")
            ):
                return True
            if isinstance(parent, (cst.Assign, cst.Call)):
                others = settings(module, parent)
                if any(o.variable == variable and not _turns_on(module, o) for o in others):
                    return True
            if isinstance(parent, cst.BaseStatement):
                break
    return False


def _in_function_asked_for(module: Module, node: cst.CSTNode) -> bool:
    """Return whether it is what a function promises: whoever calls it asks for it, and for what it costs."""
    function = module.function(node)
    return isinstance(function, cst.FunctionDef) and has(function.name.value, Role.DETERMINISM)

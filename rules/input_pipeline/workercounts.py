"""How many worker processes a loader has unless a run asks for another number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.configured import configured
from torchlint.semantics.identifiers import setting_default
from torchlint.semantics.loaders import PROCESSOR_COUNTS, Loaders
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import solved
from torchlint.semantics.wholeprogram import calls_shown, users_shown

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_USUAL_PROCESSORS = 8


@dataclass(frozen=True, slots=True)
class Workers:
    """The worker processes of a loader: ``count`` unless told otherwise, by the expression ``code``.

    ``element`` says so in a dictionary that the loader is given as ``**options``.
    """

    count: int
    code: cst.BaseExpression | None = None
    element: cst.DictElement | None = None


def usual_workers(module: Module, call: cst.Call) -> Workers | None:
    """Return how many workers a loader has,
    where that is certain or where somebody has to ask for another number.

    The latter are options of the command line and parameters: their default is what a run has.
    """
    certain = Loaders.of(module).workers(call)
    if certain is not None:
        return Workers(certain)
    module = module.home(call)
    node = module.argument(call, "num_workers").node
    setting = configured(module, call, "num_workers")
    if setting is not None:
        usual = setting.value
        return Workers(usual, node) if isinstance(usual, int) and not isinstance(usual, bool) else None
    if node is None:
        return _workers_of_dictionary(module, call)
    count = _usual_count(module, node)
    return Workers(count, node) if count is not None else None


@solved(True)
def left_to_default(module: Module, node: cst.BaseExpression | None) -> bool:
    """Return whether a number of workers is 0 unless somebody asks for another:
    that of an option with this default.

    Or of a parameter that all calls, which have to be in sight, fill with one, or leave alone.
    """
    if isinstance(node, cst.Attribute):
        default = setting_default(module, node)
        return default is not None and _is_zero(module, default)
    bindings = module.bindings(node) if node is not None else ()
    if len(bindings) != 1 or not isinstance(param := bindings[0].node, cst.Param):
        return False
    callers = module.callers(bindings[0].scope.node) if _shows_calls(module, bindings[0]) else ()
    passed = [module.argument(caller, bindings[0].name) for caller in callers]
    return bool(passed) and all(
        param.default is not None and _is_zero(module, param.default)
        if argument.absent
        else left_to_default(module, argument.node)
        for argument in passed
    )


def _shows_calls(module: Module, parameter: Binding) -> bool:
    """Return whether the program shows all calls of the function that has a parameter, if only one file."""
    function = parameter.scope.node
    if not isinstance(function, cst.FunctionDef):
        return False
    if module.link is None:
        return True
    owner = module.classes.owner(function)
    if owner is not None and function.name.value == "__init__":
        return users_shown(module, owner)
    return calls_shown(module, function)


def _is_zero(module: Module, node: cst.BaseExpression) -> bool:
    constant = module.value(node).constant
    return constant == 0 and isinstance(constant, int) and not isinstance(constant, bool)


@solved(None)
def _usual_count(module: Module, node: cst.BaseExpression) -> int | None:
    """Return the number that an expression gives on a usual machine, unless somebody asks for another.

    An option of the command line or a parameter has its default, and ``min(8, os.cpu_count())`` is 8.
    """
    known = module.value(node).constant
    if isinstance(known, int) and not isinstance(known, bool):
        return known
    default: cst.BaseExpression | None = None
    match node:
        case cst.Call():
            return _called_count(module, node)
        case cst.IfExp():
            found = (_usual_count(module, node.body), _usual_count(module, node.orelse))
            return None if None in found else max(filter(None, found), default=0)
        case cst.BooleanOperation(operator=cst.Or()):
            return _usual_count(module, node.left)
        case cst.BinaryOperation(operator=cst.FloorDivide()):
            whole, parts = _usual_count(module, node.left), _usual_count(module, node.right)
            return whole // parts if whole is not None and parts else None
        case cst.Attribute():
            default = setting_default(module, node)
        case cst.Name():
            bindings = module.bindings(node) if node is not None else ()
            if len(bindings) == 1 and isinstance(bindings[0].node, cst.Param):
                if module.link is not None and module.callers(bindings[0].scope.node):
                    return _passed_count(module, bindings[0])
                default = bindings[0].node.default
            else:
                made = module.names.assignment(node)
                return (
                    _usual_count(module, made.value) if made is not None and made.value is not None else None
                )
    count = module.value(default).constant if default is not None else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _called_count(module: Module, call: cst.Call) -> int | None:
    """Return how many workers a call asks for:
    ``int(workers)``, ``os.cpu_count()``, ``min(8, os.cpu_count())``.
    """
    name = module.qualified(call.func)
    if name in PROCESSOR_COUNTS:
        return _USUAL_PROCESSORS
    given = [argument.value for argument in call.args]
    if name == "builtins.int" and len(given) == 1:
        return _usual_count(module, given[0])
    if name != "builtins.min":
        return None
    if len(given) == 1 and isinstance(given[0], (cst.List, cst.Tuple)):
        given = [element.value for element in given[0].elements]
    counts = [_usual_count(module, each) for each in given]
    known = [count for count in counts if count is not None]
    # Whoever asks for as many as there are processors has a batch of several samples, too.
    bounded = any(
        module.qualified(each.func) in PROCESSOR_COUNTS for each in given if isinstance(each, cst.Call)
    )
    return min(known) if known and (bounded or len(known) == len(counts)) else None


def _passed_count(module: Module, parameter: Binding) -> int | None:
    """Return the least number that the calls in a program pass for a parameter;
    None if that of one is open.
    """
    found: list[int] = []
    for caller in module.callers(parameter.scope.node):
        assert isinstance(parameter.node, cst.Param)
        argument = module.argument(caller, parameter.name)
        given = parameter.node.default if argument.absent else argument.node
        count: object = module.value(given).constant if given is not None else None
        if not isinstance(count, int) and given is not None:
            count = _usual_count(module, given)
        if not isinstance(count, int) or isinstance(count, bool):
            return None
        found.append(count)
    return min(found, default=None)


def _workers_of_dictionary(module: Module, call: cst.Call) -> Workers | None:
    """Return the workers of ``**options`` after ``options = {"num_workers": 4} if cuda else {}``."""
    for argument in call.args:
        if argument.star != "**":
            continue
        for element in _elements(module, argument.value):
            count = module.value(element.value).constant
            if module.value(element.key).constant == "num_workers" and isinstance(count, int) and count > 0:
                return Workers(count, element=element)
    return None


@solved(())
def _elements(module: Module, node: cst.BaseExpression) -> tuple[cst.DictElement, ...]:
    """Return what is in a dictionary that is written out, in one branch or in another."""
    found: list[cst.DictElement] = []
    match node:
        case cst.Dict():
            found += (element for element in node.elements if isinstance(element, cst.DictElement))
        case cst.IfExp():
            found += (*_elements(module, node.body), *_elements(module, node.orelse))
        case cst.Name():
            for binding in module.bindings(node):
                if binding.kind is BindingKind.ASSIGN and isinstance(binding.value, (cst.Dict, cst.IfExp)):
                    found += _elements(module, binding.value)
        case _:
            pass
    return tuple(dict.fromkeys(found))

"""Values that code of other files computed from device tensors.

What an imported ``accuracy(output, target)`` returns is not shown. If the program then asks it for its
``item()``, it is a tensor or a number of NumPy; and a function that was given tensors on the device, and
no copies on the host, has seldom made NumPy's of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.evidence import accelerated
from torchlint.semantics.names import BindingKind
from torchlint.semantics.sources import Item, Path, Source, Through, onward, put_into, some, traced
from torchlint.semantics.values import MISSING, Device, Graph, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding

_OPEN = frozenset({Kind.UNKNOWN, Kind.LIST, Kind.TUPLE, Kind.DICT, Kind.ITERATOR})
# What owns functions of other files, as far as this one shows.
_FOREIGN = frozenset({Kind.UNKNOWN, Kind.NAMESPACE, Kind.OBJECT, Kind.MODULE})
_HOST_PACKAGES = frozenset({"numpy", "math", "sklearn", "scipy", "pandas", "statistics", "random"})
_PASSING_BUILTINS = frozenset(
    {"sum", "max", "min", "next", "iter", "list", "tuple", "dict", "zip", "enumerate"}
)
# What is asked of a structure or a tensor and gives parts of it, or others like it.
_PASSING_METHODS = frozenset(
    {"values", "items", "get", "pop", "mean", "sum", "max", "min", "abs", "norm", "median", "detach", "clone"}
    | {"squeeze", "view", "reshape", "flatten", "float", "double", "half", "long", "int", "argmax", "argmin"}
)
_DISPLAYS = (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.GeneratorExp, cst.DictComp)


def leads_outside(module: Module, call: cst.Call) -> bool:
    """Return whether a call runs a function of another file that is not judged together with this one.

    Such a file is part of too many programs: what it does with its arguments is not looked at.
    """
    home, callee = module.home(call), module.callee(call)
    if home.link is None or callee is None or not home.tree.is_elsewhere(callee):
        return False
    return not home.link.is_companion(home.link.home(callee), home)


def computed_elsewhere(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether a function that was given device tensors computes an unknown value."""
    if not accelerated(module) or module.value(node).kind is not Kind.UNKNOWN:
        return False
    return some(_is_computed(module, node))


def runs_given_model(module: Module, call: cst.Call) -> bool:
    """Return whether the result is that of an unknown parameter called with a device tensor."""
    if not isinstance(call.func, cst.Name) or module.value(call.func).kind is not Kind.UNKNOWN:
        return False
    bindings = module.names.bindings(call.func)
    if not bindings or any(binding.kind is not BindingKind.PARAMETER for binding in bindings):
        return False
    if isinstance(module.tree.parent(call), (cst.Expr, cst.Await)):
        return False
    given = (module.value(argument.value) for argument in call.args)
    return any(value.kind is Kind.TENSOR and value.device is Device.ACCELERATOR for value in given)


def hands_over_model(module: Module, call: cst.Call) -> bool:
    """Return whether a function of another file is given a module and device tensors, for what it returns.

    That is ``outputs = forward_of(model, images)``.
    """
    if isinstance(module.tree.parent(call), (cst.Expr, cst.Await)) or not isinstance(call.func, cst.Name):
        return False
    if module.value(call.func).kind is not Kind.UNKNOWN:
        return False
    given = [argument.value for argument in call.args]
    values = (module.value(node) for node in given)
    if not any(value.kind is Kind.TENSOR and value.device is Device.ACCELERATOR for value in values):
        return False
    return any(_belongs_to_module(module, node) for node in given)


def _belongs_to_module(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether an expression is a module, or an attribute of one of which nothing is known."""
    while isinstance(node, cst.Attribute) and module.value(node).kind is Kind.UNKNOWN:
        node = node.value
    return module.value(node).kind is Kind.MODULE


@traced(Through.ITEMS | Through.OPERANDS | Through.PARAMETERS)
def _is_computed(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    if path:
        return None if isinstance(node, _DISPLAYS) else onward(node)
    value = module.value(node)
    if value.kind is Kind.TENSOR:
        return value.device is not Device.CPU
    if value.kind is Kind.BATCH:
        # What a model returns is where the model is; of other batches that has to be shown.
        computed = value.graph is Graph.ATTACHED and value.device is not Device.CPU
        return computed or value.device is Device.ACCELERATOR
    if value.kind is Kind.UNKNOWN and value.device is Device.ACCELERATOR:
        return True  # moved there, whatever it is
    if value.kind not in _OPEN:
        return False
    match node:
        case cst.Name():
            return _given(module, node)
        case cst.Call():
            return _called(module, node)
        case cst.Subscript(value=owner) | cst.Attribute(value=owner):
            return onward(owner)
        case _:
            return onward(node, path=(Item.ANY,)) if isinstance(node, _DISPLAYS) else None


def _given(module: Module, name: cst.Name) -> list[Source]:
    """Return what a variable is given, and what is put into it later on: ``losses["total"] = loss``."""
    bindings = module.bindings(name)
    if any(_on_host(module, binding) for binding in bindings):
        return []
    stored = [source for b in bindings for use in module.uses(b) for source in put_into(module, use)]
    return [*map(Source, bindings), *stored]


def _on_host(module: Module, binding: Binding) -> bool:
    """Return whether one definition of a variable gives it what has left the device or never was there."""
    if binding.kind is not BindingKind.ASSIGN or binding.value is None or binding.path:
        return False
    value = module.value(binding.value)
    if value.kind is Kind.NUMBER:
        return value.constant is MISSING
    return value.kind is Kind.NDARRAY or (value.kind is Kind.TENSOR and value.device is Device.CPU)


def _called(module: Module, call: cst.Call) -> list[Source]:
    """Return what a call makes its result of: what it is given, or what it is a method of."""
    given = [arg.value for arg in call.args]
    package, _, name = (module.qualified(call.func) or "").rpartition(".")
    if package == "builtins":
        return onward(*given) if name in _PASSING_BUILTINS else []
    callee = module.callee(call)
    here = callee is not None and not module.tree.is_elsewhere(callee)
    if here or package.partition(".")[0] in _HOST_PACKAGES:
        return []
    passed: list[Source] = []
    if isinstance(call.func, cst.Attribute):
        owner, name = call.func.value, call.func.attr.value
        passed = onward(owner) if name in _PASSING_METHODS else []
        if module.value(owner).kind not in _FOREIGN:
            return passed
    elif isinstance(call.func, cst.Name):
        name = call.func.value
    # What is called after a class makes an object, which keeps what it was given.
    if not name or name.lstrip("_")[:1].isupper() or module.value(call.func).kind is Kind.CLASS:
        return passed
    return passed if any(_left_device(module, node) for node in given) else [*passed, *onward(*given)]


def _left_device(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    return value.kind is Kind.NDARRAY or (value.kind is Kind.TENSOR and value.device is Device.CPU)

"""Values that code of other files computed from device tensors.

What an imported ``accuracy(output, target)`` returns is not shown. If the program then asks it for its
``item()``, it is a tensor or a number of NumPy; and a function that was given tensors on the device, and
no copies on the host, has seldom made NumPy's of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from torchlint.semantics.evidence import accelerated
from torchlint.semantics.names import BindingKind
from torchlint.semantics.values import MISSING, Device, Graph, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.names import Binding

Seen: TypeAlias = "set[cst.BaseExpression]"

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
_BOUND = frozenset(
    {BindingKind.ASSIGN, BindingKind.LOOP, BindingKind.COMPREHENSION, BindingKind.WALRUS, BindingKind.AUGMENT}
)


def computed_elsewhere(module: Module, node: cst.BaseExpression) -> bool:
    """Whether a value that the file leaves open comes from a function that was given device tensors."""
    return accelerated(module) and module.value(node).kind is Kind.UNKNOWN and _found(module, node, set())


def runs_given_model(module: Module, call: cst.Call) -> bool:
    """Whether a parameter of which nothing is known is called with a device tensor, for what it returns."""
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
    """Whether a function of another file is given a module and device tensors, for what it returns.

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
    """Whether an expression is a module, or an attribute of one of which nothing is known."""
    while isinstance(node, cst.Attribute) and module.value(node).kind is Kind.UNKNOWN:
        node = node.value
    return module.value(node).kind is Kind.MODULE


def _found(module: Module, node: cst.BaseExpression, seen: Seen) -> bool:
    value = module.value(node)
    if value.kind is Kind.TENSOR:
        return value.device is not Device.CPU
    if value.kind is Kind.BATCH:
        # What a model returns is where the model is; of other batches that has to be shown.
        computed = value.graph is Graph.ATTACHED and value.device is not Device.CPU
        return computed or value.device is Device.ACCELERATOR
    if value.kind is Kind.UNKNOWN and value.device is Device.ACCELERATOR:
        return True  # moved there, whatever it is
    if node in seen or value.kind not in _OPEN:
        return False
    seen.add(node)
    match node:
        case cst.Name():
            return _named(module, node, seen)
        case cst.Call():
            return _called(module, node, seen)
        case cst.Subscript() | cst.Attribute():
            return _found(module, node.value, seen)
        case cst.IfExp():
            return _any(module, (node.body, node.orelse), seen)
        case cst.BinaryOperation():
            return _any(module, (node.left, node.right), seen)
        case cst.List() | cst.Tuple():
            return _any(module, (element.value for element in node.elements), seen)
        case cst.Dict():
            return _any(module, (element.value for element in node.elements), seen)
        case cst.ListComp() | cst.GeneratorExp():
            return _found(module, node.elt, seen)
        case cst.DictComp():
            return _found(module, node.value, seen)
        case _:
            return False


def _any(module: Module, nodes: Iterable[cst.BaseExpression], seen: Seen) -> bool:
    return any(_found(module, node, seen) for node in nodes)


def _named(module: Module, name: cst.Name, seen: Seen) -> bool:
    bindings = module.bindings(name)
    if any(_on_host(module, binding) for binding in bindings):
        return False
    return any(_bound(module, binding, seen) for binding in bindings)


def _on_host(module: Module, binding: Binding) -> bool:
    """Whether one definition of a variable gives it what has left the device or never was there."""
    if binding.kind is not BindingKind.ASSIGN or binding.value is None or binding.path:
        return False
    value = module.value(binding.value)
    if value.kind is Kind.NUMBER:
        return value.constant is MISSING
    return value.kind is Kind.NDARRAY or (value.kind is Kind.TENSOR and value.device is Device.CPU)


def _bound(module: Module, binding: Binding, seen: Seen) -> bool:
    if binding.kind is BindingKind.PARAMETER and isinstance(binding.scope.node, cst.FunctionDef):
        given = (module.argument(call, binding.name).node for call in module.callers(binding.scope.node))
        return _any(module, (node for node in given if node is not None), seen)
    if binding.kind not in _BOUND or binding.value is None:
        return False
    return _found(module, binding.value, seen) or _any(module, _stored(module, binding), seen)


def _stored(module: Module, binding: Binding) -> Iterator[cst.BaseExpression]:
    """What is put into a dictionary or list later on: ``losses["total"] = loss``."""
    for use in module.uses(binding):
        entry = module.tree.parent(use)
        if isinstance(entry, cst.Subscript) and entry.value is use:
            target = module.tree.parent(entry)
            statement = module.tree.parent(target) if isinstance(target, cst.AssignTarget) else None
            if isinstance(statement, cst.Assign):
                yield statement.value


def _called(module: Module, call: cst.Call, seen: Seen) -> bool:
    given = [arg.value for arg in call.args]
    package, _, name = (module.qualified(call.func) or "").rpartition(".")
    if package == "builtins":
        return name in _PASSING_BUILTINS and _any(module, given, seen)
    if package.partition(".")[0] in _HOST_PACKAGES or module.callee(call) is not None:
        return False
    if isinstance(call.func, cst.Attribute):
        owner, method = call.func.value, call.func.attr.value
        if method in _PASSING_METHODS and _found(module, owner, seen):
            return True
        if module.value(owner).kind not in _FOREIGN:
            return False
        name = method
    elif isinstance(call.func, cst.Name):
        name = call.func.value
    # What is called after a class makes an object, which keeps what it was given.
    if not name or name.lstrip("_")[:1].isupper() or module.value(call.func).kind is Kind.CLASS:
        return False
    return not any(_left_device(module, node) for node in given) and _any(module, given, seen)


def _left_device(module: Module, node: cst.BaseExpression) -> bool:
    value = module.value(node)
    return value.kind is Kind.NDARRAY or (value.kind is Kind.TENSOR and value.device is Device.CPU)

"""Where the host is allowed to wait for the device: in the contexts that the configuration declares.

An engine that checks its waits at run time marks those that it wants: ``with gpu_sync_allowed(): …``. What
runs in such a block, in a function with such a decorator, or in a function that is called from nowhere else,
may wait.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.declared import is_declared
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered
from torchlint.semantics.serving import serves


def may_synchronize(module: Module, node: cst.CSTNode) -> bool:
    """Return whether the configuration allows the host to wait for the device at a node."""
    if not module.settings.allowed_sync_contexts:
        return False
    if _is_inside(module, node):
        return True
    function = module.function(node)
    return function is not None and _is_called_inside(module, function)


def permissions(module: Module, node: cst.With | cst.FunctionDef) -> Iterator[cst.BaseExpression]:
    """Return the declared contexts that a ``with`` statement enters, or that decorate a function."""
    made = (
        (item.item for item in node.items)
        if isinstance(node, cst.With)
        else (decorator.decorator for decorator in node.decorators)
    )
    return (expression for expression in made if _permits(module, expression))


@remembered
def _permits(module: Module, expression: cst.BaseExpression) -> bool:
    """Return whether it is ``gpu_sync_allowed()``, ``gpu_sync_allowed(…) if strict else nullcontext()``."""
    patterns = module.settings.allowed_sync_contexts
    return any(
        is_declared(module.names, part, patterns)
        for part in module.tree.descendants(expression)
        if isinstance(part, (cst.Name, cst.Attribute))
    )


def _is_inside(module: Module, node: cst.CSTNode) -> bool:
    """Return whether a node is in such a block of its function, or in a function with such a decorator."""
    if any(_permits(module, item.item) for item in module.flow.contexts(node)):
        return True
    function = module.function(node)
    while function is not None:
        if isinstance(function, cst.FunctionDef) and any(permissions(module, function)):
            return True
        function = module.function(function)
    return False


@remembered
def _is_called_inside(module: Module, function: Function) -> bool:
    """Return whether all calls that lead to a function are allowed to wait."""
    waiting, seen = [function], {function}
    while waiting:
        current = waiting.pop()
        home = module.home(current)
        callers = home.callers(current)
        if not callers or serves(home, current):
            return False
        for call in callers:
            around = module.home(call)
            if _is_inside(around, call):
                continue
            outer = around.function(call)
            if outer is None:
                return False
            if outer not in seen:
                seen.add(outer)
                waiting.append(outer)
    return True

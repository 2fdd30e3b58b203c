"""What of a file the other files of its program can use, and what it shows to people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.names import ScopeKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.values import Kind

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module

_SHOWING_FUNCTIONS = frozenset({"builtins.print", "builtins.str", "builtins.repr", "builtins.format"})
_SHOWING_METHODS = frozenset(
    {
        *("critical", "debug", "error", "exception", "format", "info", "log", "print", "set_description"),
        *(
            "set_postfix",
            "set_postfix_str",
            "warn",
            "warning",
            "write",
            "writelines",
            "writerow",
            "writerows",
        ),
    }
)
_LOGARITHMS = ("torch.", "numpy.", "math.", "cmath.")


def imported_by_nobody(module: Module) -> bool:
    """Return whether no other file imports names from this one, nor all of them with a star.

    That is a notebook, or a script that would train whenever it is imported. A ``__main__`` test is no sign
    of it: it is there so that a file can be imported as well.
    """
    if module.link is not None and module.link.is_imported(module):
        return False
    return module.in_notebook or (not is_test(module) and trains_on_import(module))


def used_elsewhere(module: Module, name: str) -> bool:
    """Return whether another file may use a name of the top level of this one, of the project or not."""
    if imported_by_nobody(module):
        return False
    if module.link is None:
        return True
    return not module.link.shows_users(module, name) or module.link.is_used(module, name)


def calls_shown(module: Module, function: cst.FunctionDef) -> bool:
    """Return whether the files of the project show every call of a function, and no test has one.

    That is not known of a method that is read from an object of an unknown class, nor of a function that is
    used as a value, nor of what Python calls by itself, as ``__call__``.
    """
    if module.tree.is_elsewhere(function):
        return calls_shown(module.home(function), function)
    owner = module.classes.owner(function)
    if owner is not None and function.name.value == "__call__":
        return False
    if not users_shown(module, owner or function):
        return False
    binding = module.binding_of(function)
    reads = [*module.uses(binding), *module.names.uses_elsewhere(binding)] if binding is not None else []
    if owner is not None:
        files = (module, *module.companions(function.name.value))
        reads += [
            node
            for each in files
            for node in each.tree.attributes_by_name.get(function.name.value, ())
            if not _is_of_another(each, node, function)
        ]
    calls = {id(call.func) for call in module.callers(function)}
    return all(id(read) in calls for read in reads)


def users_shown(module: Module, definition: cst.FunctionDef | cst.ClassDef) -> bool:
    """Return whether only files of the project can use what is defined at the top level, and no test does."""
    home = module.home(definition)
    name = definition.name.value
    if home.link is None or home.names.scope(definition).kind is not ScopeKind.MODULE:
        return False
    return home.link.shows_users(home, name) and not home.link.is_tested(home, name)


def _is_of_another(module: Module, attribute: cst.Attribute, function: cst.FunctionDef) -> bool:
    """Return whether what is called is known to be something else."""
    call = module.tree.method_call(attribute.value)
    if call is None:
        return False
    callee = module.callee(call)
    return module.qualified(attribute) is not None or (callee is not None and callee is not function)


def shown(module: Module) -> Iterator[cst.BaseExpression | None]:
    """Yield what is printed or made a text; None for what the file does not spell: ``net.apply(print)``."""
    for call in module.tree.nodes(cst.Call):
        method = isinstance(call.func, cst.Attribute) and call.func.attr.value in _SHOWING_METHODS
        raised = isinstance(module.tree.parent(call), cst.Raise)
        called = module.qualified(call.func) or ""
        if (method and not called.startswith(_LOGARITHMS)) or raised or called in _SHOWING_FUNCTIONS:
            yield from (argument.value for argument in call.args)
    for part in module.tree.nodes(cst.FormattedStringExpression):
        if part.conversion or not part.format_spec:  # which no model takes
            yield part.expression
    for operation in module.tree.nodes(cst.BinaryOperation):
        if isinstance(operation.operator, cst.Modulo) and module.value(operation.left).kind not in (
            Kind.NUMBER,
            Kind.TENSOR,
        ):
            yield operation.right
    for statement in module.tree.nodes(cst.Assert):
        if statement.msg is not None:
            yield statement.msg
    for name in module.tree.nodes(cst.Name):
        if module.qualified(name) in _SHOWING_FUNCTIONS and _is_handed_on(module, name):
            yield None


@remembered
def trains_on_import(module: Module) -> bool:
    """Return whether the file backpropagates whenever it is imported, whatever else holds."""
    return any(_runs_on_import(module, backward.call) for backward in Backpropagation.of(module).passes)


def _runs_on_import(module: Module, call: cst.CSTNode) -> bool:
    seen: set[Function] = set()
    pending = [call]
    while pending:
        place = pending.pop()
        function = module.function(place)
        if function is None:
            if not module.flow.is_conditional(place):
                return True
        elif function not in seen:
            seen.add(function)
            pending += module.callers(function)
    return False


def _is_handed_on(module: Module, name: cst.Name) -> bool:
    """Return whether a function may be called out of sight: it is no type that something is compared with."""
    parent = module.tree.parent(name)
    if isinstance(parent, cst.Arg):
        call = module.tree.parent(parent)
        asks = isinstance(call, cst.Call) and module.qualified(call.func) == "builtins.isinstance"
        chosen = parent.keyword is not None and parent.keyword.value in ("type", "dtype")
        return parent.value is name and not asks and not chosen
    return isinstance(
        parent, (cst.Assign, cst.NamedExpr, cst.Element, cst.DictElement, cst.Return, cst.Param)
    )

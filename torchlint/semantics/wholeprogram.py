"""What of a file other files may use, and whether importing it runs a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.names import ScopeKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.sources import Path, Through, some, traced

if TYPE_CHECKING:
    from torchlint.semantics.flow.graph import Function
    from torchlint.semantics.module import Module


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


def passed_by_others(module: Module, node: cst.BaseExpression, *, promised: bool = False) -> bool:
    """Return whether calls that the project does not show may pass a value, of whatever kind.

    ``promised``: an annotation that says what they pass is enough.
    """
    return some(_passed_by_others(module, node, promised))


@traced(Through.PARAMETERS)
def _passed_by_others(module: Module, node: cst.CSTNode, path: Path, promised: bool) -> bool | None:
    if not isinstance(node, cst.Param) or (promised and node.annotation is not None):
        return None
    function = module.tree.parents[module.tree.parents[node]]
    return True if isinstance(function, cst.FunctionDef) and not calls_shown(module, function) else None


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

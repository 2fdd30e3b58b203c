"""Python state that grows with each call of a function: counters and lists that outlive the call.

Asked where code is compiled, and holds for the numbers and lengths that it was compiled with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import BindingKind
from torchlint.semantics.values import Kind
from torchlint.syntax import alike

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_GROWING = frozenset({"append", "extend", "insert"})
_SHRINKING = frozenset({"clear", "pop", "popleft", "remove"})


def grown(module: Module, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The counter or list that ``node``, a statement or a call, makes larger than it was a call before.

    ``self.calls += 1`` where a constructor sets the number and nothing else does, ``calls += 1`` where it is
    global, ``outputs.append(x)`` where nothing empties the list.
    """
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name))) if name in _GROWING:
            return owner if _list_that_stays(module, owner) else None
        case cst.AugAssign(target=target, value=cst.List()) if _adds(node) is not None:
            return target if _list_that_stays(module, target) else None
    added = _adds(node)
    if added is None:
        return None
    counter, step = added
    constant = module.value(step).constant
    counts = type(constant) is int and constant != 0
    return counter if counts and _number_that_stays(module, counter) else None


def _adds(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The target of ``x += y`` or ``x = x + y``, and what is added to it."""
    match node:
        case cst.AugAssign(target=target, operator=cst.AddAssign(), value=step):
            return target, step
        case cst.Assign(
            targets=[cst.AssignTarget(target=target)],
            value=cst.BinaryOperation(left=left, operator=cst.Add(), right=step),
        ) if alike(left, target):
            return target, step
    return None


def _number_that_stays(module: Module, target: cst.BaseExpression) -> bool:
    if isinstance(target, cst.Subscript):
        # An item of a dictionary that the module holds, counted by name.
        return _starts_empty(module, _start(module, target.value), cst.Dict)
    start = _start(module, target)
    return start is not None and type(module.value(start).constant) is int


def _list_that_stays(module: Module, target: cst.BaseExpression) -> bool:
    start = _start(module, target)
    return _starts_empty(module, start, cst.List) and not _shrinks(module, target)


def _starts_empty(
    module: Module, start: cst.BaseExpression | None, display: type[cst.BaseExpression]
) -> bool:
    if isinstance(start, display):
        return True
    made = module.qualified(start.func) if isinstance(start, cst.Call) and not start.args else None
    return made == ("builtins.list" if display is cst.List else "builtins.dict")


def _start(module: Module, target: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a name of the module or an attribute of a model starts as, if nothing but additions changes it."""
    if isinstance(target, cst.Attribute):
        return _start_of_attribute(module, target)
    if not isinstance(target, cst.Name):
        return None
    scope = module.names.lookup(target.value, target)
    if scope is None or scope is not module.names.module_scope:
        return None
    bindings = scope.bindings.get(target.value, ())
    starts = [binding for binding in bindings if _adds(_statement(module, binding.node)) is None]
    if len(starts) != 1 or starts[0].kind is not BindingKind.ASSIGN or starts[0].path:
        return None
    return starts[0].value if module.function(starts[0].node) is None else None


def _start_of_attribute(module: Module, target: cst.Attribute) -> cst.BaseExpression | None:
    owner = module.classes.instance_class(target.value)
    if owner is None or module.classes.info(owner).kind is not Kind.MODULE:
        return None
    family = {*module.classes.heirs(owner), *(info.node for info in module.classes.info(owner).lineage), None}
    starts = [
        binding
        for binding in module.names.attributes.get(target.attr.value, ())
        if _adds(_statement(module, binding.target)) is None
        and module.classes.instance_class(binding.target.value) in family
    ]
    if len(starts) != 1 or starts[0].kind is not BindingKind.ASSIGN or starts[0].path:
        return None
    method = module.function(starts[0].target)
    made_with = isinstance(method, cst.FunctionDef) and method.name.value == "__init__"
    return starts[0].value if made_with else None


def _statement(module: Module, target: cst.CSTNode) -> cst.CSTNode:
    """The assignment that a target belongs to."""
    parent = module.tree.parents[target]
    return module.tree.parents[parent] if isinstance(parent, cst.AssignTarget) else parent


def _shrinks(module: Module, target: cst.BaseExpression) -> bool:
    """Whether something in the file takes items out of what has this name."""
    for read in _namesakes(module, target):
        parent = module.tree.parent(read)
        if isinstance(parent, cst.Attribute) and parent.attr.value in _SHRINKING:
            return True
        if isinstance(parent, cst.Subscript):
            above = module.tree.parent(parent)
            if isinstance(above, (cst.Del, cst.AssignTarget)):
                return True
    return False


def _namesakes(module: Module, target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(target, cst.Attribute):
        word = target.attr.value
        yield from (node for node in module.tree.nodes(cst.Attribute) if node.attr.value == word)
    elif isinstance(target, cst.Name):
        yield from module.names.reads(target.value)

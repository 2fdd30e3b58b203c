"""Copies that are made for NumPy on purpose: what a function gives back, files and processes get arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.lexicon import Role, ends
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.values import Device, Kind

if TYPE_CHECKING:
    from torchlint.semantics.module import Module
    from torchlint.semantics.places import Hot


def stored_by_writer(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the statement of ``node`` puts it into a file behind a mapping: ``writer[key] = x``."""
    statement = module.tree.statement(node)
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for part in statement.body:
        if isinstance(part, cst.Assign):
            for target in part.targets:
                if isinstance(target.target, cst.Subscript) and isinstance(target.target.value, cst.Name):
                    if ends(target.target.value.value, Role.FILE):
                        return True
    return False


def shared_with_processes(module: Module, node: cst.BaseExpression) -> bool:
    """Return whether the statement of ``node`` fills a tensor of the host in a file
    that shares such tensors.
    """
    statement = module.tree.statement(node)
    if not module.tree.mentions("share_memory_") or not isinstance(statement, cst.SimpleStatementLine):
        return False
    return any(
        isinstance(target.target, cst.Subscript)
        and module.value(target.target.value).kind is Kind.TENSOR
        and module.value(target.target.value).device is Device.CPU
        for part in statement.body
        if isinstance(part, cst.Assign)
        for target in part.targets
    )


def leaves_torch(module: Module, copy: cst.Call, tensor: cst.BaseExpression, hot: Hot) -> bool:
    """Return whether a ``forward`` takes its own input to NumPy, or gives arrays:
    it is for the host by design.
    """
    function = module.function(copy)
    if isinstance(function, cst.FunctionDef) and function.name.value == "forward" and function.returns:
        promised = module.source(function.returns.annotation)
        if "ndarray" in promised and "Tensor" not in promised:
            return True
    attribute = _made_array(module, copy)
    if attribute is None:
        return False
    if isinstance(hot.loop, cst.FunctionDef) and _gives_array(module, attribute):
        return True
    while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute):
        tensor = tensor.func.value
    if not isinstance(tensor, cst.Name) or not isinstance(function, cst.FunctionDef):
        return False
    return function.name.value == "forward" and _is_input(module, tensor)


_ON_THE_WAY = frozenset({"detach", "float", "data", "permute", "contiguous"})


def _made_array(module: Module, copy: cst.Call) -> cst.Attribute | None:
    """Return the ``.numpy`` behind a copy: ``x.cpu().numpy``, ``x.cpu().detach().numpy``."""
    node: cst.CSTNode = copy
    while isinstance(attribute := module.tree.parent(node), cst.Attribute):
        if attribute.attr.value == "numpy":
            return attribute
        if attribute.attr.value not in _ON_THE_WAY:
            return None
        called = module.tree.parent(attribute)
        node = called if isinstance(called, cst.Call) else attribute
    return None


def _works_on_arrays(module: Module, func: cst.BaseExpression) -> bool:
    """Return whether it is ``np.clip``, ``self.to_action``: a function of NumPy,
    or a method of the object itself.
    """
    if (module.qualified(func) or "").startswith("numpy."):
        return True
    own = isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name) and func.value.value == "self"
    return own and module.value(func).kind is not Kind.MODULE


def _gives_array(module: Module, attribute: cst.Attribute) -> bool:
    """Return whether ``x.numpy()`` is returned as it is, alone,
    in a tuple or in a list that is made for it.
    """
    function = module.function(attribute)
    if (
        not isinstance(function, cst.FunctionDef)
        or function.name.value == "training_step"
        or module.flow.loops(attribute)
    ):
        return False
    node: cst.CSTNode | None = module.tree.parent(attribute)
    for parent in module.tree.ancestors(node) if node is not None else ():
        match parent:
            case cst.Return():
                return True
            case cst.Element() | cst.Tuple() | cst.List() | cst.Arg() | cst.BinaryOperation():
                pass
            case cst.Call(func=cst.Attribute(value=cst.Name() as held, attr=cst.Name(value="append"))):
                return _is_returned(module, module.bindings(held), function)
            case cst.Call(func=func) if _works_on_arrays(module, func):
                pass
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)]):
                bound = module.binding_of(target)
                return bound is not None and _is_returned(module, (bound,), function)
            case _:
                return False
    return False


def _is_returned(module: Module, bindings: Iterable[Binding], function: cst.FunctionDef) -> bool:
    """Return whether all that becomes of a variable is that the function returns it, having filled it."""
    reads = [use for binding in bindings for use in module.uses(binding)]
    returned = False
    for read in reads:
        parent = module.tree.parent(read)
        while isinstance(parent, (cst.Element, cst.Tuple)):
            parent = module.tree.parent(parent)
        if isinstance(parent, cst.Return):
            returned = True
        elif not (isinstance(parent, cst.Attribute) and parent.attr.value == "append"):
            return False
    return returned


def _is_input(module: Module, name: cst.Name) -> bool:
    """Return whether a variable is a parameter, or goes through one."""
    for binding in module.bindings(name):
        if isinstance(binding.node, cst.Param):
            return True
        if binding.kind in (BindingKind.LOOP, BindingKind.COMPREHENSION) and isinstance(
            binding.value, cst.Name
        ):
            return any(isinstance(outer.node, cst.Param) for outer in module.bindings(binding.value))
    return False

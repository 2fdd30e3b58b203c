"""What writes to the memory of a tensor in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.remembered import solved

if TYPE_CHECKING:
    from torchlint.semantics.module import Module


def changed_later(module: Module, tensor: cst.BaseExpression) -> bool:
    """Whether the file writes to the memory of a tensor, so that who keeps the tensor sees it change."""
    root: cst.BaseExpression = tensor
    while isinstance(root, cst.Call) and isinstance(root.func, cst.Attribute):
        if root.func.attr.value not in ("detach", "view", "reshape", "squeeze", "cpu"):
            return False
        root = root.func.value
    return isinstance(root, cst.Name) and any(writes_to(module, b) for b in module.bindings(root))


@solved(False)
def writes_to(module: Module, binding: Binding) -> bool:
    """Whether the tensor that ``binding`` holds is changed in place: by a method, ``out=``, a collective."""
    return any(writes_at(module, use) for use in module.uses(binding))


def writes_at(module: Module, use: cst.Name) -> bool:
    """Whether the tensor in a variable is changed in place where the variable is read."""
    parent = module.tree.parent(use)
    if isinstance(parent, cst.Attribute) and parent.attr.value in ("data", "grad"):
        parent = module.tree.parent(parent)
    if isinstance(parent, cst.Arg) and _written_by(module, parent):
        return True
    if isinstance(parent, cst.AugAssign) and parent.target in (use, module.tree.parent(use)):
        return True
    if isinstance(parent, cst.Attribute) and parent.attr.value.endswith("_") and parent.attr.value != "_":
        called = module.tree.parent(parent)
        return (
            isinstance(called, cst.Call) and called.func is parent and parent.attr.value != "requires_grad_"
        )
    return False


def _written_by(module: Module, arg: cst.Arg) -> bool:
    """Whether a call writes to the tensor that it is given as ``arg``."""
    call = module.tree.parent(arg)
    if not isinstance(call, cst.Call):
        return False
    if arg.keyword is not None and arg.keyword.value == "out":
        return True
    if (module.qualified(call.func) or "").startswith("torch.distributed."):
        return True
    callee = module.callee(call)
    if not isinstance(callee, cst.FunctionDef):
        return False
    bound = module.call(call)
    return any(
        bound.get(name).node is arg.value and writes_to(module, binding)
        for name, bindings in module.names.scope_of(callee).bindings.items()
        for binding in bindings
        if binding.kind is BindingKind.PARAMETER
    )

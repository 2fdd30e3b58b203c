"""What writes to the memory of a tensor in place, by the names that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names import Binding
from torchlint.semantics.sinks import ONWARD, Use, UseKind, Verdict, verdicts

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


def writes_to(module: Module, value: cst.BaseExpression | Binding) -> bool:
    """Whether the tensor that a name is bound to, or that is read here, is changed in place.

    By setting a part of it, a method, ``out=``, a collective, or a function of the file that does so.
    """
    return True in verdicts(module, value, _writes)


def _writes(module: Module, use: Use) -> Verdict[bool]:
    match use.kind:
        case UseKind.AUGMENTED | UseKind.SET:
            return True
        case UseKind.ATTRIBUTE if use.name in ("data", "grad"):
            return ONWARD
        case UseKind.METHOD:
            return use.name.endswith("_") and not use.name.endswith("__") and use.name != "requires_grad_"
        case UseKind.ARGUMENT:
            keyword = use.argument.keyword
            if keyword is not None and keyword.value == "out":
                return True
            if (module.qualified(use.call.func) or "").startswith("torch.distributed."):
                return True
            if isinstance(module.callee(use.call), cst.FunctionDef):
                return ONWARD
    return False

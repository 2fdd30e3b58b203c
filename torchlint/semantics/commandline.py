"""What the options of the command line are by default."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered


def option_default(module: Module, name: str) -> cst.BaseExpression | None:
    """The default of ``add_argument("--num-workers", default=4)``, if the program has one of that name.

    Where several files have one, they must agree.
    """
    own = _option_defaults(module, name)
    if own:
        return own[0] if len(own) == 1 else None
    found = [
        default for other in module.companions("add_argument") for default in _option_defaults(other, name)
    ]
    alike = {repr(module.value(default).constant) for default in found}
    return found[0] if len(alike) == 1 else None


@remembered
def _option_defaults(module: Module, name: str) -> list[cst.BaseExpression]:
    """The defaults of the options of a name in one file."""
    found: list[cst.BaseExpression] = []
    for call in module.tree.nodes(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "add_argument":
            continue
        flags = [
            flag.lstrip("-").replace("-", "_")
            for arg in call.args
            if arg.keyword is None and isinstance(flag := module.value(arg.value).constant, str)
        ]
        given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        if "dest" in given:
            flags = [str(module.value(given["dest"]).constant)]
        if name in flags and "default" in given:
            found.append(given["default"])
    return found

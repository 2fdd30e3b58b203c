"""Transforms of torchvision's second generation that stand for older ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import add_argument, replace, spell, unsafe

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_V2 = "torchvision.transforms.v2."
_NARROWER = "masks and boxes keep their dtype, and TorchScript does not compile `ToDtype`"


def in_two_steps(module: Module, call: cst.Call) -> Fix | None:
    """Return the fix that makes an image of what comes in, and then numbers from 0 to 1,
    instead of `ToTensor`.
    """
    image, dtype = (spell(module, f"{_V2}{name}", call) for name in ("ToImage", "ToDtype"))
    number = spell(module, "torch.float32", call)
    # What is not imported from a module that is loaded would have to be.
    if call.args or image is None or dtype is None or number is None or image.edits or dtype.edits:
        return None
    steps = f"{image.text}(), {dtype.text}({number.text}, scale=True)"
    if not _in_compose(module, call):
        composed = spell(module, f"{_V2}Compose", call)
        if composed is None:
            return None
        steps = f"{composed.text}([{steps}])"
    edits = (Edit(module.tree.outer_span(call), steps),)
    risk = "the result is a `tv_tensors.Image`, and uint8 tensors are scaled as well"
    return unsafe(module, "Use `ToImage` and `ToDtype`", edits, number.edits, risk=risk)


def _in_compose(module: Module, call: cst.Call) -> bool:
    """Return whether a transform stands in the list that `Compose` is given, where two may stand for one."""
    above = list(module.tree.ancestors(call))[:4]
    match above:
        case [cst.Element(), cst.List(), cst.Arg(), cst.Call(func=func)]:
            return (module.qualified(func) or "").endswith(".Compose")
    return False


def scaled(module: Module, call: cst.Call) -> Fix | None:
    """Return the fix that writes `ToDtype` for `ConvertImageDtype`."""
    new = spell(module, f"{_V2}ToDtype", call)
    number = spell(module, "torch.float32", call)
    if new is None or new.edits or number is None or len(call.args) > 1 or any(arg.star for arg in call.args):
        return None
    renamed = replace(module, call.func, new.text)
    if call.args:
        scaled = add_argument(module, call, "True", keyword="scale", keyword_only=True)
        return unsafe(module, "Use `ToDtype`", renamed, scaled, risk=_NARROWER)
    code = f"{new.text}({number.text}, scale=True)"
    return unsafe(module, "Use `ToDtype`", replace(module, call, code), number.edits, risk=_NARROWER)

"""TL905: `pretrained=` of torchvision's models."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, replace
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

from ..uses import stands_in
from .pretraining import Legacy, legacy_weights


@rule(
    "TL905",
    "torchvision-pretrained",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=cst.Call,
    mentions=("torchvision", "pretrain|(True|(False"),
)
def torchvision_pretrained(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `pretrained` and `pretrained_backbone`, as keyword or positional arguments of the model builders in
    `torchvision.models`, if every torchvision release that the project supports has `weights`. If the project
    does not declare torchvision, its release follows from that of torch.

    Code that is only reached behind a version check is ignored: either branch of a test of
    `torchvision.__version__` or `hasattr(models, …)`, code after an early `return`, `try` blocks with their
    handlers, and functions used only in such places.

    ## Why is this bad?

    Both arguments are deprecated since torchvision 0.13, and every call prints two warnings. They also hide
    which weights are loaded: `pretrained=True` always means the original weights, although better ones may be
    available under other names.

    ## Example

    ```python
    backbone = torchvision.models.resnet50(pretrained=True)
    detector = fasterrcnn_resnet50_fpn(pretrained=False, pretrained_backbone=True)
    ```

    ## Use instead

    ```python
    backbone = torchvision.models.resnet50(weights="IMAGENET1K_V1")
    detector = fasterrcnn_resnet50_fpn(weights=None, weights_backbone="IMAGENET1K_V1")
    ```

    ## Fix safety

    Safe: the fix names the weights that torchvision itself would load. It is unsafe next to `**kwargs`, which
    may already contain the new argument, and for a model chosen by name if the program adds functions of its
    own to `torchvision.models`. There is no fix if the value is not a literal `True` or `False`, if the new
    argument is passed as well, if other positional arguments follow, or if the model has no such weights.

    ## References

    - [Models and pre-trained weights](https://docs.pytorch.org/vision/stable/models.html)
    - [How to write your own multi-weight API: migration](https://pytorch.org/blog/introducing-torchvision-new-multi-weight-support-api/)
    """
    for legacy in legacy_weights(module, call):
        if not module.target_of("torchvision").at_least("0.13") or stands_in(module, call):
            return
        yield Finding(
            legacy.arg,
            f"`{legacy.old}` is deprecated since torchvision 0.13; use `{legacy.new}`",
            fix=_fix(module, call, legacy),
            remedy=f"Pass `{legacy.new}=…` instead, with the name of the weights or `None`",
        )


def _fix(module: Module, call: cst.Call, legacy: Legacy) -> Fix | None:
    if legacy.code is None:
        return None
    if any(arg.keyword is not None and arg.keyword.value == legacy.new for arg in call.args):
        return None
    hidden = any(arg.star for arg in call.args)
    risk = "`*` or `**` may pass the new argument already" if hidden else None
    if legacy.added:
        risk = "the program adds functions to `torchvision.models`, which may not have the new argument"
    message = f"Use `{legacy.new}={legacy.code}`"
    if legacy.arg.keyword is not None:
        named = replace(module, legacy.arg.keyword, legacy.new)
        return graded(module, message, named, replace(module, legacy.arg.value, legacy.code), risk=risk)
    if call.args[-1] is not legacy.arg and call.args[call.args.index(legacy.arg) + 1].keyword is None:
        return None
    edits = replace(module, legacy.arg.value, f"{legacy.new}={legacy.code}")
    return graded(module, message, edits, risk=risk)

"""TL906: spellings of torchvision that its second generation of transforms, and its own pages, gave up."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import remove_statement, replace, safe
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from ..uses import stands_in
from .transforms import in_two_steps, scaled

_V2 = "torchvision.transforms.v2."
_TO_TENSOR = (f"{_V2}ToTensor", f"{_V2}functional.to_tensor")
_CONVERT = f"{_V2}ConvertImageDtype"
_NO_BETA = "torchvision.disable_beta_transforms_warning"


@rule(
    "TL906",
    "torchvision-api",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=(cst.Call, cst.Import),
    mentions=(
        "torchvision",
        "v2.ToTensor|v2 import|v2 as|to_tensor|ConvertImageDtype|torchvision.models as|disable_beta",
    ),
    advice=True,
)
def torchvision_api(node: cst.Call | cst.Import, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `ToTensor` and `to_tensor` of `torchvision.transforms.v2`, if every torchvision release that the
    project supports has their replacements. Reported as notes are `ConvertImageDtype`, which only the
    documentation deprecates, `disable_beta_transforms_warning()`, which has no effect any more, and `import
    torchvision.models as models`.

    Code that is only reached behind a version check is ignored: either branch of a test of
    `torchvision.__version__` or `hasattr(v2, …)`, code after an early `return`, `try` blocks with their
    handlers, and functions used only in such places.

    ## Why is this bad?

    `v2.ToTensor` warns whenever it is created. What it does depends on its input: it scales PIL and NumPy
    images to the range from 0 to 1, and leaves uint8 tensors unchanged. In `v2` conversion and scaling are
    separate steps, so that images can stay uint8, which is faster to resize, until the end.

    `import torchvision.models as models` and `from torchvision import models` bind the same name; the second
    form is the one in torchvision's documentation.

    ## Example

    ```python
    transform = v2.Compose([v2.ToTensor(), v2.Normalize(mean, std)])
    ```

    ## Use instead

    ```python
    transform = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)])
    ```

    ## Fix safety

    The fix of `ToTensor` is unsafe: the result is a `tv_tensors.Image` instead of a plain tensor, and uint8
    tensors are scaled as well. That of `ConvertImageDtype` is unsafe: `ToDtype` leaves the dtype of masks and
    boxes alone, and cannot be compiled by TorchScript. The other fixes are safe: they are equivalent, or
    remove a call without effect. There is no fix for `to_tensor`, nor for names that are imported one by one.

    ## References

    - [torchvision.transforms.v2.ToTensor](https://docs.pytorch.org/vision/stable/generated/torchvision.transforms.v2.ToTensor.html)
    - [Getting started with transforms v2](https://docs.pytorch.org/vision/stable/auto_examples/transforms/plot_transforms_getting_started.html)
    - [TorchFix](https://github.com/pytorch-labs/torchfix)
    """
    if isinstance(node, cst.Import):
        yield from _imported(module, node)
        return
    dotted = module.qualified(node.func)
    if dotted is None or not (dotted.startswith(_V2) or dotted == _NO_BETA):
        return
    if stands_in(module, node):
        return
    if not module.target_of("torchvision").at_least("0.16"):
        return
    if dotted in _TO_TENSOR:
        whole = dotted == _TO_TENSOR[0]
        both = "`ToImage` and `ToDtype`" if whole else "`to_image` and `to_dtype`"
        yield Finding(
            node,
            f"`{module.source(node.func)}` is deprecated; use {both} with `scale=True`",
            fix=in_two_steps(module, node) if whole else None,
            remedy=f"Use {both} with `scale=True`",
        )
    elif dotted == _CONVERT:
        yield Finding(
            node,
            "`ConvertImageDtype` is deprecated; use `ToDtype` with `scale=True`",
            severity=NOTE,
            fix=scaled(module, node),
            remedy="Use `ToDtype` with `scale=True`",
        )
    elif dotted == _NO_BETA:
        alone = isinstance(module.tree.parent(node), cst.Expr)
        yield Finding(
            node,
            "`disable_beta_transforms_warning()` has no effect since torchvision 0.16",
            severity=NOTE,
            fix=safe(module, "Remove the call", remove_statement(module, node)) if alone else None,
            remedy="Remove the call",
        )


def _imported(module: Module, statement: cst.Import) -> Iterator[Finding]:
    match statement.names:
        case [
            cst.ImportAlias(
                name=cst.Attribute(value=cst.Name("torchvision"), attr=cst.Name("models")),
                asname=cst.AsName(name=cst.Name(name)),
            )
        ]:
            line = "from torchvision import models" + ("" if name == "models" else f" as {name}")
            yield Finding(
                statement,
                f"`import torchvision.models as {name}` can be shortened to `{line}`",
                severity=NOTE,
                fix=safe(module, f"Use `{line}`", replace(module, statement, line)),
                remedy=f"Use `{line}`",
            )

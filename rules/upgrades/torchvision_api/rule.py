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

    Finds `ToTensor` and `to_tensor` of `torchvision.transforms.v2`, where every release of torchvision that
    may run the program has what takes their place. `ConvertImageDtype`, which only the documentation
    deprecates, `disable_beta_transforms_warning()`, which does nothing any more, and
    `import torchvision.models as models` are advice.

    What is only reached under a check of the release or of what it has is left alone: in either branch of a
    question for `torchvision.__version__` or `hasattr(v2, …)`, behind an early `return`, in `try` with its
    handlers, and in functions that are used in such places only.

    ## Why is this bad?

    `v2.ToTensor` warns at every start. It does two things, of which the one depends on what comes in: it
    scales an image of PIL or NumPy to numbers from 0 to 1, and leaves a tensor of bytes as it is. In `v2`
    each is a step of its own, so that images can stay bytes, which are quick to resize, to the end.

    `import torchvision.models as models` and `from torchvision import models` bind the same name; the second
    is how torchvision's own pages write it, and what is in most programs.

    ## Example

    ```python
    transform = v2.Compose([v2.ToTensor(), v2.Normalize(mean, std)])
    ```

    ## Use instead

    ```python
    transform = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)])
    ```

    ## Fix safety

    The fix of `ToTensor` is unsafe: the result is a `tv_tensors.Image` instead of a plain tensor, and a
    tensor of bytes is scaled, too. The others are safe: they say the same, or drop what does nothing. No
    fix is offered for `to_tensor`, and for names that are imported one by one.

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
            "the transforms are no longer in beta since torchvision 0.16, and this call does nothing",
            severity=NOTE,
            fix=safe(module, "Drop the call", remove_statement(module, node)) if alone else None,
            remedy="Drop the call",
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
                f"`import torchvision.models as {name}` is better written `{line}`",
                severity=NOTE,
                fix=safe(module, f"Use `{line}`", replace(module, statement, line)),
                remedy=f"Use `{line}`",
            )

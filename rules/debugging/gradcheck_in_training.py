"""TL803: gradients are checked against finite differences while a model is trained."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import reason
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.module import Module

from .switches import optional

_CHECKS = frozenset(
    f"torch.autograd.{prefix}{name}"
    for prefix in ("", "gradcheck.")
    for name in ("gradcheck", "gradgradcheck")
)


@rule(
    "TL803",
    "gradcheck-in-training",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("gradcheck|gradgradcheck",),
    remedy="Move it to a test",
)
def gradcheck_in_training(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.autograd.gradcheck` and `gradgradcheck` in a training loop, in `forward`, or in functions
    called from there. The rule ignores tests, checks before training, and checks that an option enables.

    ## Why is this bad?

    The check runs the function twice for every element of every input, in double precision, and synchronizes
    after each run. It verifies that the backward pass is implemented correctly, which does not change from
    step to step.

    ## Example

    ```python
    for images, labels in loader:
        assert torch.autograd.gradcheck(layer, images.double())
        train_step(images, labels)
    ```

    ## Use instead

    ```python
    def test_layer():
        assert torch.autograd.gradcheck(layer, torch.randn(2, 8, dtype=torch.double, requires_grad=True))


    for images, labels in loader:
        train_step(images, labels)
    ```

    ## Fix safety

    There is no fix: the check belongs in a test, which the author has to write.

    ## References

    - [torch.autograd.gradcheck](https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html)
    - [PyTorch performance tuning guide: disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis)
    """
    name = module.qualified(call.func)
    if name not in _CHECKS or optional(module, call):
        return
    hot = places.hot(module, call)
    if hot is not None:
        yield Finding(
            call,
            f"`{name.rpartition('.')[2]}` runs its function twice per input element at every step; "
            "move it to a test",
            related=((hot.path[0] if hot.path else hot.loop, reason(hot)),),
        )

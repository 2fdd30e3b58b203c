"""TL412: a Python loop does for each element of a tensor what one call does for all."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .elementloops import element_loop


@rule(
    "TL412",
    "tensor-indexed-in-loop",
    severity=NOTE,
    fix="none",
    on=(cst.For, cst.ListComp),
    mentions=("torch", "for "),
    opt_in=True,
    remedy="Compute on the whole tensor at once, or map over it with `torch.vmap`",
)
def tensor_indexed_in_loop(loop: cst.For | cst.ListComp, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds Python loops over a dimension of a tensor on the device whose iterations compute with one element
    each and do not depend on each other. The rule ignores recurrences, branches, parts of different lengths,
    and anything that only makes sense for one element at a time. The rule is off unless selected: computing a
    whole batch at once also takes more memory.

    ## Why is this bad?

    Every operation in every iteration is a separate kernel, launched from Python, that uses a small part of
    the device for a short time.

    ## Example

    ```python
    losses = [F.mse_loss(prediction[i], target[i]) for i in range(prediction.shape[0])]
    ```

    ## Use instead

    ```python
    losses = F.mse_loss(prediction, target, reduction="none").flatten(1).mean(1)
    ```

    Where no function takes the additional dimension, `torch.vmap` adds it.

    ## Fix safety

    There is no fix: how to vectorize the loop depends on its body.

    ## References

    - [torch.vmap](https://docs.pytorch.org/docs/stable/generated/torch.vmap.html)
    - [Broadcasting semantics](https://docs.pytorch.org/docs/stable/notes/broadcasting.html)
    """
    if is_test(module):
        return
    found = element_loop(module, loop)
    if found is None:
        return
    yield Finding(
        loop,
        f"each iteration launches kernels for one element of `{module.source(found.tensor)}`; "
        "use the whole tensor or `torch.vmap`",
        related=((found.work, "computed in each iteration"),),
    )

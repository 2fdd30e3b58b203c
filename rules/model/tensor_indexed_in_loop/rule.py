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
    remedy="Compute with the whole tensor, or map over it with `torch.vmap`",
)
def tensor_indexed_in_loop(loop: cst.For | cst.ListComp, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds Python loops over a dimension of a tensor on the device whose rounds compute with one element each,
    and do not depend on one another. Recurrences, branches, parts of different lengths and anything that only
    makes sense one by one are left alone. The rule is off until it is selected: whether a batch is computed
    at once is a matter of memory, too.

    ## Why is this bad?

    Every operation of every round is a kernel of its own, launched by Python, that keeps a small part of the
    device busy for a moment.

    ## Example

    ```python
    losses = [F.mse_loss(prediction[i], target[i]) for i in range(prediction.shape[0])]
    ```

    ## Use instead

    ```python
    losses = F.mse_loss(prediction, target, reduction="none").flatten(1).mean(1)
    ```

    Where no function takes the additional dimension, `torch.vmap` makes one.

    ## Fix safety

    There is no fix, since there are many ways to write it.

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
        f"each round gives the device work for one element of `{module.source(found.tensor)}`; "
        "compute with the whole tensor, or map over it with `torch.vmap`",
        related=((found.work, "what each round computes"),),
    )

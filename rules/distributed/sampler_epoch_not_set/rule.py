"""TL705: a distributed sampler that draws the same order in every epoch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import safe
from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module

from ..shares import same_order
from .epochs import telling_epoch


@rule(
    "TL705",
    "sampler-epoch-not-set",
    severity=ERROR,
    fix="safe",
    measured=False,
    on=cst.Call,
    mentions=("DistributedSampler", "DataLoader"),
    remedy="Call the `set_epoch` of this sampler at the start of each epoch",
)
def sampler_epoch_not_set(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds a `DistributedSampler` that shuffles, and whose loader is trained on in a loop over epochs, in a
    file in which nothing calls `set_epoch`.

    Nothing is said of samplers for evaluation, of `shuffle=False`, where a framework sees to it, and where
    functions of other files get the loader or the sampler, since they may do it.

    ## Why is this bad?

    The sampler makes its order from its seed and the number of the epoch. Without `set_epoch` that number
    stays 0: each epoch has the same batches in the same order, and each process sees the same part of
    the data all the time. The program asks for shuffling, and shuffles once.

    ## Example

    ```python
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler)
    for epoch in range(90):
        for images, labels in loader:
            train(images, labels)
    ```

    ## Use instead

    ```python
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            train(images, labels)
    ```

    ## Fix safety

    Safe: each epoch gets an order of its own, which is what `shuffle=True`, the default, asks for, and the
    same one in every run. There is a fix where the loop counts over a `range`, and where a variable, or
    an attribute that the constructor sets, certainly holds the sampler, or the loader that has it.

    ## References

    - [torch.utils.data.distributed.DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
    """
    found = same_order(module, call)
    if found is None:
        return
    loop = found.loop
    yield Finding(
        call,
        "this sampler draws the same order in every epoch: nothing calls its `set_epoch`",
        fix=safe(module, "Call `set_epoch` at the start of each epoch", telling_epoch(module, call, found)),
        related=(
            (
                loop.test if isinstance(loop, cst.While) else loop.target,
                "each round of this loop is one epoch",
            ),
        ),
    )

"""TL705: a distributed sampler that draws the same order in every epoch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import unsafe
from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module

from ..shares import same_order
from .epochs import telling_epoch


@rule(
    "TL705",
    "sampler-epoch-not-set",
    severity=ERROR,
    fix="unsafe",
    measured=False,
    on=cst.Call,
    mentions=("DistributedSampler", "DataLoader"),
    remedy="Call `set_epoch` of this sampler at the start of each epoch",
)
def sampler_epoch_not_set(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds a shuffling `DistributedSampler` whose loader is used for training in a loop over epochs, in a file
    that never calls `set_epoch`.

    The rule ignores samplers for evaluation, `shuffle=False`, programs in which a framework calls it, and
    samplers or loaders that are passed to functions of other files, which may call it.

    ## Why is this bad?

    The sampler derives its order from its seed and the epoch number. Without `set_epoch` the number stays 0:
    every epoch has the same batches in the same order, and each process sees the same part of the data every
    time. The data is shuffled only once.

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

    Unsafe: each epoch gets a different order, as `shuffle=True`, the default, promises, where it had the same
    one before. The order is the same in every run. The fix is offered if the loop iterates over a `range` and
    a variable, or an attribute set in the constructor, certainly holds the sampler or its loader.

    ## References

    - [torch.utils.data.distributed.DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
    """
    found = same_order(module, call)
    if found is None:
        return
    loop = found.loop
    yield Finding(
        call,
        "this sampler shuffles in the same order every epoch, because `set_epoch` is never called",
        fix=unsafe(
            module,
            "Call `set_epoch` at the start of each epoch",
            telling_epoch(module, call, found),
            risk="each epoch has another order, as shuffling promises, and results differ from earlier runs",
        ),
        related=(
            (
                loop.test if isinstance(loop, cst.While) else loop.target,
                "each iteration of this loop is one epoch",
            ),
        ),
    )

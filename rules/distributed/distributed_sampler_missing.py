"""TL704: every process goes through all of the data."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module

from .shares import whole_data


@rule(
    "TL704",
    "distributed-sampler-missing",
    severity=ERROR,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("DataLoader", "DataParallel|fully_shard|deepspeed|replicate"),
    remedy=(
        "Pass `sampler=DistributedSampler(…)` in the place of `shuffle`, and tell it each epoch by "
        "`set_epoch`"
    ),
)
def distributed_sampler_missing(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds loaders without a sampler over whose batches a model is trained that is wrapped for several
    processes: in `DistributedDataParallel`, in FSDP, or as an engine of DeepSpeed.

    Loaders that are made for one process only are left alone, and so are datasets that hold a share of the
    data already, random streams that are seeded by rank, and programs in which Accelerate, Lightning or
    another framework hands out the data.

    ## Why is this bad?

    Each process has a loader of its own. Without `DistributedSampler`, which gives it its share, each goes
    through all of the data: an epoch on eight devices takes as long as on one, and eight times as many steps
    as it should. Where the processes are seeded alike, or do not shuffle, all of them compute the same
    batches, and the average of their gradients is the gradient of one.

    ## Example

    ```python
    model = DistributedDataParallel(model, device_ids=[rank])
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    for epoch in range(90):
        for images, labels in loader:
            train(model, images, labels)
    ```

    ## Use instead

    ```python
    model = DistributedDataParallel(model, device_ids=[rank])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler)
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            train(model, images, labels)
    ```

    ## Fix safety

    There is no fix: the batch size and the learning rate were chosen for the number of steps that an epoch
    has now.

    ## References

    - [torch.utils.data.distributed.DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
    - [Multi-GPU training with DDP: distributing input data](https://docs.pytorch.org/tutorials/beginner/ddp_series_multigpu.html)
    """
    found = whole_data(module, call)
    if found is None:
        return
    data = "goes through all of the data" if found.shuffled else "computes the same batches"
    yield Finding(
        call,
        f"every process {data}: this loader has no `DistributedSampler` to give each its share",
        related=((found.wrapper.call, "spreads the model over several processes"),),
    )

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
    remedy="Pass `sampler=DistributedSampler(…)` instead of `shuffle`, and call `set_epoch` every epoch",
)
def distributed_sampler_missing(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds loaders without a sampler whose batches train a model that is wrapped for several processes: in
    `DistributedDataParallel`, in FSDP, or as a DeepSpeed engine.

    The rule ignores loaders created in one process only, datasets that already hold one share of the data,
    random streams seeded by rank, and programs in which Accelerate, Lightning or another framework
    distributes the data.

    ## Why is this bad?

    Each process has its own loader. Without a `DistributedSampler`, which gives each process its share, every
    process iterates over all of the data: on eight devices an epoch takes as long as on one device and trains
    on every sample eight times. If the processes use the same seed or do not shuffle, all of them compute the
    same batches, and averaging their gradients changes nothing.

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

    There is no fix: batch size and learning rate were chosen for the current number of steps per epoch.

    ## References

    - [torch.utils.data.distributed.DistributedSampler](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler)
    - [Multi-GPU training with DDP: distributing input data](https://docs.pytorch.org/tutorials/beginner/ddp_series_multigpu.html)
    """
    found = whole_data(module, call)
    if found is None:
        return
    what = "trains on the full dataset" if found.shuffled else "computes the same batches"
    yield Finding(
        call,
        f"every process {what}, because this loader has no `DistributedSampler`",
        related=((found.wrapper.call, "the model is distributed here"),),
    )

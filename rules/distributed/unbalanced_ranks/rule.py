"""TL711: in each step all ranks wait for the one with the longest batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module

from .balance import unbalanced


@rule(
    "TL711",
    "unbalanced-ranks",
    severity=NOTE,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("collate_fn", "DistributedDataParallel|FullyShardedDataParallel|fully_shard", "backward"),
    opt_in=True,
    remedy="Draw the batches by a `batch_sampler` that puts items of like length together",
)
def unbalanced_ranks(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds loaders whose collate function pads each batch to its own longest item, and on whose batches a model
    in `DistributedDataParallel` or FSDP is trained, though nothing groups items by length.

    ## Why is this bad?

    The ranks exchange gradients in every step, so that all of them take as long as the slowest, the one that
    drew the longest item. The more ranks, the likelier it is that one of them has a long one, while the
    others wait for it.

    ## Example

    ```python
    sampler = DistributedSampler(texts)
    loader = DataLoader(texts, batch_size=32, sampler=sampler, collate_fn=pad_to_longest)
    model = DDP(Encoder().to(rank), device_ids=[rank])
    ```

    ## Use instead

    A batch sampler that draws items of like length for all ranks in a step, or that fills batches up to a
    number of tokens:

    ```python
    sampler = DistributedLengthGroupedSampler(batch_size=32, dataset=texts)
    loader = DataLoader(texts, batch_size=32, sampler=sampler, collate_fn=pad_to_longest)
    model = DDP(Encoder().to(rank), device_ids=[rank])
    ```

    ## Fix safety

    There is no fix: grouping changes which items meet in a batch.

    ## References

    - [PyTorch performance tuning guide: load-balance workload in a distributed setting](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#load-balance-workload-in-a-distributed-setting)
    """
    found = unbalanced(module, call)
    if found is None:
        return
    yield Finding(
        call,
        "batches are as long as their longest item, and all ranks wait for the longest batch; "
        "draw items of like length together",
        related=((found.padded, "padded here"), (found.wrapper.call, "the ranks wait for one another here")),
    )

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
    remedy="Use a `batch_sampler` that groups items of similar length",
)
def unbalanced_ranks(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds loaders whose collate function pads each batch to its longest item and whose batches train a model
    in `DistributedDataParallel` or FSDP, if nothing groups items by length.

    ## Why is this bad?

    The ranks synchronize gradients in every step, so each step takes as long as on the slowest rank, the one
    with the longest item. The more ranks there are, the more often one of them has a long item and all others
    wait.

    ## Example

    ```python
    sampler = DistributedSampler(texts)
    loader = DataLoader(texts, batch_size=32, sampler=sampler, collate_fn=pad_to_longest)
    model = DDP(Encoder().to(rank), device_ids=[rank])
    ```

    ## Use instead

    A batch sampler that draws items of similar length for all ranks in a step, or that fills batches up to a
    number of tokens:

    ```python
    sampler = DistributedLengthGroupedSampler(batch_size=32, dataset=texts)
    loader = DataLoader(texts, batch_size=32, sampler=sampler, collate_fn=pad_to_longest)
    model = DDP(Encoder().to(rank), device_ids=[rank])
    ```

    ## Fix safety

    There is no fix: grouping changes which items end up in the same batch.

    ## References

    - [PyTorch performance tuning guide: load-balance workload in a distributed setting](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#load-balance-workload-in-a-distributed-setting)
    """
    found = unbalanced(module, call)
    if found is None:
        return
    yield Finding(
        call,
        "batches are padded to their longest item, so all ranks wait for the longest batch of each step",
        related=((found.padded, "padded here"), (found.wrapper.call, "the ranks are synchronized here")),
    )

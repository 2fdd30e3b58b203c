"""TL701: one process that drives several devices."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .replication import Replication, replication


@rule(
    "TL701",
    "data-parallel",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("DataParallel|data_parallel",),
    lasting=True,
)
def data_parallel(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `nn.DataParallel` and its functional form `nn.parallel.data_parallel`.

    The finding is of low impact, because the remedy is to rewrite the program for several processes. It is a
    note if the program can also be launched as several processes and only falls back to `DataParallel`. The
    rule ignores wrappers with a single device, which split nothing, and wrappers that only serve to match the
    parameter names in a checkpoint.

    ## Why is this bad?

    A single process drives all devices. In each forward pass it copies the model from the first device to all
    others, splits the batch, runs one thread per device, and gathers the outputs on the first device, which
    therefore needs more memory. The backward pass reduces all gradients there. The threads compete for the
    interpreter lock (GIL). `DistributedDataParallel` runs one process per device, keeps the replicas, and
    overlaps the gradient all-reduce with the backward pass. It also works across machines. PyTorch recommends
    it even on a single machine.

    ## Example

    ```python
    model = nn.DataParallel(Net().cuda())
    ```

    ## Use instead

    ```python
    # torchrun --nproc-per-node=gpu train.py
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = DistributedDataParallel(Net().to(device), device_ids=[device])
    ```

    The loader then needs a `DistributedSampler`, and its batch size is the batch size per device.

    ## Fix safety

    There is no fix: the program has to be launched as several processes, and each of them has to load its own
    share of the data.

    ## References

    - [PyTorch performance tuning guide: use efficient data-parallel backend](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Use nn.parallel.DistributedDataParallel instead of multiprocessing or nn.DataParallel](https://docs.pytorch.org/docs/stable/notes/cuda.html#use-nn-parallel-distributeddataparallel-instead-of-multiprocessing-or-nn-dataparallel)
    """
    found = replication(module, call)
    if found is None:
        return
    remedy = "Launch one process per device, and wrap the model in `DistributedDataParallel`"
    if found is Replication.FALLBACK:
        remedy = "Remove `DataParallel`, and launch one process per device"
    yield Finding(
        call,
        "`DataParallel` copies the model to every device in each forward pass; use one process per device",
        severity=NOTE if found is Replication.FALLBACK else None,
        remedy=remedy,
        slight="a process per device is a rewrite",
    )

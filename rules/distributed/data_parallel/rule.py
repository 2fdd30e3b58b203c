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

    Finds `nn.DataParallel` and its function `nn.parallel.data_parallel`.

    Where the program can be started as several processes, and takes `DataParallel` otherwise, that is a note.
    Nothing is said of a wrapper that is given one device, since it splits nothing, nor of one that is only
    there for the names of the parameters in a checkpoint.

    ## Why is this bad?

    One process drives all devices. In each forward pass it copies the model from the first device to all
    others, splits the batch, runs a thread for each device, and gathers the outputs on the first, which needs
    more memory than the others for that; the backward pass adds up the gradients there. The threads share one
    interpreter and wait for one another. `DistributedDataParallel` has a process for each device, keeps the
    replicas, and averages the gradients while the backward pass still runs. It works across machines, too.
    PyTorch recommends it even on one machine.

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

    The loader then needs a `DistributedSampler`, and its batch size is that of one device.

    ## Fix safety

    There is no fix: the program has to be started as several processes, and each of them has to take its
    share of the data.

    ## References

    - [PyTorch performance tuning guide: use efficient data-parallel backend](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Use nn.parallel.DistributedDataParallel instead of multiprocessing or nn.DataParallel](https://docs.pytorch.org/docs/stable/notes/cuda.html#use-nn-parallel-distributeddataparallel-instead-of-multiprocessing-or-nn-dataparallel)
    """
    found = replication(module, call)
    if found is None:
        return
    several = "run a process for each device, with `DistributedDataParallel` in training"
    remedy = "Run a process for each device, and wrap its model in `DistributedDataParallel`"
    if found is Replication.FALLBACK:
        several = "start the program as several processes where there are several devices"
        remedy = "Remove `DataParallel`, and start the program as several processes"
    yield Finding(
        call,
        f"`DataParallel` copies the model to every device in each forward pass, from one process; {several}",
        severity=NOTE if found is Replication.FALLBACK else None,
        remedy=remedy,
    )

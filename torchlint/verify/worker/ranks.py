"""A process among those of its program: how they find each other, wait for each other and agree."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch

from torchlint.verify.worker.job import Job

if TYPE_CHECKING:
    from torchlint.verify.worker.device import Device


TIMEOUT = timedelta(minutes=30)
"""How long a rank waits for the others: torch's own default, so that no program is given up earlier."""


class Alone:
    """The only process of its program: there is nobody to wait for."""

    count = 1

    def meet(self) -> None:
        """Wait until every process of the program is here."""

    def any(self, flag: bool) -> bool:
        """Return whether ``flag`` holds in any process of the program; all get the same answer."""
        return flag


class Rank(Alone):
    """One of several. The harness talks in a group of its own, on the host, that no program knows of."""

    def __init__(self, count: int, group: Any) -> None:
        self.count, self._group = count, group

    def meet(self) -> None:
        # Not a barrier: torch would choose a device for it, and that may be the GPU.
        self.any(False)

    def any(self, flag: bool) -> bool:
        told = torch.tensor(int(flag), device="cpu")
        options = torch.distributed.AllreduceOptions()
        options.reduceOp = torch.distributed.ReduceOp.MAX
        self._group.allreduce([told], options).wait()
        return bool(told)


def join(job: Job, device: Device) -> Alone:
    """Let the processes of a program find each other, and make the process group of a case.

    They meet through a file: a port that was free a moment ago may be taken by now, and a file is gone with
    its folder. A rank of a case on a GPU has the one of its number, and NCCL; one on the processor has
    gloo. A script chooses for itself, and calls ``init_process_group`` by itself.
    """
    if job.ranks == 1:
        return Alone()
    import torch.distributed as dist

    # What torchrun sets for several processes comes too late for a torch that is loaded already.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    store = dist.FileStore(job.meeting, job.ranks)
    if job.form == "case":
        if device.kind == "cuda":
            torch.cuda.set_device(job.rank)
        backend = "nccl" if device.kind == "cuda" else "gloo"
        dist.init_process_group(backend, store=store, rank=job.rank, world_size=job.ranks)
    own = dist.PrefixStore("torchlint", store)
    return Rank(job.ranks, dist.ProcessGroupGloo(own, job.rank, job.ranks, TIMEOUT))

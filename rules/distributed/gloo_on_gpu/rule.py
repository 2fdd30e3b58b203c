"""TL710: the ranks exchange tensors of an accelerator over gloo."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from ..collectives import goes_over_accelerator, group_made, groups
from .backends import depends_on_machine, trains_on_cpu, wrapped_on_accelerator


@rule(
    "TL710",
    "gloo-on-gpu",
    severity=WARNING,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("gloo|GLOO", "init_process_group|new_group|init_distributed"),
)
def gloo_on_gpu(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds process groups whose back end is gloo, where the file wraps a model on the GPU for them, or hands
    tensors of the GPU to their collective operations. A back end that depends on the machine, one of several
    (`cpu:gloo,cuda:nccl`), a second group for objects and barriers, and systems without NCCL are left alone.

    A program that trains on CPUs only gets the note that oneCCL exists.

    ## Why is this bad?

    gloo works in host memory. Every tensor of a GPU is copied there, sent, added up by the CPU and copied
    back, while NCCL sends from GPU to GPU and adds up there. With `DistributedDataParallel` that is all
    gradients in every step.

    ## Example

    ```python
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(Net().to(rank), device_ids=[rank])
    ```

    ## Use instead

    ```python
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    model = DDP(Net().to(rank), device_ids=[rank])
    ```

    Where objects or tensors of the CPU are exchanged as well, `"cpu:gloo,cuda:nccl"` has both.

    ## Fix safety

    There is no fix: NCCL wants a GPU of its own for each rank, and takes no tensors of the CPU.

    ## References

    - [Which backend to use?](https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use)
    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if is_test(module):
        return
    group = group_made(module, call)
    if group is None or group.backend != "gloo" or group.alone or depends_on_machine(module, group):
        return
    if group.optional and any(
        other.named is group.named and module.tree.standing(other.call) < module.tree.standing(call)
        for other in groups(module)
    ):
        # One option, one finding.
        return
    place = wrapped_on_accelerator(module) if group.is_default else None
    if place is None:
        place = goes_over_accelerator(module, group)
    if place is not None:
        where = "by default, gloo" if group.optional else "gloo"
        yield Finding(
            call,
            f"{where} takes every tensor of the GPU through host memory and adds up on the CPU; use `nccl`",
            related=((place, "tensors of the GPU go over it"),),
            remedy="Use `nccl`",
        )
    elif group.is_default and trains_on_cpu(module):
        yield Finding(
            call,
            "on Intel CPUs, oneCCL (`ccl`) exchanges the gradients faster than gloo does",
            severity=NOTE,
            remedy="Import `oneccl_bindings_for_pytorch`, and use `ccl`",
        )

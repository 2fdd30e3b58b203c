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

    Finds process groups with the gloo backend in files that wrap a GPU model for them or pass GPU tensors to
    their collectives. The rule ignores backends chosen by machine, combined backends (`cpu:gloo,cuda:nccl`),
    additional groups for objects and barriers, and systems without NCCL.

    For programs that train on CPUs only, a note mentions oneCCL.

    ## Why is this bad?

    gloo works in host memory. Each GPU tensor is copied to the host, sent, reduced by the CPU and copied
    back, while NCCL transfers and reduces on the GPUs directly. With `DistributedDataParallel` this affects
    all gradients in every step.

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

    To exchange objects or CPU tensors as well, use `"cpu:gloo,cuda:nccl"`.

    ## Fix safety

    There is no fix: NCCL needs a separate GPU for each rank and does not support CPU tensors.

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
        what = "the default backend, gloo," if group.optional else "gloo"
        yield Finding(
            call,
            f"{what} copies GPU tensors to host memory and reduces them on the CPU; use `nccl`",
            related=((place, "GPU tensors are exchanged here"),),
            remedy="Use the `nccl` backend",
        )
    elif group.is_default and trains_on_cpu(module):
        yield Finding(
            call,
            "on Intel CPUs, the oneCCL backend (`ccl`) is faster than gloo",
            severity=NOTE,
            remedy="Import `oneccl_bindings_for_pytorch`, and use the `ccl` backend",
        )

"""TL706: a model that is sharded as one unit."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .parallelism import Parallelism, Wrapping
from .sharding import has_second_generation, single_unit, superseded


@rule(
    "TL706",
    "fsdp-single-unit",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("FullyShardedDataParallel|fully_shard",),
    lasting=True,
)
def fsdp_single_unit(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds models passed as a whole to `FullyShardedDataParallel` without an `auto_wrap_policy`, or to
    `fully_shard`, in a file that shards no parts of a model.

    If every torch release that the project supports has `fully_shard` (since 2.6), other uses of
    `FullyShardedDataParallel` are reported once as a note, because PyTorch deprecates FSDP1.

    ## Why is this bad?

    FSDP gathers a unit as a whole before its forward pass. With a single unit, all parameters are on each
    device at the same time, and sharding only saves memory for the optimizer state and between steps. There
    is also no next unit to gather during computation, so the device waits for communication. With one unit
    per block, a device holds the parameters of one or two blocks, and gathers the next one while it computes.

    Sharding by block saves memory, not time: parameters are gathered again in the backward pass, and each
    block launches its own collectives. Batches that keep the device busy hide that; with small batches, a
    step takes longer.

    ## Example

    ```python
    model = Transformer(config).cuda()
    fully_shard(model)
    ```

    ## Use instead

    ```python
    model = Transformer(config).cuda()
    for block in model.blocks:
        fully_shard(block)
    fully_shard(model)
    ```

    With FSDP1, use a policy:

    ```python
    policy = ModuleWrapPolicy({Block})
    model = FullyShardedDataParallel(Transformer(config), auto_wrap_policy=policy)
    ```

    ## Fix safety

    There is no fix: which parts of the model form a unit is a decision for the author.

    ## References

    - [torch.distributed.fsdp.fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
    - [Advanced model training with FSDP: why an auto-wrap policy](https://docs.pytorch.org/tutorials/intermediate/FSDP_advanced_tutorial.html)
    - [Getting started with FSDP2: migration from FSDP1](https://docs.pytorch.org/tutorials/intermediate/FSDP_tutorial.html)
    """
    wrapper = Parallelism.of(module).wrapper(call)
    if wrapper is None:
        return
    if single_unit(module, wrapper):
        remedy = "Apply `fully_shard` to each block, and then to the model"
        if wrapper.wrapping is Wrapping.FSDP and not has_second_generation(module):
            remedy = "Pass an `auto_wrap_policy` that wraps each block"
        yield Finding(
            call,
            "sharding the model as one unit gathers all parameters at once, without overlapping computation",
            remedy=remedy,
        )
    elif superseded(module, wrapper):
        yield Finding(
            call,
            "`FullyShardedDataParallel` (FSDP1) is deprecated in favor of `fully_shard`",
            severity=NOTE,
            remedy="Apply `fully_shard` to each block, and then to the model",
        )

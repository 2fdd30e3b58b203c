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
)
def fsdp_single_unit(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds models that are given to `FullyShardedDataParallel` without an `auto_wrap_policy`, or to
    `fully_shard`, as a whole, where nothing in the file shards the parts of any model.

    Where every release that may run the program has `fully_shard` (2.6), the first use of
    `FullyShardedDataParallel` is a note otherwise: PyTorch calls it FSDP1, and deprecated. There it is
    `fully_shard` that whole models are to be sharded with.

    ## Why is this bad?

    A unit is gathered as a whole before its forward pass. With one unit all parameters are on each device at
    once, so that sharding saves only what the optimizer keeps, and what gradients and parameters take between
    steps; and there is no next unit to gather while this one computes: the device waits. With a unit for each
    block it holds the parameters of a block or two, and gathers the next one meanwhile.

    What this gains is memory. In time it costs the gathers of the backward pass and one more launch for each
    block, which batches hide that give the device long enough to compute; small ones take longer.

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

    With FSDP1 a policy does the same:

    ```python
    policy = ModuleWrapPolicy({Block})
    model = FullyShardedDataParallel(Transformer(config), auto_wrap_policy=policy)
    ```

    ## Fix safety

    There is no fix: which parts of the model are the blocks is for the author to say.

    ## References

    - [torch.distributed.fsdp.fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
    - [Advanced model training with FSDP: why an auto-wrap policy](https://docs.pytorch.org/tutorials/intermediate/FSDP_advanced_tutorial.html)
    - [Getting started with FSDP2: migration from FSDP1](https://docs.pytorch.org/tutorials/intermediate/FSDP_tutorial.html)
    """
    wrapper = Parallelism.of(module).wrapper(call)
    if wrapper is None:
        return
    if single_unit(module, wrapper):
        how = "apply `fully_shard` to each block before the model"
        if wrapper.wrapping is Wrapping.FSDP and not has_second_generation(module):
            how = "pass an `auto_wrap_policy` that makes a unit of each block"
        what = (
            "the model is sharded as one unit: all of its parameters are gathered at once, before it computes"
        )
        yield Finding(call, f"{what}; {how}", remedy=f"{how[0].upper()}{how[1:]}")
    elif superseded(module, wrapper):
        yield Finding(
            call,
            "`FullyShardedDataParallel` is FSDP1, which PyTorch has deprecated for `fully_shard`",
            severity=NOTE,
            remedy="Apply `fully_shard` to each block, and then to the model",
        )

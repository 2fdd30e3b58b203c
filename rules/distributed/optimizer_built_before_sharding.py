"""TL707: an optimizer of parameters that the model no longer has."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name

from .parallelism import Wrapping
from .sharding import sharded_later


@rule(
    "TL707",
    "optimizer-built-before-sharding",
    severity=ERROR,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("FullyShardedDataParallel|fully_shard", "parameters"),
)
def optimizer_built_before_sharding(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds optimizers made with the parameters that a model has before it is given to
    `FullyShardedDataParallel` or `fully_shard`.

    `FullyShardedDataParallel(..., use_orig_params=True)` keeps the parameters, and nothing is said there;
    nor of `DistributedDataParallel`, which leaves them alone.

    ## Why is this bad?

    Sharding puts new parameters in the place of the old ones: one flat parameter for each unit with FSDP1,
    sharded tensors with `fully_shard`. The optimizer still has the old ones. They get no gradients, so that
    `step()` passes over them, and the model is not trained at all, without any error.

    ## Example

    ```python
    optimizer = AdamW(model.parameters(), lr=1e-3)
    fully_shard(model)
    ```

    ## Use instead

    ```python
    fully_shard(model)
    optimizer = AdamW(model.parameters(), lr=1e-3)
    ```

    ## Fix safety

    There is no fix: what stands between the two lines may need one of them.

    ## References

    - [FullyShardedDataParallel: the optimizer is initialized after wrapping](https://docs.pytorch.org/docs/stable/fsdp.html)
    - [torch.distributed.fsdp.fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
    """
    wrapper = sharded_later(module, call)
    if wrapper is None:
        return
    name = "fully_shard" if wrapper.wrapping is Wrapping.FULLY_SHARD else "FullyShardedDataParallel"
    yield Finding(
        call,
        f"this optimizer steps nothing: `{name}` puts other parameters in the place of these afterwards",
        related=((wrapper.call, "replaces the parameters"),),
        remedy=f"Make the optimizer after the call of `{last_name(wrapper.call.func)}`",
    )

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

    Finds optimizers created with the parameters of a model that is later passed to `FullyShardedDataParallel`
    or `fully_shard`.

    The rule ignores `FullyShardedDataParallel(..., use_orig_params=True)` and `DistributedDataParallel`,
    which keep the parameters.

    ## Why is this bad?

    Sharding replaces the parameters of the model: by one flat parameter per unit with FSDP1, by sharded
    tensors with `fully_shard`. The optimizer still holds the old ones. They receive no gradients, so `step()`
    skips them, and the model is not trained, without any error.

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

    There is no fix: code between the two lines may depend on their order.

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
        f"this optimizer has no effect: `{name}` later replaces its parameters",
        related=((wrapper.call, "the parameters are replaced here"),),
        remedy=f"Create the optimizer after the call of `{last_name(wrapper.call.func)}`",
    )

"""TL709: each rank keeps the whole state of Adam."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module

from .optimizerstate import whole_state


@rule(
    "TL709",
    "unsharded-optimizer-state",
    severity=NOTE,
    fix="none",
    on=cst.Call,
    mentions=("DistributedDataParallel", "Adam|LAMB", "backward"),
    opt_in=True,
    remedy="Use `ZeroRedundancyOptimizer`, or shard the model with `fully_shard`",
    advice=True,
    lasting=True,
)
def unsharded_optimizer_state(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds Adam and its variants over the parameters of a large model in `DistributedDataParallel`: a
    transformer, a diffusion model or a pretrained model. It reports once per file, and not if the file
    shards, compresses or freezes what would take the memory.

    ## Why is this bad?

    Adam keeps two values per parameter, and with `DistributedDataParallel` every rank keeps all of them: 8 GB
    on each GPU for a billion parameters in float32. With `ZeroRedundancyOptimizer` each rank keeps and steps
    only its share, and broadcasts the updated parameters. FSDP also shards gradients and parameters.

    ## Example

    ```python
    model = DDP(GPT(config).to(rank), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ```

    ## Use instead

    ```python
    model = DDP(GPT(config).to(rank), device_ids=[rank])
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=3e-4)
    ```

    ## Fix safety

    There is no fix: the optimizer state has to be consolidated before it is saved
    (`optimizer.consolidate_state_dict()`), and sharding only pays off if memory is short.

    ## References

    - [ZeroRedundancyOptimizer](https://docs.pytorch.org/docs/stable/distributed.optim.html#torch.distributed.optim.ZeroRedundancyOptimizer)
    - [Shard optimizer states with ZeroRedundancyOptimizer](https://docs.pytorch.org/tutorials/recipes/zero_redundancy_optimizer.html)
    """
    if not module.target.admits("1.10"):
        return
    wrapper = whole_state(module, call)
    if wrapper is None:
        return
    name = module.source(call.func).rpartition(".")[2]
    yield Finding(
        call,
        f"each rank keeps the full optimizer state of `{name}`, twice the size of the parameters",
        related=((wrapper.call, "the model is wrapped here"),),
    )

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
    remedy="Make it through `ZeroRedundancyOptimizer`, or shard the model by `fully_shard`",
    advice=True,
    lasting=True,
)
def unsharded_optimizer_state(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds Adam and its kin over the parameters of a large model in `DistributedDataParallel`: a transformer, a
    diffusion model, a pretrained model. It says so once a file, and not where anything shards, shortens or
    freezes what would take the memory.

    ## Why is this bad?

    Adam keeps two numbers for each parameter, and with `DistributedDataParallel` every rank keeps all of
    them: for a billion parameters in float32, 8 GB on each GPU. `ZeroRedundancyOptimizer` leaves each rank
    with its share of the state, steps that share, and hands the new parameters round. FSDP does so with
    gradients and parameters as well.

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

    There is no fix: checkpoints of the optimizer have to be gathered first
    (`optimizer.consolidate_state_dict()`), and whether memory is short is for the author to say.

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
        f"each rank keeps the whole state of `{name}`, twice the parameters; `ZeroRedundancyOptimizer` or "
        "FSDP leaves each with its share",
        related=((wrapper.call, "wraps the model"),),
    )

"""TL702: gradients are exchanged in every backward pass of a step, where once would do."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import unsafe
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name

from ..parallelism import Wrapping
from .gradientsync import exchange_once, needless_exchange


@rule(
    "TL702",
    "all-reduce-every-micro-step",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    mentions=(
        "DistributedDataParallel|FullyShardedDataParallel|fully_shard",
        "backward",
        "step(",
        "%|accum|micro",
    ),
    remedy="Run all passes but the last of a step, forward and backward, under `no_sync()`",
)
def all_reduce_every_micro_step(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds gradients that are accumulated over several backward passes of a model in `DistributedDataParallel`
    without `no_sync()`. With FSDP, where gradients that wait for their exchange are not sharded and take
    memory, it is a note: `no_sync()`, or `set_requires_gradient_sync(False)` of a model given to
    `fully_shard`.

    Nothing is said in a file that uses one of them, or `require_backward_grad_sync`, and of models that
    Accelerate, Lightning or DeepSpeed wrap, which see to it themselves.

    ## Why is this bad?

    Each backward pass averages all gradients over all ranks, though only the sum of them is needed, when the
    optimizer takes its step. With four passes to a step three quarters of what is sent is sent for nothing.

    ## Example

    ```python
    model = DDP(Net().to(rank), device_ids=[rank])
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Use instead

    ```python
    model = DDP(Net().to(rank), device_ids=[rank])
    for i, (x, y) in enumerate(loader):
        with nullcontext() if (i + 1) % accumulate == 0 else model.no_sync():
            loss = criterion(model(x), y) / accumulate
            loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Fix safety

    The fix is unsafe: sums are rounded in another order, hooks on gradients see those of one rank in all
    passes but the last, and buffers such as the statistics of batch norm are handed round less often. It is
    offered where the condition of the step stands in the loop itself and gives the same in front of the
    forward pass, where no step is taken anywhere else, and where nothing looks at gradients in between. There
    is none for FSDP.

    ## References

    - [DistributedDataParallel.no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync)
    - [FSDPModule.set_requires_gradient_sync](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
    - [PyTorch performance tuning guide: skip unnecessary all-reduce](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#skip-unnecessary-all-reduce-if-training-with-distributeddataparallel-and-gradient-accumulation)
    """
    if last_name(call.func) != "backward" or not may_repeat(module, call) or is_test(module):
        return
    found = needless_exchange(module, call)
    if found is None or not found.is_first:
        # With and without a scaler, one finding will do.
        return
    count = module.source(found.accumulation.count)
    step = found.accumulation.steps[0]
    related = ((found.wrapper.call, "wraps the model"), (step.node, "takes the step"))
    if found.is_sharded:
        how = (
            "`no_sync()`"
            if found.wrapper.wrapping is Wrapping.FSDP
            else "`set_requires_gradient_sync(False)`"
        )
        yield Finding(
            call,
            f"gradients are exchanged in each of the `{count}` backward passes of a step; if memory allows, "
            f"run all but the last under {how}",
            severity=NOTE,
            related=related,
            remedy=f"Run all passes but the last of a step under {how}, if memory allows",
        )
        return
    fix = unsafe(module, "Exchange gradients in the last pass only", exchange_once(module, found))
    yield Finding(
        call,
        f"gradients are exchanged in each of the `{count}` backward passes of a step; "
        "run all but the last under `no_sync()`",
        fix=fix,
        related=related,
    )

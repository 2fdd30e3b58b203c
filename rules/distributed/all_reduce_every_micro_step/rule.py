"""TL702: gradients are exchanged in every backward pass of a step, where once would do."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import unsafe
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat

from ..parallelism import Wrapping
from .gradientsync import exchange_once, needless_exchange


@rule(
    "TL702",
    "all-reduce-every-micro-step",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: ("backward",)},
    mentions=(
        "DistributedDataParallel|FullyShardedDataParallel|fully_shard",
        "backward",
        "step(",
        "%|accum|micro|chunk(",
    ),
    remedy="Run all but the last forward and backward pass of a step under `no_sync()`",
)
def all_reduce_every_micro_step(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds gradient accumulation over several backward passes of a model in `DistributedDataParallel` without
    `no_sync()`. For FSDP it is a note, because there unsynchronized gradients are not sharded and take
    memory: use `no_sync()`, or `set_requires_gradient_sync(False)` for a model sharded with `fully_shard`.

    The rule ignores files that already use one of these or `require_backward_grad_sync`, and models wrapped
    by Accelerate, Lightning or DeepSpeed, which handle it themselves.

    ## Why is this bad?

    Each backward pass averages all gradients over all ranks, although only their sum is needed, when the
    optimizer steps. With four backward passes per step, three quarters of the communication is wasted.

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

    Unsafe: sums are rounded in a different order, gradient hooks see the gradients of a single rank in all
    passes but the last, and buffers such as batch norm statistics are broadcast less often. The fix is
    offered if the condition of the optimizer step is in the same loop and has the same value before the
    forward pass, if nothing else steps the optimizer, and if nothing reads the gradients in between. There is
    no fix for FSDP.

    ## References

    - [DistributedDataParallel.no_sync](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html#torch.nn.parallel.DistributedDataParallel.no_sync)
    - [FSDPModule.set_requires_gradient_sync](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
    - [PyTorch performance tuning guide: skip unnecessary all-reduce](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#skip-unnecessary-all-reduce-if-training-with-distributeddataparallel-and-gradient-accumulation)
    """
    if not may_repeat(module, call) or is_test(module):
        return
    found = needless_exchange(module, call)
    if found is None or not found.is_first:
        # With and without a scaler, one finding will do.
        return
    count = module.source(found.accumulation.count)
    message = f"all `{count}` backward passes of a step synchronize gradients; only the last needs to"
    step = found.accumulation.steps[0]
    related = ((found.wrapper.call, "the model is wrapped here"), (step.node, "the optimizer steps here"))
    if found.is_sharded:
        how = (
            "`no_sync()`"
            if found.wrapper.wrapping is Wrapping.FSDP
            else "`set_requires_gradient_sync(False)`"
        )
        yield Finding(
            call,
            message,
            severity=NOTE,
            related=related,
            remedy=f"If memory allows, run all but the last pass of a step under {how}",
        )
        return
    fix = unsafe(
        module,
        "Use `no_sync()` for all but the last pass of a step",
        exchange_once(module, found),
        risk="sums are rounded differently, and gradient hooks see those of one rank before the last pass",
    )
    yield Finding(
        call,
        message,
        fix=fix,
        related=related,
    )

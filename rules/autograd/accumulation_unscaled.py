from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.microbatches import unscaled
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name


@rule(
    "TL306",
    "accumulation-unscaled",
    severity=WARNING,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("torch", "backward", "step(", "%|accum|micro"),
)
def accumulation_unscaled(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds loops that step the optimizer every so many iterations, to train with larger batches than fit into
    memory, while the loss of each iteration is an average over its own batch and is divided by nothing; and
    loops over the batches of one step, `for _ in range(accumulate)`, with such a loss.

    Nothing is said where the loss is a sum or is computed out of sight, where gradients, loss or learning
    rate are divided by the number of iterations anywhere, where a framework may do it, or where a model is
    merely trained less often than another.

    ## Why is this bad?
    `backward()` adds gradients up, where one batch of the full size would have averaged them: they are larger
    by the number of iterations, and so is every step of SGD. With Adam the size of the steps is the same, but
    gradients are clipped that would not have been, and decay and epsilon weigh less against them.

    ## Example
    ```python
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Use instead
    ```python
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Fix safety
    There is no fix: the results change, and a learning rate that was tuned without the division has to change
    with it.

    ## References
    - [Gradient accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
    - [Methods and tools for efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    if last_name(call.func) != "backward" or not may_repeat(module, call):
        return
    found = unscaled(module, call)
    if found is None:
        return
    assert found.step.subject is not None
    count = module.source(found.count)
    yield Finding(
        call,
        f"the gradients of `{count}` batches are added up for one step, and no loss is divided by `{count}`",
        related=((found.step.node, "takes the step"),),
        remedy=f"Divide the loss by `{count}` before its backward pass",
    )

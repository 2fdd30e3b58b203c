from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat

from .scaling import unscaled


@rule(
    "TL306",
    "accumulation-unscaled",
    severity=WARNING,
    fix="none",
    measured=False,
    on=cst.Call,
    named={cst.Call: ("backward",)},
    mentions=("torch", "backward", "step(", "%|accum|micro|chunk("),
)
def accumulation_unscaled(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds gradient accumulation that sums instead of averaging: loops that step the optimizer every few
    iterations, to train with batches larger than memory allows, although the loss of each iteration is an
    average over its own batch and is not divided by the number of iterations. Loops over the batches of a
    single step, such as `for _ in range(accumulate)`, are found as well.

    The rule ignores losses that are sums, losses that are computed in other files, code that divides
    gradients, loss or learning rate by the number of iterations anywhere, code where a framework may do so,
    and models that are simply trained less often than another.

    ## Why is this bad?
    `backward()` sums gradients, where a single large batch would have averaged them. The gradients are larger
    by a factor of the number of iterations, and so is every step of SGD. With Adam the step size is the same,
    but gradient clipping triggers earlier, and weight decay and epsilon carry less weight relative to the
    gradients.

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
    There is no fix: it would change the results, and a learning rate that was tuned without the division
    would have to change too.

    ## References
    - [Gradient accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation)
    - [Methods and tools for efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    if not may_repeat(module, call):
        return
    found = unscaled(module, call)
    if found is None:
        return
    step = found.steps[0]
    assert step.subject is not None
    count = module.source(found.count)
    yield Finding(
        call,
        f"the gradients of `{count}` batches are summed, not averaged, before each optimizer step",
        related=((step.node, "the optimizer steps here"),),
        remedy=f"Divide the loss by `{count}` before the backward pass",
    )

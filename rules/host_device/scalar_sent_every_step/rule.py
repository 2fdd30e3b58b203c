"""TL210 scalar-sent-every-step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat

from ..remedies import as_spelt, inline
from ..sending import place_of_sending
from .scalars import (
    SENDERS,
    chosen_number,
    filled_on_device,
    sent_each_step,
    sent_scalar,
)


@rule(
    "TL210",
    "scalar-sent-every-step",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: SENDERS},
    mentions=("torch", "tensor(|asarray("),
    remedy="Let the device fill it in, `torch.full((), …)`",
    follows=("TL201", "TL209"),
)
def scalar_sent_every_step(node: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python numbers that are sent to the accelerator in every iteration of a hot loop, or in every
    forward pass: `torch.tensor(number, device=device)`, `torch.tensor(number).to(device)`,
    `x.new_tensor(number)`, and lists of nothing but one number.

    ## Why is this bad?

    `torch.tensor` makes the tensor in host memory and copies its few bytes through pageable memory, and
    the host waits until everything that was queued before the copy is done. `torch.full` hands the number
    to a kernel, as an argument: nothing is copied and nothing waits.

    ## Example

    ```python
    for x, y in loader:
        margin = torch.tensor(0.5, device=device)
        loss = torch.maximum(margin, distance(model(x), y)).mean()
    ```

    ## Use instead

    ```python
    for x, y in loader:
        margin = torch.full((), 0.5, device=device)
        loss = torch.maximum(margin, distance(model(x), y)).mean()
    ```

    Often the number itself will do (`distance(…).clamp(min=0.5)`). A number that never changes can be
    made a tensor once, before the loop or as a buffer of the module. Several numbers, arrays and indices
    are reported as TL213, and numbers that are stored in a tensor (`x[rows] = 1.0`) as TL215.

    A number that was read from the device (`torch.tensor(loss.item(), device=device)`) is left to
    item-in-hot-loop (TL202), and what `torch.compile` compiles is left alone.

    ## Fix safety

    The fix is safe: the tensor has the same value, dtype, shape and device. It is unsafe

    * without `dtype=`, where the file does not show that the number is one of Python's own: a number of
      NumPy brings a dtype along;
    * with a dtype that may be too small for the number: `torch.full` refuses to overflow;
    * for `[number] * n`, which is a tensor of floats if `n` is 0.

    No fix is offered for a number that a cast to whole numbers cuts off.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    * [torch.full](https://docs.pytorch.org/docs/stable/generated/torch.full.html)
    """
    if not may_repeat(module, node):
        return
    if chosen_number(module, node) and (hot := place_of_sending(module, node)) is not None:
        message = f"`torch.where` copies this number to the device, and the host waits {when(module, hot)}"
        number = inline(module, node.args[0].value) if node.args else "…"
        remedy = as_spelt(module, node, f"Give it the number itself: `torch.where(…, …, {number})`")
        related = trail(hot)
        yield Finding(node, f"{message}; it takes the number itself", related=related, remedy=remedy)
        return
    sent = sent_scalar(module, node)
    hot = sent_each_step(module, sent) if sent is not None else None
    if sent is None or hot is None:
        return
    name = module.source(node.func) if module.qualified(node.func) is not None else "new_tensor"
    message = (
        f"`{name}` copies a number from host memory, and the host waits for the device {when(module, hot)}"
    )
    remedy = f"Let the device fill it in: `torch.full({sent.size}, {inline(module, sent.number)}, …)`"
    yield Finding(
        node,
        message,
        filled_on_device(module, sent),
        related=trail(hot),
        remedy=as_spelt(module, node, remedy),
    )

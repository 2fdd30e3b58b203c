"""TL210 scalar-sent-every-step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_recur

from ..neighbours import beside_staying_wait
from ..purpose import slight_wait
from ..remedies import as_spelt, inline
from ..scalars import (
    SENDERS,
    chosen_number,
    filled_on_device,
    sent_each_step,
    sent_scalar,
)
from ..sending import beside, place_of_sending
from ..stakes import BESIDE


@rule(
    "TL210",
    "scalar-sent-every-step",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: SENDERS},
    mentions=("torch", "tensor(|asarray("),
    remedy="Fill on the device: `torch.full((), …)`",
    follows=("TL201", "TL202", "TL208", "TL209", "TL210", "TL212", "TL213", "TL215"),
    synchronizes=True,
)
def scalar_sent_every_step(node: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python numbers that are copied to the accelerator in every iteration of a hot loop or in every
    forward pass: `torch.tensor(number, device=device)`, `torch.tensor(number).to(device)`,
    `x.new_tensor(number)`, and lists that repeat a single number.

    The rule ignores compiled code. Several numbers, arrays and indices are reported as TL213, and numbers
    that are assigned to elements of a tensor (`x[rows] = 1.0`) as TL215. For a number that was read from the
    device (`torch.tensor(loss.item(), device=device)`), TL202 reports the read.

    ## Why is this bad?

    `torch.tensor` creates the tensor in host memory and copies its few bytes from pageable memory, so the
    host waits until all work launched before the copy is done. `torch.full` passes the number to a kernel as
    an argument, without a copy and without synchronization.

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

    Often the number itself is enough (`distance(…).clamp(min=0.5)`). If the number never changes, create the
    tensor once, before the loop or as a buffer of the module.

    ## Fix safety

    Safe: the tensor has the same value, dtype, shape and device. The fix is unsafe

    - without `dtype=`, if the file does not show that the number is a Python number: a NumPy number
      determines the dtype;
    - for a parameter without an annotation that code elsewhere may pass a list or an array for;
    - with a dtype that may be too small for the number: `torch.full` raises an error on overflow;
    - for `[number] * n`, which is an empty tensor of floats if `n` is 0.

    There is no fix for a number that a cast to integers truncates.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.full](https://docs.pytorch.org/docs/stable/generated/torch.full.html)
    """
    if not may_recur(module, node):
        return
    if chosen_number(module, node) and (hot := place_of_sending(module, node)) is not None:
        message = f"`torch.where` synchronizes with the device to copy this number {when(module, hot)}"
        number = inline(module, node.args[0].value) if node.args else "…"
        remedy = as_spelt(module, node, f"Pass the number itself: `torch.where(…, …, {number})`")
        related = trail(hot)
        yield Finding(node, message, related=related, remedy=remedy, slight=beside(module, node))
        return
    sent = sent_scalar(module, node)
    hot = sent_each_step(module, sent) if sent is not None else None
    if sent is None or hot is None:
        return
    name = module.source(node.func) if module.qualified(node.func) is not None else "new_tensor"
    message = f"`{name}` synchronizes with the device to copy a number {when(module, hot)}"
    fix = filled_on_device(module, sent)
    remedy = f"Fill on the device: `torch.full({sent.size}, {inline(module, sent.number)}, …)`"
    filling = module.tree.call_given(node)
    if filling is not None and module.qualified(filling.func) == "torch.full":
        # Of a tensor it reads the number back.
        fix, remedy = None, f"Pass the number itself: `torch.full(…, {inline(module, sent.number)}, …)`"
    yield Finding(
        node,
        message,
        fix,
        related=trail(hot),
        remedy=as_spelt(module, node, remedy),
        slight=beside(module, node)
        or slight_wait(module, node, BESIDE if beside_staying_wait(module, node, hot) else None),
    )

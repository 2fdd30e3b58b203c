"""TL210 scalar-sent-every-step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.scalars import filled_on_device, sent_each_step, sent_scalar
from torchlint.semantics.synchronisation import trail, when


@rule(
    "TL210",
    "scalar-sent-every-step",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("torch", "tensor(|asarray("),
)
def scalar_sent_every_step(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python numbers that are sent to the accelerator in every iteration of a hot loop, or in every
    forward pass: `torch.tensor(number, device=device)`, `torch.tensor(number).to(device)`,
    `x.new_tensor(number)`, and lists of nothing but one number.

    ## Why is this bad?

    `torch.tensor` makes the tensor in host memory and copies its few bytes through pageable memory, and the
    host waits until everything that was queued before the copy is done. `torch.full` hands the number to a
    kernel, as an argument: nothing is copied and nothing waits.

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

    Often the number itself will do (`distance(…).clamp(min=0.5)`). A number that never changes can be made
    a tensor once, in front of the loop or as a buffer of the module.

    In a hot place `torch.tensor(number).to(device)` is reported here, and not as a tensor created on the
    host (TL201). A number that was read from the device (`torch.tensor(loss.item(), device=device)`) is left
    to item-in-hot-loop (TL202), and what `torch.compile` compiles is left alone.

    ## Fix safety

    The fix is safe: the tensor has the same value, dtype, shape and device. It is unsafe

    * without `dtype=`, where the file does not show that the number is one of Python's own: a number of NumPy
      brings a dtype along;
    * with a dtype that may be too small for the number: `torch.full` refuses to overflow;
    * for `[number] * n`, which is a tensor of floats if `n` is 0.

    No fix is offered for a number that a cast to whole numbers cuts off.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    * [torch.full](https://docs.pytorch.org/docs/stable/generated/torch.full.html)
    """
    if not module.may_repeat(call):
        return
    sent = sent_scalar(module, call)
    hot = sent_each_step(module, sent) if sent is not None else None
    if sent is None or hot is None:
        return
    name = module.source(call.func) if module.qualified(call.func) is not None else "new_tensor"
    message = (
        f"`{name}` copies a number from host memory, and the host waits for the device {when(module, hot)}"
    )
    yield Finding(call, message, filled_on_device(module, sent), related=trail(module, hot))

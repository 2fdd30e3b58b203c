"""TL210 scalar-sent-every-step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_repeat

from ..remedies import as_spelt, in_forward, inline, tight
from .indexing import (
    chosen_number,
    host_index,
    listed_indices,
    sent_by_assignment,
)
from .scalars import (
    SENDERS,
    filled_on_device,
    place_of_sending,
    sent_each_step,
    sent_scalar,
)


@rule(
    "TL210",
    "scalar-sent-every-step",
    severity=WARNING,
    fix="safe",
    on=(cst.Call, cst.Subscript),
    named={cst.Call: SENDERS},
    mentions=("torch", "tensor(|asarray(|["),
    remedy="Let the device fill it in, `torch.full((), …)`",
    follows=("TL201", "TL209"),
)
def scalar_sent_every_step(node: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python numbers that are sent to the accelerator in every iteration of a hot loop, or in every
    forward pass: `torch.tensor(number, device=device)`, `torch.tensor(number).to(device)`,
    `x.new_tensor(number)`, and lists of nothing but one number. Indexing sends numbers as well: the indices
    of `x[:, [2, 1, 0]]`, those of a tensor in host memory (`x[torch.randperm(n)]`), and the number in
    `x[rows] = 1.0`.

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

    Often the number itself will do (`distance(…).clamp(min=0.5)`). A number or index that never changes can
    be made a tensor once, before the loop or as a buffer of the module. `x.flip(1)` takes the place of
    `x[:, [2, 1, 0]]`, `torch.randperm(n, device=x.device)` makes the index where it is needed, and
    `x.index_fill_(0, rows, 1.0)` hands the number to a kernel. Slices need nothing of this, and neither does
    the assignment of a number to a slice or through a mask.

    A number that was read from the device (`torch.tensor(loss.item(), device=device)`) is left
    to item-in-hot-loop (TL202), and what `torch.compile` compiles is left alone.

    ## Fix safety

    The fix is safe: the tensor has the same value, dtype, shape and device. It is unsafe

    * without `dtype=`, where the file does not show that the number is one of Python's own: a number of NumPy
      brings a dtype along;
    * with a dtype that may be too small for the number: `torch.full` refuses to overflow;
    * for `[number] * n`, which is a tensor of floats if `n` is 0.

    No fix is offered for a number that a cast to whole numbers cuts off, and for what indexing sends.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    * [torch.full](https://docs.pytorch.org/docs/stable/generated/torch.full.html)
    """
    if not may_repeat(module, node):
        return
    if isinstance(node, cst.Subscript):
        yield from _sent_by_indexing(module, node)
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


def _sent_by_indexing(module: Module, node: cst.Subscript) -> Iterator[Finding]:
    index, number = listed_indices(module, node), None
    what, instead = "the list of indices", "make it a tensor of the device once"
    if index is None:
        index, what = host_index(module, node), "the index in host memory"
        instead = "make it with `device=`"
    if index is None:
        number, what = sent_by_assignment(module, node), "the number"
        instead = "let the device fill it in"
    sent = index or number
    hot = place_of_sending(module, node) if sent is not None else None
    if sent is not None and hot is not None:
        message = f"{what} is copied to the device, and the host waits for it {when(module, hot)}; {instead}"
        remedy = "Make the index on the device, with `device=…`"
        if number is not None:
            remedy = _assigned_on_device(module, node, number)
        elif instead.startswith("make it a tensor"):
            remedy = _made_once(module, sent, hot)
        remedy = as_spelt(module, node, remedy)
        yield Finding(sent, message, related=trail(hot), remedy=remedy)


def _made_once(module: Module, indices: cst.BaseExpression, hot: Hot) -> str:
    code = inline(module, indices)
    if in_forward(hot) and not hot.path:
        return f"Make it a buffer of the module: `self.register_buffer(…, torch.tensor({code}))`"
    return f"Make it once, before the loop: `torch.tensor({code}, device=…)`"


def _assigned_on_device(module: Module, node: cst.Subscript, number: cst.BaseExpression) -> str:
    """What fills in a number without sending it, by what the place is named by."""
    target, filled = inline(module, node.value), inline(module, number)
    indices = [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]
    if len(indices) == len(node.slice) and all(isinstance(index, cst.Integer) for index in indices):
        return f"Fill in place: `{inline(module, node)}.fill_({filled})`"
    if len(indices) == len(node.slice) == 1:
        return f"Fill in place: `{target}.index_fill_(0, {tight(module, indices[0])}.flatten(), {filled})`"
    # Through indices on the device only a tensor of the same dtype is assigned.
    return f"Assign a number that the device has made: `{target}.new_full((), {filled})`"

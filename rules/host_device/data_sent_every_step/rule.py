"""TL213 data-sent-every-step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import often, trail
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name
from torchlint.semantics.values import Memory

from ..remedies import as_spelt, in_forward, inline
from ..sending import (
    COMPUTED,
    computed_from_kernels,
    goes_on,
    place_of_sending,
    sent_from_host,
    single_number,
)
from ..stores import stored_number
from .data import MAKERS, made_and_sent, sent_ahead, sent_data
from .indices import host_index, is_constant, is_mask, listed_indices, sent_before, stored_tensor


@rule(
    "TL213",
    "data-sent-every-step",
    severity=WARNING,
    fix="safe",
    on=(cst.Call, cst.Subscript),
    named={cst.Call: MAKERS | {"to", "cuda", "copy_"}},
    mentions=("torch", "tensor(|asarray(|.to(|.cuda(|.copy_(|["),
    remedy="Keep it on the device, or copy it from pinned memory with `non_blocking=True`",
    follows=("TL201", "TL209"),
)
def data_sent_every_step(node: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds data in host memory that is copied to the accelerator in every iteration of a hot loop, or in
    every forward pass, while the host waits: tensors made of lists, arrays or several numbers with
    `device=`, `.to(device)`, `.cuda()` and `copy_` without `non_blocking=True`, and the indices of `x[:,
    [2, 1, 0]]` and of `x[torch.randperm(n)]`, which are copied to where `x` is.

    ## Why is this bad?

    A blocking copy waits until everything that was queued before it is done: behind 6.4 ms of work,
    `torch.tensor(values, device=device)` held the host for 6.4 ms, and `torch.tensor(values).to(device,
    non_blocking=True)` for 0.06 ms (H200, torch 2.11). Meanwhile nothing is queued, and the device runs
    out of work.

    ## Example

    ```python
    for requests in queue:
        lengths = torch.tensor([len(r) for r in requests], device=device)
        logits = model(tokens, lengths)
    ```

    ## Use instead

    ```python
    for requests in queue:
        lengths = torch.tensor([len(r) for r in requests]).to(device, non_blocking=True)
        logits = model(tokens, lengths)
    ```

    What helps depends on the size of the data and on how long it lives:

    * Small data, up to about 64 KB, is copied with `non_blocking=True`, pinned or not.
    * Larger data is written to a buffer in pinned memory that is made once (`torch.empty(…,
      pin_memory=True)`) and copied from there with `non_blocking=True`. The next step has to leave the
      buffer alone until the copy is done; two buffers that take turns, or an event, see to that.
    * Data that does not change stays on the device: made before the loop, or a buffer of the module. So
      does an index: `x.flip(1)` takes the place of `x[:, [2, 1, 0]]`, and `torch.randperm(n,
      device=x.device)` makes the index where it is needed.
    * Several small tensors are packed into one, copied at once, and taken apart on the device.

    A single number is reported as TL210, what a kernel can make as TL201, what never changes as TL208,
    and the batches of a loader as TL102 and TL103. What `torch.compile` compiles is left alone.

    ## Fix safety

    The fix copies with `non_blocking=True`. It is safe from pageable memory: the driver takes the data
    over before the call returns, so that the program may go on to change it, and the device orders the
    copy before what uses it. It is unsafe from memory that is, or may be, pinned, which must not be
    written to before the copy is done, and in files that also run on MPS or XLA. No fix is offered
    for what could be computed on the device, with `requires_grad`, for `new_tensor`, for indices and for
    assignments to a slice.

    ## References

    * [CUDA runtime: synchronization behaviour of copies](https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html)
    * [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """
    if not may_repeat(module, node):
        return
    if isinstance(node, cst.Subscript):
        yield from _indexed(module, node)
        return
    data = sent_data(module, node) if node.func.__class__ is not cst.Call else None
    if data is not None:
        hot = place_of_sending(module, node)
        if hot is not None:
            name = module.source(node.func) if module.qualified(node.func) is not None else "new_tensor"
            message = f"`{name}` copies data from pageable memory, and the host waits {often(hot)}"
            fix = made_and_sent(module, node, data)
            yield Finding(node, message, fix, related=trail(hot), remedy=_REMEDY)
        return
    source = sent_from_host(module, node) if not goes_on(module, node) else None
    makes = isinstance(source, cst.Call) and last_name(source.func) in MAKERS and bool(source.args)
    if isinstance(source, cst.Call) and makes and single_number(module, source.args[0].value) is not None:
        return  # a single number is another matter (TL210)
    hot = place_of_sending(module, node) if source is not None else None
    if source is not None and hot is not None:
        memory = module.value(source).memory
        pinned = ", although it is from pinned memory" if memory is Memory.PINNED else ""
        message = f"the host waits {often(hot)} for this copy to the device{pinned}"
        if computed_from_kernels(module, source):
            yield Finding(node, message, related=trail(hot), remedy=COMPUTED)
            return
        yield Finding(node, message, sent_ahead(module, node, source), related=trail(hot), remedy=_REMEDY)


_REMEDY = "Copy with `non_blocking=True`, from pinned memory if it is large, or keep it on the device"


def _indexed(module: Module, node: cst.Subscript) -> Iterator[Finding]:
    stored = stored_tensor(module, node)
    hot = place_of_sending(module, node) if stored is not None else None
    if stored is not None and hot is not None:
        message = f"the host waits {often(hot)} for this copy to the device"
        remedy = f"Copy ahead: `{inline(module, node)}.copy_({inline(module, stored)}, non_blocking=True)`"
        if is_constant(module, stored):
            remedy = "Compute the constant with `math`, and assign the number itself"
        yield Finding(stored, message, related=trail(hot), remedy=remedy)
        return
    index = listed_indices(module, node)
    what = "this list of indices" if index is not None else "this index in host memory"
    listed = index is not None
    index = index if index is not None else host_index(module, node)
    if index is not None and sent_before(module, index):
        return
    hot = place_of_sending(module, node) if index is not None else None
    if index is None or hot is None or stored_number(module, node) is not None:
        return
    message = f"{what} is copied to the device, and the host waits {often(hot)}"
    remedy = _made_once(module, index, hot) if listed else _made_there(module, index)
    yield Finding(index, message, related=trail(hot), remedy=as_spelt(module, node, remedy))


def _made_there(module: Module, index: cst.BaseExpression) -> str:
    """What to do with an index in host memory; the host waits for what a mask on the device selects, too."""
    if is_mask(module, index):
        return "Keep the indices that it selects in a buffer: `self.register_buffer(…, persistent=False)`"
    return "Make the index on the device, with `device=…`"


def _made_once(module: Module, indices: cst.BaseExpression, hot: Hot) -> str:
    code = inline(module, indices)
    if in_forward(hot) and not hot.path:
        made = f"torch.tensor({code}), persistent=False"
        return f"Make it a buffer of the module: `self.register_buffer(…, {made})`"
    return f"Make it once, before the loop: `torch.tensor({code}, device=…)`"

"""TL214 pageable-non-blocking-copy."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import add_argument, unsafe
from torchlint.messages import trail
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.values import Memory

from .factories import factory
from .sending import COMPUTED, computed_from_kernels, goes_on, place_of_sending, sent_from_host
from .sizes import exceeds_staging


@rule(
    "TL214",
    "pageable-non-blocking-copy",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: ("to", "cuda", "copy_")},
    mentions=("torch", "non_blocking", ".to(|.cuda(|.copy_("),
    remedy="Copy from pinned memory",
)
def pageable_non_blocking_copy(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds copies to the accelerator with `non_blocking=True` in a hot loop, or in every forward pass, of
    tensors in pageable memory that are larger than 64 KB, or of which the program does not show the size.
    Slices of a pinned tensor with gaps in between, `pinned[:, :n]`, are gathered in pageable memory
    first, and are found as well.

    ## Why is this bad?

    The device can only read pinned memory by itself. What is in pageable memory is first copied to a
    buffer of the driver; that buffer is small, so for a larger tensor the host waits for the device all
    the same. Behind 6.4 ms of work, 16 MB from pageable memory held the host for 6.9 ms, from pinned
    memory for 0.04 ms, and `.pin_memory().to(device, non_blocking=True)` for 0.4 ms (H200, torch 2.11).
    Up to about 64 KB it makes no difference.

    ## Example

    ```python
    for step in range(steps):
        tokens = torch.from_numpy(next_tokens(step)).to(device, non_blocking=True)
        model(tokens)
    ```

    ## Use instead

    ```python
    staging = torch.empty(most_tokens, dtype=torch.int64, pin_memory=True)
    for step in range(steps):
        fresh = torch.from_numpy(next_tokens(step))
        tokens = staging[: len(fresh)].copy_(fresh).to(device, non_blocking=True)
        model(tokens)
    ```

    A buffer that is written to again has to be left alone until the copy is done: two buffers that take
    turns, or an event, see to that. Where the tensor is made anew each time, `.pin_memory()` or
    `pin_memory=True` will do. Batches of a loader are pinned by the loader (TL102).

    ## Fix safety

    The fix pins the memory, with `pin_memory=True` where the tensor is made, else with `.pin_memory()`.
    It is unsafe, since pinning raises where there is no accelerator, and since a small tensor gains
    nothing by it. No fix is offered for slices with gaps, and for what could be computed on the device.

    ## References

    * [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    * [CUDA runtime: synchronization behaviour of copies](https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html)
    """
    if not may_repeat(module, call) or not goes_on(module, call):
        return
    source = sent_from_host(module, call)
    if source is None or module.value(source).memory is not Memory.PAGEABLE:
        return
    large = exceeds_staging(module, source)
    if large is False:
        return
    hot = place_of_sending(module, call)
    if hot is None:
        return
    if large is None:
        message = (
            "the host waits for this `non_blocking` copy from pageable memory if it is larger than 64 KB"
        )
    else:
        message = "the host waits for this `non_blocking` copy, since it is large and from pageable memory"
    gaps = isinstance(source, cst.Subscript) and module.value(source.value).memory is Memory.PINNED
    fix = None if gaps else _pinned(module, source)
    if computed_from_kernels(module, source):
        yield Finding(call, message, related=trail(hot), remedy=COMPUTED)
        return
    yield Finding(call, message, fix, related=trail(hot), remedy=_WHOLE if gaps else _STAGING)


_STAGING = "Copy it to a buffer in pinned memory first, `torch.empty(…, pin_memory=True)`"
_WHOLE = "Copy whole rows of the pinned tensor, or make a pinned tensor of just these columns"


def _pinned(module: Module, source: cst.BaseExpression) -> Fix | None:
    """The fix that pins the memory of a tensor: where it is made, or before it is copied."""
    if not Loaders.of(module).pinning_helps:
        return None
    message = "Copy from pinned memory"
    made = factory(module, source)
    if made is not None and made.call is source and made.name == "torch.tensor":
        return unsafe(module, message, add_argument(module, made.call, "True", keyword="pin_memory"))
    if not module.tree.takes_dot(source):
        return None
    end = module.tree.outer_span(source).end
    return unsafe(module, message, (Edit(Span(end, end), ".pin_memory()"),))

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
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.sources import Field, Path, Source, Through, onward, some, traced
from torchlint.semantics.synchronisation import names_host
from torchlint.semantics.transfers import TRANSFERS
from torchlint.semantics.values import Device, Kind, Memory

from .factories import factory
from .sending import (
    COMPUTED,
    async_helper,
    beside,
    computed_from_kernels,
    goes_on,
    place_of_sending,
    sent_from_host,
)
from .sizes import exceeds_staging
from .stakes import slight


@rule(
    "TL214",
    "pageable-non-blocking-copy",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: TRANSFERS | {"copy_"}},
    mentions=("torch", "non_blocking", ".to(|.cuda(|.hpu(|.ipu(|.mlu(|.mtia(|.musa(|.npu(|.xpu(|.copy_("),
    remedy="Copy from pinned memory",
    synchronizes=True,
)
def pageable_non_blocking_copy(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds copies to the accelerator with `non_blocking=True`, in a hot loop or in every forward pass, from
    tensors in pageable memory that are larger than 1 MB or of unknown size. Non-contiguous slices of a
    pinned tensor (`pinned[:, :n]`) are found as well, because they are first gathered in pageable memory.

    Findings are of low impact where the program does not show that the tensor is larger than 1 MB, unless
    they are in a server or a decoding loop. The rule ignores tensors whose numbers Python lists, which takes
    longer than such a copy.

    ## Why is this bad?

    The device can only read pinned memory directly. Data in pageable memory is first copied to a staging
    buffer of the driver. The buffer is small, so a larger copy blocks the host despite `non_blocking=True`.
    Behind 6.4 ms of work, copying 16 MB blocked the host for 6.9 ms from pageable memory, for 0.04 ms from
    pinned memory, and for 0.4 ms with `.pin_memory().to(device, non_blocking=True)` (H200, torch 2.11). Up
    to 1 MB there was no difference; CUDA itself only promises that up to 64 KB.

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

    A buffer that is reused must not be overwritten before the copy is done: alternate between two buffers,
    or wait for an event. If the tensor is created in every step, `.pin_memory()` or `pin_memory=True` is
    enough. The batches of a loader are pinned by the loader (TL102).

    ## Fix safety

    The fix pins the memory, with `pin_memory=True` where the tensor is created or with `.pin_memory()`. It
    is unsafe, because pinning raises an error on a machine without an accelerator, and a small tensor gains
    nothing. There is no fix for non-contiguous slices, for what can be computed on the device,
    where the device may be the CPU (`"cuda" if torch.cuda.is_available() else "cpu"`, or that of another
    tensor), and where the configuration names `known-async-helpers`: then the help says to call the
    first one.

    ## References

    - [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    - [CUDA runtime: synchronization behavior of copies](https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html)
    """
    if not may_recur(module, call) or not goes_on(module, call):
        return
    source = sent_from_host(module, call)
    if source is None or not _is_pageable(module, source):
        return
    large = exceeds_staging(module, source)
    if large is False:
        return
    hot = place_of_sending(module, call)
    if hot is None:
        return
    if large is None:
        message = "this `non_blocking` copy from pageable memory blocks the host if it is large (over 1 MB)"
    else:
        message = "this `non_blocking` copy from pageable memory blocks the host because it is large"
    unsized = None if large else slight(module, call, "its size is not known")
    made = factory(module, source)
    if unsized is not None and made is not None and _of_python(module, made.call):
        return  # so many numbers would take Python longer to list than the copy takes
    little = beside(module, call) or unsized
    if computed_from_kernels(module, source):
        yield Finding(call, message, related=trail(hot), remedy=COMPUTED, slight=little)
        return
    gaps = isinstance(source, cst.Subscript) and module.value(source.value).memory is Memory.PINNED
    fix = None if gaps or _may_stay_on_host(module, call) else _pinned(module, source)
    remedy = _WHOLE if gaps else _STAGING
    if (helper := async_helper(module)) is not None:
        fix, remedy = None, f"Copy with {helper}"
    yield Finding(call, message, fix, related=trail(hot), remedy=remedy, slight=little)


def _is_pageable(module: Module, source: cst.BaseExpression) -> bool:
    """Return whether a tensor is in pageable memory,
    as arrays are that are not seen to be views of pinned ones.
    """
    value = module.value(source)
    if value.memory is not Memory.UNKNOWN:
        return value.memory is Memory.PAGEABLE
    made = value.origin
    if not isinstance(made, cst.Call) or module.qualified(made.func) != "torch.from_numpy" or not made.args:
        return False
    array = made.args[0].value
    return isinstance(array, cst.Name) and module.value(array).kind is Kind.NDARRAY


_STAGING = "Copy to a pinned buffer first, `torch.empty(…, pin_memory=True)`"
_WHOLE = "Copy whole rows of the pinned tensor, or pin a separate tensor for these columns"


def _may_stay_on_host(module: Module, call: cst.Call) -> bool:
    """Return whether the device that a call names is the CPU where there is no accelerator:
    pinning raises there.
    """
    return any(some(_host(module, arg.value)) for arg in call.args)


@traced(Through.RETURNS | Through.PARAMETERS)
def _host(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    if path:
        return None
    match node:
        case cst.Call(args=[first, *_]) if module.qualified(node.func) == "torch.device":
            return onward(first.value)
        case cst.Attribute(value=cst.Name() | cst.Subscript() as owner, attr=cst.Name("device")) if (
            tensor := module.value(owner)
        ).tensorlike:
            return tensor.device is not Device.ACCELERATOR  # wherever callers have put it
        case cst.Attribute(value=owner, attr=cst.Name(name)):
            # The ways lead into the attributes of ``self`` by themselves, not into those of ``agent``.
            made = module.value(owner).definition
            return [Source(made, (Field(name),))] if isinstance(made, cst.ClassDef) else None
        case cst.BaseString():
            return names_host(module, node)
    return None


def _pinned(module: Module, source: cst.BaseExpression) -> Fix | None:
    """Return the fix that pins the memory of a tensor: where it is made, or before it is copied."""
    if not Loaders.of(module).pinning_helps:
        return None
    message = "Copy from pinned memory"
    made = factory(module, source)
    created = made.call if made is not None and made.name == "torch.tensor" else None
    if created is source and _of_python(module, created):
        edits = add_argument(module, created, "True", keyword="pin_memory")
        return unsafe(module, message, edits, risk=_NEEDS_ACCELERATOR)
    if not module.tree.takes_dot(source):
        return None
    end = module.tree.outer_span(source).end
    return unsafe(module, message, (Edit(Span(end, end), ".pin_memory()"),), risk=_NEEDS_ACCELERATOR)


_NEEDS_ACCELERATOR = "pinning fails on a machine without an accelerator, and gains nothing for small tensors"


def _of_python(module: Module, made: cst.Call) -> bool:
    """Return whether the data of a tensor is Python's own:
    torch refuses to pin where it makes one of an array.
    """
    data = module.argument(made, "data").node
    return data is not None and module.value(data).kind in (Kind.LIST, Kind.TUPLE, Kind.NUMBER)

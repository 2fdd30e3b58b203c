"""TL213 data-sent-every-step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import often, trail
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.names import Binding, BindingKind
from torchlint.semantics.places import Cause, Hot
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.sources import every
from torchlint.semantics.spellings import given_as, is_none, last_name
from torchlint.semantics.transfers import MOVING_METHODS
from torchlint.semantics.values import Kind, Memory

from ..data import MAKERS, SENDERS, copied_like, counts_up, is_drawn, made_and_sent, sent_ahead, sent_data
from ..indices import host_index, is_mask, listed_indices, of_numbers, sent_before, slice_of, stored_tensor
from ..neighbours import beside_staying_wait
from ..purpose import sends_observation, slight_wait
from ..remedies import as_spelt, in_forward, inline
from ..sending import (
    COMPUTED,
    async_helper,
    beside,
    computed_from_kernels,
    goes_on,
    is_input,
    place_of_sending,
    sent_from_host,
    single_number,
)
from ..stakes import BESIDE
from ..stores import stored_number


@rule(
    "TL213",
    "data-sent-every-step",
    severity=WARNING,
    fix="safe",
    on=(cst.Call, cst.Subscript),
    named={cst.Call: SENDERS | MOVING_METHODS | {"copy_"}},
    mentions=(
        "torch",
        "tensor(|Tensor|asarray(|.to(|.cuda(|.hpu(|.ipu(|.mlu(|.mtia(|.musa(|.npu(|.xpu(|.type|.copy_(|[",
    ),
    remedy="Keep the data on the device, or copy it from pinned memory with `non_blocking=True`",
    follows=("TL201", "TL202", "TL208", "TL209", "TL210", "TL212", "TL213", "TL215"),
    synchronizes=True,
)
def data_sent_every_step(node: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds data in host memory that is copied to the accelerator with a blocking copy in every iteration of a
    hot loop or in every forward pass: tensors created from lists, arrays or several numbers with `device=`,
    `.to(device)`, `.cuda()` and `copy_` without `non_blocking=True`, and indices in host memory, such as
    `x[:, [2, 1, 0]]` and `x[torch.randperm(n)]`, which are copied to the device of `x`. Tensor types such as
    `torch.cuda.FloatTensor(array)` copy as well.

    Findings are of low impact for the inputs of models that are not trained there, for arrays that a forward
    pass computes on the host, and next to a synchronization that stays.

    The rule ignores compiled code. A single number is reported as TL210, a tensor that a kernel could fill
    as TL201, data that never changes as TL208, and the batches of a loader as TL102 and TL103.

    ## Why is this bad?

    A blocking copy waits until all work launched before it is done. Behind 6.4 ms of work,
    `torch.tensor(values, device=device)` blocked the host for 6.4 ms, and
    `torch.tensor(values).to(device, non_blocking=True)` for 0.06 ms (H200, torch 2.11). In the meantime the
    host launches no kernels, and the device runs out of work.

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

    What helps depends on the size and the lifetime of the data:

    - Copy small data, up to about 64 KB, with `non_blocking=True`, from pinned or pageable memory.
    - Write larger data to a pinned buffer that is allocated once (`torch.empty(…, pin_memory=True)`), and
      copy it with `non_blocking=True`. The next step must not overwrite the buffer before the copy is done:
      alternate between two buffers, or wait for an event.
    - Keep data that does not change on the device: create it before the loop, or register it as a buffer.
      This includes indices: `x.flip(1)` replaces `x[:, [2, 1, 0]]`, and `torch.randperm(n, device=x.device)`
      creates the index on the device.
    - Pack several small tensors into one, copy that, and split it on the device.

    ## Fix safety

    The fix copies with `non_blocking=True`. It is safe from pageable memory: the driver has read the data
    when the call returns, so the program may modify it, and later kernels wait for the copy. It is unsafe
    from memory that is or may be pinned, such as what callers in other projects pass, which must not be
    modified before the copy is done, and in files that also run on MPS or XLA. Where the project changes the
    default device, the fix makes the tensor with `device="cpu"`. There is no fix for data that
    could be computed on the device, with `requires_grad`, for `new` and `new_tensor`, for indices, or for
    assignments to a slice. If the configuration names `known-async-helpers`, the help says to call the first
    one, and there is no fix.

    ## References

    - [CUDA runtime: synchronization behavior of copies](https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html)
    - [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """
    if not may_recur(module, node):
        return
    if isinstance(node, cst.Subscript):
        yield from _indexed(module, node)
        return
    data = sent_data(module, node) if node.func.__class__ is not cst.Call else None
    if data is not None:
        hot = place_of_sending(module, node)
        if hot is not None and not (
            hot.reason.cause is Cause.CALLERS and _is_up_to_callers(module, node, data)
        ):
            last = last_name(node.func)
            name = last if last in ("new", "new_tensor") else module.source(node.func)
            message = f"`{name}` blocks on a host-to-device copy from pageable memory {often(hot)}"
            fix = made_and_sent(module, node, data)
            remedy = _DRAWN if is_drawn(module, data) else _REMEDY
            if counts_up(module, data):
                fix, remedy = None, _COUNTED
            if (helper := async_helper(module)) is not None:
                fix, remedy = None, f"Copy with {helper}, or keep the data on the device"
            little = _little(module, node, data, hot)
            yield Finding(node, message, fix, related=trail(hot), remedy=remedy, slight=little)
        return
    source = sent_from_host(module, node)
    if source is not None and goes_on(module, node):
        return
    makes = isinstance(source, cst.Call) and last_name(source.func) in MAKERS and bool(source.args)
    if isinstance(source, cst.Call) and makes and single_number(module, source.args[0].value) is not None:
        return  # a single number is another matter (TL210)
    hot = place_of_sending(module, node) if source is not None else None
    if source is not None and hot is not None:
        memory = module.value(source).memory
        pinned = " from pinned memory" if memory is Memory.PINNED else ""
        message = f"this host-to-device copy{pinned} blocks the host {often(hot)}"
        if computed_from_kernels(module, source):
            row = beside(module, node)
            yield Finding(node, message, related=trail(hot), remedy=COMPUTED, slight=row)
            return
        fix, remedy = sent_ahead(module, node, source), _REMEDY
        if makes and isinstance(source, cst.Call) and counts_up(module, source.args[0].value):
            fix, remedy = None, _COUNTED
        if typed_like := copied_like(module, node):
            remedy = as_spelt(module, node, f"Copy without blocking: `.to({typed_like}, non_blocking=True)`")
        if (helper := async_helper(module)) is not None:
            fix, remedy = None, f"Copy with {helper}, or keep the data on the device"
        little = _little(module, node, source, hot)
        yield Finding(node, message, fix, related=trail(hot), remedy=remedy, slight=little)


def _is_up_to_callers(module: Module, node: cst.Call, data: cst.BaseExpression) -> bool:
    """Return whether callers decide if anything is copied: by what they hand in, which may be a tensor of the
    device, or since it goes to the device of theirs only if they have one.
    """
    if module.value(data).kind is Kind.UNKNOWN and isinstance(data, cst.Name):
        bindings = module.bindings(data)
        if bindings and all(binding.kind is BindingKind.PARAMETER for binding in bindings):
            return True
    device = given_as(node, "device", None)
    made = [b.value for b in module.bindings(device)] if device is not None else []
    return any(isinstance(each, cst.IfExp) and is_none(each.orelse) for each in made)


def _little(module: Module, node: cst.Call, source: cst.BaseExpression, hot: Hot) -> str | None:
    """Return why there is little to gain: input has to be copied, and the host waits beside it anyway."""
    why = None
    if sends_observation(module, node):
        why = "the environment waits for the action anyway"
    elif is_input(module, node, source):
        why = "the input has to be copied"
    elif beside_staying_wait(module, node, hot):
        why = BESIDE
    return beside(module, node) or slight_wait(module, node, why)


_DRAWN = "Draw the numbers on the device: `torch.randn(…, device=…)`, `torch.rand(…, device=…)`"
_COUNTED = "Count on the device: `torch.arange(…, device=…)`"
_REMEDY = "Copy with `non_blocking=True`, from pinned memory if large, or keep the data on the device"


def _indexed(module: Module, node: cst.Subscript) -> Iterator[Finding]:
    stored = stored_tensor(module, node)
    hot = place_of_sending(module, node) if stored is not None else None
    if stored is not None and hot is not None:
        message = f"this host-to-device copy blocks the host {often(hot)}"
        copy = f"{inline(module, node)}.copy_({inline(module, stored)}, non_blocking=True)"
        remedy = f"Copy without blocking: `{copy}`"
        if every(of_numbers(module, stored)):
            remedy = "Compute the constant with `math`, and assign the number itself"
        yield Finding(stored, message, related=trail(hot), remedy=remedy, slight=beside(module, node))
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
    message = f"{what} requires a blocking host-to-device copy {often(hot)}"
    remedy = _made_once(module, index, hot) if listed else _made_there(module, index)
    why = BESIDE if beside_staying_wait(module, node, hot) else None
    little = beside(module, node) or slight_wait(module, node, why)
    yield Finding(index, message, related=trail(hot), remedy=as_spelt(module, node, remedy), slight=little)


def _made_there(module: Module, index: cst.BaseExpression) -> str:
    """Return what to do with an index in host memory;
    the host waits for what a mask on the device selects, too.
    """
    helper = async_helper(module)
    if helper is not None and not is_mask(module, index):
        return f"Copy the index with {helper}, or make it on the device"
    if is_mask(module, index):
        return "Keep the indices that it selects in a buffer: `self.register_buffer(…, persistent=False)`"
    return "Make the index on the device, with `device=…`"


def _is_new_each_time(module: Module, indices: cst.BaseExpression, hot: Hot) -> bool:
    """Return whether a list is made of what each round of a loop, or each call in one,
    gives a value of its own.
    """
    looping = isinstance(hot.loop, (cst.For, cst.While))
    return any(
        (looping and module.tree.contains(hot.loop, binding.node)) or _is_worked_out(module, binding, indices)
        for name in module.tree.descendants(indices)
        if isinstance(name, cst.Name)
        for binding in module.bindings(name)
    )


def _is_worked_out(module: Module, binding: Binding, indices: cst.BaseExpression) -> bool:
    """Return whether a variable of the function around a list is assigned anything but numbers written
    there.
    """
    local = module.function(binding.node) is module.function(indices) is not None
    return local and binding.kind is not BindingKind.PARAMETER and not isinstance(binding.value, cst.List)


def _made_once(module: Module, indices: cst.BaseExpression, hot: Hot) -> str:
    bounds = slice_of(module, indices)
    if bounds is not None:
        return f"Take a slice, which copies nothing: `{bounds}` instead of `{inline(module, indices)}`"
    code = inline(module, indices)
    if isinstance(indices, cst.Subscript):
        whole = inline(module, indices.value)
        return f"Create a tensor of all indices once, and slice that: `torch.tensor({whole}, device=…)`"
    if _is_new_each_time(module, indices, hot):
        match indices:
            case cst.BinaryOperation(left=cst.List(elements=[cst.Element(value=same)]), right=count):
                size, value = inline(module, count), inline(module, same)
                return f"Fill the index on the device: `torch.full(({size},), {value}, device=…)`"
        return f"Copy the index without blocking: `torch.tensor({code}).to(…, non_blocking=True)`"
    if in_forward(hot) and not hot.path:
        made = f"torch.tensor({code}), persistent=False"
        return f"Register the index as a buffer: `self.register_buffer(…, {made})`"
    when = "before the loop" if isinstance(hot.loop, (cst.For, cst.While)) else "and keep it"
    return f"Create the index once {when}: `torch.tensor({code}, device=…)`"

"""TL203 host-copy-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.rules.host_device.purpose import (
    below_saving,
    computes_on_host,
    in_writer,
    knows_of_waiting,
    offloads,
    reads_items,
    scored_elsewhere,
    stake,
    waits_anyway,
    writes_results,
)
from torchlint.semantics.module import Module
from torchlint.semantics.needs import needed_on_host, shown_at_once
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.sharing import changed_later
from torchlint.semantics.synchronisation import (
    HOST_COPIES,
    after_a_decision,
    after_a_guard,
    host_copy,
    refuses_device,
    waiting_place,
)
from torchlint.semantics.usage import (
    feeds_host_engine,
    handed_to,
    leaves_torch,
    shared_with_processes,
    steps_environment,
    stored_by_writer,
    writes_out,
)

from ..remedies import (
    LENGTHS_FOR_PACKING,
    WITH_OTHERS,
    as_spelt,
    in_forward,
    inline,
    now_and_then,
    packs_sequences,
    runs_as_function,
    shown,
    steps_to_host,
    without_graph,
)
from ..roundtrips import returns_to_device
from .collection import collect_on_device


@rule(
    "TL203",
    "host-copy-in-hot-loop",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: HOST_COPIES},
    mentions=("torch|lightning|accelerate", "cpu|numpy|.type(|copy_(|.to("),
    remedy="Keep `x.detach()` and copy what is kept after the loop, all at once with `.cpu()`",
)
def host_copy_in_hot_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds tensors that are copied from the accelerator to host memory in every iteration of a hot loop:
    `.cpu()`, `.to("cpu")`, `.numpy(force=True)`. `.numpy()` and `np.asarray(tensor)` raise for a tensor on
    the accelerator, and the finding says so.

    ## Why is this bad?

    The host waits until the device has finished everything queued before the copy, and then for the copy
    itself, which goes through pageable memory. Meanwhile nothing new is queued and the device runs dry.

    ## Example

    ```python
    outputs = []
    for x in loader:
        outputs.append(model(x.to(device)).cpu())
    return torch.cat(outputs)
    ```

    ## Use instead

    ```python
    outputs = []
    for x in loader:
        outputs.append(model(x.to(device)))
    return torch.cat(outputs).cpu()
    ```

    Metrics can be computed on the device and read once an epoch. Where the outputs do not fit into device
    memory, copy with `non_blocking=True` into pinned memory and read a few batches later. A loop whose
    purpose is to save, plot or write its results, to go through them one by one, or to hand them to an
    environment, a library or an object that computes on the host, gets a note, and so does a `forward` that
    gives arrays, and a copy that a comment calls a sync. Copies that save device memory, as a comment, the
    docstring, a switch, a `del` or caches emptied beside them say, are not reported. Those that come back to
    the device are reported as a repeated transfer (TL208).

    ## Fix safety

    A loop that only collects copies, joined by one `torch.cat`, `torch.stack`, `np.concatenate` or
    `np.stack` behind it, is rewritten to copy once. The fix is unsafe: the results of all iterations stay in
    device memory until then. A view of a part of a tensor, such as `hidden[:, 0]`, would keep the memory of
    the whole tensor, so that `hidden[:, 0].clone()` is collected, and so is a clone of a tensor that is
    changed in place later. What a model returns is taken for tensors of their own. Nothing is offered for
    other uses of the copy.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    * [CUDA semantics: use pinned memory buffers](https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers)
    """
    tensor = host_copy(module, call) if may_repeat(module, call) else None
    hot = waiting_place(module, call) if tensor is not None else None
    if tensor is None or hot is None or offloads(module, call):
        return
    if after_a_decision(module, call) or after_a_guard(module, call) or returns_to_device(module, call):
        return
    what = f".{call.func.attr.value}()" if isinstance(call.func, cst.Attribute) else "this call"
    if refuses_device(module, call):
        message = f"`{what}` raises for a tensor on the accelerator; copy it with `.cpu()`, after the loop"
    else:
        message = f"`{what}` copies to host memory, and the host waits for the device, {when(module, hot)}"
    if handed_to(module, call, packs_sequences):
        yield Finding(call, message, severity=NOTE, related=trail(hot), remedy=LENGTHS_FOR_PACKING)
        return
    purpose = (
        stored_by_writer(module, call)
        or shared_with_processes(module, call)
        or below_saving(module, call)
        or in_writer(module, call)
        or knows_of_waiting(module, call)
        or leaves_torch(module, call, tensor, hot)
        or computes_on_host(module, call)
        or reads_items(module, call)
        or scored_elsewhere(module, call)
        or handed_to(module, call, _uses_on_host)
        or writes_results(module, hot)
    )
    fix = None if purpose else collect_on_device(module, call, tensor)
    remedy = _WITHOUT_WAITING if purpose else _remedy(module, call, tensor, hot)
    severity = NOTE if purpose else None
    slight = waits_anyway(module, call, hot) or shown_at_once(module, call)
    if not purpose and fix is None and needed_on_host(module, call) is not None:
        slight, remedy = True, WITH_OTHERS
    yield Finding(
        call,
        message,
        fix,
        severity=severity,
        related=trail(hot),
        remedy=as_spelt(module, call, remedy),
        impact=stake(module, call, slight=slight),
    )


def _uses_on_host(module: Module, receiver: cst.Call) -> bool:
    """Whether what gets the copy needs it in host memory."""
    return (
        steps_environment(module, receiver)
        or writes_out(module, receiver)
        or feeds_host_engine(module, receiver)
    )


_WITHOUT_WAITING = (
    'Start the copy early, with `.to("cpu", non_blocking=True)`, and read it late, behind '
    "`torch.cuda.synchronize()`"
)
_COLLECTING = frozenset({"append", "extend"})


def _remedy(module: Module, call: cst.Call, tensor: cst.BaseExpression, hot: Hot) -> str:
    """What to write instead, by what becomes of the copy."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "copy_":
        into = inline(module, call.func.value)
        return f"Pin `{into}`, copy with `{into}.copy_(…, non_blocking=True)`, and wait once after the loop"
    if shown(module, call) and not runs_as_function(hot):
        return f"Read it every 100 steps, {now_and_then(module, hot)}"
    if in_forward(hot):
        steps = steps_to_host(module, call, tensor)
        by = "with the functions of torch" if steps.endswith(".numpy()") else "on the device"
        return f"Remove `{steps}` and compute {by}"
    kept = without_graph(module, tensor, copied=changed_later(module, tensor))
    if isinstance(module.flow.statement(call), cst.Return):
        return f"Return {kept} and let the caller copy it, once at the end, with `.cpu()`"
    if _handed_over(module, call):
        return f"Collect {kept} in a list and hand it over after the loop, copied at once with `.cpu()`"
    return f"Keep {kept} in its place and copy what is kept after the loop, all at once with `.cpu()`"


def _handed_over(module: Module, call: cst.Call) -> bool:
    """Whether a function other than a list's ``append`` gets the copy, in the same statement."""
    return any(
        isinstance(outer, cst.Arg)
        and isinstance(taker := module.tree.parent(outer), cst.Call)
        and not (isinstance(taker.func, cst.Attribute) and taker.func.attr.value in _COLLECTING)
        for outer in _up_to_statement(module, call)
    )


def _up_to_statement(module: Module, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    statement = module.flow.statement(node)
    for outer in module.tree.ancestors(node):
        if outer is statement:
            return
        yield outer

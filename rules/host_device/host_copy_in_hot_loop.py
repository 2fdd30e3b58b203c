"""TL203 host-copy-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.collection import collect_on_device
from torchlint.semantics.module import Module
from torchlint.semantics.purpose import (
    below_saving,
    computes_on_host,
    in_writer,
    knows_of_waiting,
    offloads,
    reads_items,
    scored_elsewhere,
    writes_results,
)
from torchlint.semantics.roundtrips import returns_to_device
from torchlint.semantics.synchronisation import (
    after_a_decision,
    after_a_guard,
    host_copy,
    refuses_device,
    trail,
    waiting_place,
    when,
)
from torchlint.semantics.usage import (
    feeds_host_engine,
    leaves_torch,
    receivers,
    shared_with_processes,
    steps_environment,
    stored_by_writer,
    writes_out,
)


@rule(
    "TL203",
    "host-copy-in-hot-loop",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    mentions=("torch|lightning|accelerate", "cpu|numpy|.type(|copy_(|.to("),
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
    device memory until then. Nothing is offered for other uses of the copy.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    * [CUDA semantics: use pinned memory buffers](https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers)
    """
    tensor = host_copy(module, call) if module.may_repeat(call) else None
    hot = waiting_place(module, call) if tensor is not None else None
    if tensor is None or hot is None or offloads(module, call):
        return
    if after_a_decision(module, call) or after_a_guard(module, call) or returns_to_device(module, call):
        return
    what = f".{call.func.attr.value}()" if isinstance(call.func, cst.Attribute) else "this call"
    if refuses_device(module, call):
        message = f"`{what}` raises for a tensor on the accelerator; copy it with `.cpu()`, behind the loop"
    else:
        message = f"`{what}` copies to host memory, and the host waits for the device, {when(module, hot)}"
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
        or any(
            steps_environment(module, receiver)
            or writes_out(module, receiver)
            or feeds_host_engine(module, receiver)
            for receiver in receivers(module, call)
        )
        or writes_results(module, hot)
    )
    fix = None if purpose else collect_on_device(module, call, tensor)
    yield Finding(call, message, fix, severity=NOTE if purpose else None, related=trail(module, hot))

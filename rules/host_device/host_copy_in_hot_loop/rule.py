"""TL203 host-copy-in-hot-loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.rules.host_device.purpose import (
    becomes_number,
    below_saving,
    computes_on_host,
    gives_gradient,
    in_writer,
    is_measured,
    keeps_results,
    knows_of_waiting,
    leaves_process,
    narrowed_by,
    offloads,
    reads_items,
    reduced_by,
    scored_elsewhere,
    slight_wait,
    writes_results,
)
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.gradmode import Grad, grad
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.sharing import changed_later
from torchlint.semantics.synchronisation import HOST_COPIES, host_copy, refuses_device
from torchlint.semantics.usage import feeds_host_engine, handed_to

from ..destinations import steps_environment, streams, writes_out
from ..needs import needed_on_host, shown_at_once
from ..neighbours import beside_staying_wait
from ..numbers import gone_through
from ..remedies import (
    COPIED_TOGETHER,
    FROM_HOST,
    LENGTHS_FOR_PACKING,
    WITH_OTHERS,
    as_spelt,
    called,
    counts_rounds,
    in_forward,
    inline,
    now_and_then,
    packs_sequences,
    runs_as_function,
    shown,
    steps_to_host,
    tight,
    without_graph,
)
from ..roundtrips import returns_to_device, still_on_host
from ..stakes import BESIDE, NEEDED, RESULTS, behind_wait, unspared
from ..waits import waiting_place
from .arrays import leaves_torch, shared_with_processes, stored_by_writer
from .collection import collect_on_device


@rule(
    "TL203",
    "host-copy-in-hot-loop",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: HOST_COPIES},
    mentions=("torch|lightning|accelerate", "cpu|numpy|.type(|copy_(|.to("),
    remedy="Store `x.detach()`, and copy everything after the loop with one `.cpu()`",
    synchronizes=True,
)
def host_copy_in_hot_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds tensors that are copied from the accelerator to host memory in every iteration of a hot loop or in
    every forward pass: `.cpu()`, `.to("cpu")`, `.numpy(force=True)`. It also reports `.numpy()` and
    `np.asarray(tensor)` on tensors on the accelerator, which raise an error.

    The finding is a note where the host needs the copy: in a loop that saves, plots or writes its results,
    processes them one by one or passes them to an environment, a library or an object that computes on the
    host, in a `forward` that returns arrays, and where a comment mentions the synchronization. The rule
    ignores copies that save device memory, as shown by a comment, the docstring, a switch, a `del` or an
    emptied cache next to them. Copies that return to the device are reported as a repeated transfer (TL208).

    Findings are of low impact outside of training, where results are copied once per batch, because they are
    wanted in host memory in the end, and where a forward pass, or a function that such a loop calls, goes on
    with the copy. Labels that are moved to the device and then copied back are not: the host has them
    already. Nor are scores of which the host only takes the `argmax` or the loss: the device computes
    them faster, and less has to be copied.

    ## Why is this bad?

    The host waits until the device has finished all work launched before the copy, and then for the copy
    itself, into pageable memory. In the meantime it launches no kernels, and the device runs out of work.

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

    Compute metrics on the device, and read them once per epoch. If the outputs do not fit into device
    memory, copy with `non_blocking=True` into pinned memory, and read the copy a few batches later.

    ## Fix safety

    The fix is offered for loops that only collect copies, which `torch.cat`, `torch.stack`, `np.concatenate`
    or `np.stack` joins after the loop. It copies once instead. It is unsafe because the results of all
    iterations stay in device memory until then. Views of a part of a tensor are cloned
    (`hidden[:, 0].clone()`), because they would keep the memory of the whole tensor alive, and so are
    tensors that are modified in place later. The fix assumes that a model returns new tensors. There is no
    fix for other uses of the copy.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [CUDA semantics: use pinned memory buffers](https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers)
    """
    # Where a tensor goes may be for callers of callers to say: whether anybody waits there is asked first.
    hot = waiting_place(module, call) if may_recur(module, call) else None
    tensor = host_copy(module, call) if hot is not None else None
    if tensor is None or hot is None or offloads(module, call) or gives_gradient(module, call):
        return
    if returns_to_device(module, call):
        return
    row = behind_wait(module, call, guards=True)
    what = called(module, call)
    if refuses_device(module, call):
        message = f"`{what}` raises a `TypeError` for device tensors; call `.cpu()` after the loop"
    else:
        message = f"`{what}` blocks on a device-to-host copy {when(module, hot)}"
    if handed_to(module, call, packs_sequences):
        little = row or slight_wait(module, call, "packing needs the lengths on the host")
        remedy = LENGTHS_FOR_PACKING
        yield Finding(call, message, severity=NOTE, related=trail(hot), remedy=remedy, slight=little)
        return
    needless = still_on_host(module, tensor)
    narrowed = None if needless or in_forward(hot) else narrowed_by(module, call)
    streamed = not needless and handed_to(module, call, streams)
    written = not needless and (
        streamed
        or stored_by_writer(module, call)
        or shared_with_processes(module, call)
        or below_saving(module, call)
        or in_writer(module, call)
        or knows_of_waiting(module, call)
        or leaves_process(module, call)
        # A number can be written later, like that of ``item()``.
        or (handed_to(module, call, writes_out) and not becomes_number(module, call))
        or writes_results(module, hot)
    )
    # Whatever the host does with elements that are copied one by one, one copy of all would do.
    elements = None if needless or written else gone_through(module, tensor)
    purpose = written or (
        not needless
        and elements is None
        and (
            leaves_torch(module, call, tensor, hot)
            or computes_on_host(module, call)
            or reads_items(module, call)
            or (narrowed is None and scored_elsewhere(module, call))
            or handed_to(module, call, _uses_on_host)
        )
    )
    fix = None if purpose or narrowed else collect_on_device(module, call, tensor)
    remedy = _WITHOUT_WAITING if purpose else _remedy(module, call, tensor, hot)
    severity = NOTE if purpose else None
    smaller = narrowed and not purpose
    # A step is rid of what it copies back without need, however long it waits beside that.
    why = None
    if not smaller and not (needless and phase(module, call) is not Phase.EVALUATION):
        if purpose:
            why = "the host needs the copy"
        elif elements is None and beside_staying_wait(module, call, hot):
            why = BESIDE
        elif not needless and keeps_results(module, call, hot):
            why = RESULTS
        elif elements is None and _is_of_interface(module, call, hot):
            why = "what follows works in host memory"
    items = elements if fix is None else None
    if needless:
        remedy = FROM_HOST
    elif narrowed and not purpose:
        remedy = f"Take `{narrowed}` on the device, and copy only the results, after the loop"
    elif items is not None:
        remedy = f"Copy all elements at once before the loop: `{tight(module, items)}.cpu()`"
    elif not purpose and fix is None and needed_on_host(module, call) is not None:
        why, remedy = why or NEEDED, WITH_OTHERS
    little = slight_wait(module, call, why) or unspared(module, hot, remedy)
    if streamed:  # in decoding as well
        little = "each token is handed on at once"
    yield Finding(
        call,
        message,
        fix,
        severity=severity,
        related=trail(hot),
        remedy=as_spelt(module, call, remedy),
        slight=row or little,
    )


def _is_of_interface(module: Module, call: cst.Call, hot: Hot) -> bool:
    """Return whether a forward pass, or a function that a loop without training calls, goes on in host memory
    with what no backward pass needs: by what it is to give, or since what follows works there.
    """
    if _is_backpropagated(module, call):
        return False
    return in_forward(hot) or (bool(hot.path) and phase(module, call) is not Phase.TRAINING)


def _is_backpropagated(module: Module, call: cst.Call) -> bool:
    return grad(module, call) is not Grad.OFF and Backpropagation.of(module).reaches(call)


def _uses_on_host(module: Module, receiver: cst.Call) -> bool:
    """Return whether what gets the copy needs it in host memory."""
    return steps_environment(module, receiver) or feeds_host_engine(module, receiver)


_WITHOUT_WAITING = (
    'Copy with `.to("cpu", non_blocking=True)`, and call `torch.cuda.synchronize()` before reading the result'
)
_COLLECTING = frozenset({"append", "extend"})


def _remedy(module: Module, call: cst.Call, tensor: cst.BaseExpression, hot: Hot) -> str:
    """Return what to write instead, by what becomes of the copy."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "copy_":
        into = inline(module, call.func.value)
        return f"Pin `{into}`, copy with `{into}.copy_(…, non_blocking=True)`, and synchronize after the loop"
    if shown(module, call) and counts_rounds(hot):
        return f"Read it only every 100 steps, {now_and_then(module, hot)}"
    # Detached and kept for later, it would take no part in the backward pass.
    if in_forward(hot) or _is_backpropagated(module, call):
        steps = steps_to_host(module, call, tensor)
        by = "with torch functions" if steps.endswith(".numpy()") else "on the device"
        return f"Remove `{steps}`, and compute {by}"
    kept = without_graph(module, tensor, copied=changed_later(module, tensor))
    if isinstance(module.flow.statement(call), cst.Return):
        return f"Return {kept}, and copy all results in the caller with one `.cpu()`"
    if runs_as_function(hot):
        return f"Keep {kept} instead, and {COPIED_TOGETHER}"
    if is_measured(module, call):
        return f"Remove `{steps_to_host(module, call, tensor)}`, and compute the loss on the device"
    reduction = reduced_by(module, call)
    if reduction is not None:
        step = steps_to_host(module, call, tensor)
        return f"Remove `{step}`, accumulate `….{reduction}()` on the device, and read it after the loop"
    if _handed_over(module, call):
        return f"Collect {kept} in a list; after the loop, copy it with one `.cpu()` and pass it on"
    if shown_at_once(module, call):
        return f"Store {kept} instead, and copy and show it only every 100 steps"
    return f"Store {kept} instead, and copy everything after the loop with one `.cpu()`"


def _handed_over(module: Module, call: cst.Call) -> bool:
    """Return whether a function other than a list's ``append`` gets the copy, in the same statement."""
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

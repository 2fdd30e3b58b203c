"""TL103: a batch in pinned memory is copied with a blocking transfer."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import Edits, add_argument, filled_by_callers, graded, replace
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import given_as

from .transfers import Transfers


@rule(
    "TL103",
    "blocking-batch-transfer",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("pin_memory|non_blocking", ".to(|.cuda(|.copy_("),
    follows=("TL102",),
    synchronizes=True,
)
def blocking_batch_transfer(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `.to(device)` and `.cuda()` without `non_blocking=True` on batches of a loader with pinned memory,
    and `buffer.copy_(batch)` for a buffer on the device.
    It also finds a blocking transfer of one part of a batch whose other parts are transferred with
    `non_blocking=True`. If any part has to be transferred with a blocking copy, for example because it is
    cast first and therefore no longer pinned, the rule ignores the whole batch.

    ## Why is this bad?

    The host waits for the copy to finish before it launches the kernels of the step. A copy from pinned
    memory can be asynchronous: the host continues, and the stream runs the copy before the kernels that use
    it.

    ## Example

    ```python
    for images, labels in DataLoader(dataset, pin_memory=True):
        images, labels = images.to(device), labels.to(device)
    ```

    ## Use instead

    ```python
    for images, labels in DataLoader(dataset, pin_memory=True):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
    ```

    ## Fix safety

    Safe: kernels on the device wait for the copy. Device-to-host copies are never changed, because the host
    could read the data too early. The fix is unsafe if a collate function in another file may build objects
    of its own class, whose `to` might not accept the argument, and where the argument is a parameter, which
    callers set.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """
    transfer = Transfers.of(module).blocking_transfer(call)
    if transfer is None:
        return
    chosen = filled_by_callers(module, given_as(call, "non_blocking", None))
    risk = None
    if not transfer.tensor:
        risk = "what a collate function elsewhere makes may not take the argument"
    elif chosen:
        risk = "callers of this function choose the argument"
    yield Finding(
        call,
        "this copy from pinned memory blocks the host; pass `non_blocking=True`",
        fix=graded(module, "Pass `non_blocking=True`", _unblocked(module, call), risk=risk),
        remedy="Pass `non_blocking=True`",
    )


def _unblocked(module: Module, call: cst.Call) -> Edits | None:
    """Return the edits that make a blocking copy go ahead, whatever the class of what it moves."""
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "non_blocking":
            return replace(module, argument.value, "True")
    return add_argument(module, call, "True", keyword="non_blocking")

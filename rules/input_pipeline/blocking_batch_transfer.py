"""TL103: a batch in pinned memory is moved while the host waits."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import Edits, add_argument, replace, safe, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module


@rule(
    "TL103",
    "blocking-batch-transfer",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("pin_memory|non_blocking", ".to(|.cuda("),
    follows=("TL102",),
)
def blocking_batch_transfer(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `.to(device)` and `.cuda()` of a batch from a loader with pinned memory, without
    `non_blocking=True`; and a part of a batch that is sent blocking beside one that is not. The parts of a
    batch are treated alike: if one of them has to be sent blocking, for example because it is cast first
    and so is no longer in pinned memory, the others are left alone.

    ## Why is this bad?

    The host waits until the copy is done before it enqueues the work of the step. From pinned memory the
    copy can run by itself: the host goes on, and the device orders the copy before what uses it.

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

    Safe: work on the device that uses the copy waits for it. Copies from the device to the host are never
    touched, since there the host would read too early. The fix is unsafe, for all parts of a batch, where a
    collate function of another file may build objects of its own class, whose `to` might not take the
    argument.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [A guide on good usage of non_blocking and pin_memory](https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html)
    """
    transfer = Loaders.of(module).blocking_transfer(call)
    if transfer is None:
        return
    grade = safe if transfer.tensor else unsafe
    yield Finding(
        call,
        "the host waits for this copy, although the batch is in pinned memory",
        fix=grade(module, "Set `non_blocking=True`", _unblocked(module, call)),
        remedy="Pass `non_blocking=True`",
    )


def _unblocked(module: Module, call: cst.Call) -> Edits | None:
    """The edits that make a blocking ``to`` or ``cuda`` go ahead, whatever the class of what it moves."""
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "non_blocking":
            return replace(module, argument.value, "True")
    return add_argument(module, call, "True", keyword="non_blocking")

"""TL102: batches go to an accelerator from memory that it cannot read by itself."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import configure, safe, set_argument, spelt, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.configured import configured
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module
from torchlint.semantics.values import MISSING


@rule(
    "TL102",
    "loader-without-pinned-memory",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("DataLoader",),
    remedy="Set `pin_memory=True`",
    configured=True,
)
def loader_without_pinned_memory(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds a `DataLoader` without `pin_memory` whose batches are moved to an accelerator. A `DataLoader` that
    is given `pin_memory=False` is left alone: whoever writes out the default has decided against it, for
    example since page-locked memory is scarce or the pinning thread fails on the batches. So is a loader
    whose batches are moved as copies only (`torch.cat(parts).to(device)`), which are not page-locked anyway,
    and a loader that has no worker processes and needs none (see TL101): without them the training process
    pins every batch itself, between two steps.

    ## Why is this bad?

    A device copies only from page-locked memory. A batch in ordinary memory is first copied to a
    page-locked buffer of the driver, piece by piece, while the host waits. With `pin_memory=True` a thread
    of the loader puts each batch into page-locked memory ahead of time; the copy is faster, and with
    `non_blocking=True` it runs beside the computation (see TL103).

    ## Example

    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4)
    ```

    ## Use instead

    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
    ```

    ## Fix safety

    Safe: the batches have the same contents. Without an accelerator the argument has no effect. It is unsafe
    where the program asks a loader or a tensor whether memory is pinned. It is not added beside `**kwargs`,
    which may hold it already; where these come from a configuration file, it is added there, which is unsafe
    unless this loader alone is made of them. Loaders whose datasets hand out tensors of the accelerator are
    left alone, since those cannot be pinned; so are MPS and XLA.

    ## References

    - [PyTorch performance tuning guide](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Transformers, efficient training on a single GPU: data preloading](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    - [Memory pinning](https://docs.pytorch.org/docs/stable/data.html#memory-pinning)
    """
    loaders = Loaders.of(module)
    if not loaders.makes_loader(call):
        return
    setting = configured(module, call, "pin_memory")
    absent = module.argument(call, "pin_memory").absent if setting is None else setting.value is MISSING
    if not absent:
        return
    if not loaders.pinning_helps or not loaders.feeds_accelerator(call):
        return
    if loaders.on_accelerator(call) or loaders.yields_raw_items(call) or loaders.debugging(call):
        return
    if loaders.yields_arrays(call) or loaders.moved_as_copies(call):
        return
    if loaders.workers(call) == 0 and loaders.idle_workers(call):
        return  # It would be the training process that copies the batch once more.
    asked_for = loaders.pinning_asked_for
    message = "batches of this `DataLoader` are copied to the accelerator from pageable memory"
    if setting is not None:
        fix = configure(setting, True, safe=not asked_for)
        yield Finding(call, message, fix=fix, remedy=f"Set `{spelt(setting, True)}`", at=setting)
        return
    grade = unsafe if asked_for else safe
    edits = set_argument(module, call, "pin_memory", "True")
    yield Finding(call, message, fix=grade(module, "Set `pin_memory=True`", edits))

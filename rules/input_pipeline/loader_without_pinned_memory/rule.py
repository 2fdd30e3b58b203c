"""TL102: batches are copied to an accelerator from pageable memory."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import configure, graded, set_argument, spelt
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.configured import configured
from torchlint.semantics.loaders import Loaders
from torchlint.semantics.module import Module
from torchlint.semantics.values import MISSING

from ..items import Items, made_like
from ..workercounts import usual_workers
from .pinning import Pinning


@rule(
    "TL102",
    "loader-without-pinned-memory",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("DataLoader",),
    remedy="Set `pin_memory=True`",
    configured=True,
    lasting=True,
)
def loader_without_pinned_memory(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds a `DataLoader` without `pin_memory` whose batches are moved to an accelerator. The rule ignores an
    explicit `pin_memory=False`, which is a deliberate choice: pinned memory may be scarce, or pinning may
    fail on the batches. It also ignores loaders whose batches are only moved as copies
    (`torch.cat(parts).to(device)`), since a copy is not pinned, and loaders that have no worker processes and
    need none (see TL101): there the training process itself would pin each batch, between two steps. Findings
    are of low impact for single items, for the tokens of texts, for the rows of a table, and for data that is
    in memory as a whole, unless worker processes run a data set of the program for it.

    ## Why is this bad?

    A device can only copy directly from pinned (page-locked) memory. The driver first copies a pageable batch
    to a pinned buffer, piece by piece, while the host waits. With `pin_memory=True` a thread of the loader
    pins each batch ahead of time. The copy is faster, and with `non_blocking=True` it overlaps with
    computation (see TL103).

    ## Example

    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4)
    ```

    ## Use instead

    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
    ```

    ## Fix safety

    Safe: the contents of the batches do not change, and without an accelerator torch only warns that it
    ignores the argument. The fix is unsafe if it passes on the `pin_memory` of another loader, if the project
    records warnings or turns them into errors, in its code or for its tests, and if it checks whether a
    loader or tensor is pinned. It is not added next to `**kwargs`, which may already contain the argument. If
    the keyword arguments come from a configuration file, the fix changes the file; it is unsafe unless only
    this loader uses the setting. The rule ignores datasets that return tensors on the accelerator, which
    cannot be pinned, and programs for MPS and XLA.

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
    items, pinning = Items.of(module), Pinning.of(module)
    if items.on_accelerator(call) or items.yields_raw_items(call) or loaders.debugging(call):
        return
    if pinning.yields_own_objects(call) or pinning.yields_arrays(call) or pinning.regroups_items(call):
        return
    if pinning.moved_as_copies(call):
        return
    if loaders.workers(call) == 0 and items.idle_workers(call):
        return  # It would be the training process that copies the batch once more.
    risk = None
    if pinning.pinning_asked_for:
        risk = "the program asks whether memory is pinned"
    elif _fails_on_warnings(module):
        risk = "without an accelerator torch warns, and the project records warnings or makes them errors"
    message = (
        "batches of this `DataLoader` are copied from pageable memory, which is slower than pinned memory"
    )
    little = items.slight(call)
    if pinning.evaluates_one_by_one(call):
        little = "evaluates items one by one"
    elif items.in_memory(call) and (items.in_sequences(call) or not _asks_for_workers(module, call)):
        little = "the data is in memory"
    if setting is not None:
        fix = configure(setting, True, risk=risk)
        remedy = f"Set `{spelt(setting, True)}`"
        yield Finding(call, message, fix=fix, remedy=remedy, at=setting, slight=little)
        return
    like = made_like(module, call)
    if risk is None and like is not None:
        risk = f"takes the setting from another loader, `{like}`"
    pinned = "True" if like is None else f"{like}.pin_memory"
    edits, told = set_argument(module, call, "pin_memory", pinned), f"Set `pin_memory={pinned}`"
    fix = graded(module, told, edits, risk=risk)
    yield Finding(call, message, fix=fix, remedy=told, slight=little)


def _asks_for_workers(module: Module, call: cst.Call) -> bool:
    """Return whether worker processes load the batches, as far as is known, and could pin them meanwhile."""
    usual = usual_workers(module, call)
    return module.argument(call, "num_workers").given and (usual is None or usual.count > 0)


def _fails_on_warnings(module: Module) -> bool:
    """Return whether a file of the project records warnings,
    or it or the settings of its tests make them errors.
    """
    calls = ("simplefilter(", "filterwarnings(", "action=")
    words = (
        "catch_warnings(record",
        "recwarn",
        *(f"{call}{quote}error" for call in calls for quote in "\"'"),
    )
    link = module.link
    return module.mentions(*words) or (
        link is not None and (link.fails_on_warnings() or link.has_anywhere(words))
    )

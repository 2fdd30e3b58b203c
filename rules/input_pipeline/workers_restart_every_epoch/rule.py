"""TL104: a loader restarts its worker processes every epoch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix, Span
from torchlint.fixes import configure, set_argument, spelt, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.configured import configured
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.loaders import Loaders, repeated_epochs
from torchlint.semantics.module import Module
from torchlint.semantics.values import MISSING

from ..workercounts import Workers, usual_workers
from .changes import data_changes


@rule(
    "TL104",
    "workers-restart-every-epoch",
    severity=NOTE,
    fix="unsafe",
    on=cst.Call,
    mentions=("DataLoader", "num_workers"),
    remedy="Set `persistent_workers=True`",
    configured=True,
    lasting=True,
)
def workers_restart_every_epoch(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds a `DataLoader` with workers but without `persistent_workers=True` that is iterated several times, by
    a loop around the loop over it or around a call that leads there.

    The rule ignores loaders that are created inside the outer loop, and loops that change the dataset, since
    persistent workers would not see the change.

    ## Why is this bad?

    At the end of each epoch the loader stops its worker processes, and it starts new ones for the next epoch.
    Each of them receives the dataset, imports modules if it is spawned, and opens files again. Training waits
    until the first batch is ready. Persistent workers stay alive between epochs and keep their caches.

    ## Example

    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4)
    for epoch in range(90):
        for images, labels in loader:
            train(images, labels)
    ```

    ## Use instead

    ```python
    loader = DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True)
    ```

    ## Fix safety

    Unsafe: the workers and their copies of the dataset also use memory between epochs, they do not see
    changes that another file makes to the dataset, and the base seed is drawn only once, which changes random
    numbers in the workers and in the program. If the number of workers is a variable, the fix asks for
    persistent workers only if there are any. If it comes from a dictionary or a configuration file, the fix
    adds to that.

    ## References

    - [torch.utils.data.DataLoader](https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader)
    """
    loaders = Loaders.of(module)
    if not loaders.makes_loader(call) or not module.target.admits("1.7"):
        return
    persistent = module.argument(call, "persistent_workers")
    if persistent.given:
        return
    workers = usual_workers(module, call)
    if workers is None or workers.count < 1 or not accelerated(module) or loaders.debugging(call):
        return
    setting = configured(module, call, "persistent_workers") if persistent.unknown else None
    if setting is not None:
        if setting.value is not MISSING:
            return
    elif persistent.unknown and (workers.element is None or module.tree.mentions("persistent_workers")):
        return
    loop = next((loop for _, loop in repeated_epochs(module, call)), None)
    if loop is None or data_changes(module, call, loop):
        return
    yield Finding(
        call,
        "this `DataLoader` restarts its worker processes every epoch",
        fix=_fix(module, call, workers) if setting is None else configure(setting, True, risk=_RISK),
        related=(
            (
                loop.test if isinstance(loop, cst.While) else loop.target,
                "each iteration of this loop is one epoch",
            ),
        ),
        remedy=None if setting is None else f"Set `{spelt(setting, True)}`",
        at=setting,
    )


def _fix(module: Module, call: cst.Call, workers: Workers) -> Fix | None:
    if workers.element is not None:
        behind = module.tree.outer_span(workers.element.value).end
        quote = module.source(workers.element.key)[-1]
        added = Edit(Span(behind, behind), f", {quote}persistent_workers{quote}: True")
        return unsafe(module, "Set `persistent_workers=True`", (added,), risk=_RISK)
    code = "True" if workers.code is None else f"{module.source(workers.code)} > 0"
    edits = set_argument(module, call, "persistent_workers", code)
    return unsafe(module, f"Set `persistent_workers={code}`", edits, risk=_RISK)


_RISK = "the dataset is copied to the workers once, so that changes to it between epochs are not seen"

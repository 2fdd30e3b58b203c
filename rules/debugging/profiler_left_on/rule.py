"""TL802: a profiler records every step of a training."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

from .profiling import ANNOTATING, profiled_training


@rule(
    "TL802",
    "profiler-left-on",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("torch", "profiler", "with "),
    lasting=True,
)
def profiler_left_on(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.profiler.profile` without a `schedule`, and autograd's `profile`, `emit_nvtx` and `emit_itt`,
    around a whole training or entered at every training step.

    The rule ignores profiling that an option enables (`if args.profile:`, `enabled=args.profile`), functions
    and programs for profiling, and training that ends after a few steps.

    ## Why is this bad?

    A profiler records every operation and every kernel, optionally with shapes, memory and Python stacks.
    Recording takes host time for each of them, and the records stay in memory until the profiler stops: a
    profile of a whole epoch fills the memory, and is too large to open in a trace viewer. A few steps after
    warm-up are enough. A profiler entered at each step also starts and stops each time, which synchronizes
    with the device. `emit_nvtx` annotates every operation, even if no external profiler is attached.

    ## Example

    ```python
    with torch.profiler.profile() as prof:
        for images, labels in loader:
            train_step(images, labels)
    ```

    ## Use instead

    ```python
    for images, labels in loader:
        train_step(images, labels)
    ```

    or profile a few steps, if an option asks for it:

    ```python
    schedule = torch.profiler.schedule(wait=10, warmup=2, active=5, repeat=1)
    with torch.profiler.profile(schedule=schedule) as prof:
        for images, labels in loader:
            train_step(images, labels)
            prof.step()
    ```

    ## Fix safety

    There is no fix: which steps to profile, and what to do with the profile, is a decision for the author.

    ## References

    - [torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html)
    - [PyTorch performance tuning guide: disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis)
    """
    found = profiled_training(module, call)
    if found is None:
        return
    name = found.profiler.rpartition(".")[2]
    if found.profiler in ANNOTATING:
        message = f"`{name}` annotates every operation of the training; enable it with an option"
        remedy = "Enable it with an option, by `enabled=…`"
    elif found.each_step:
        message = f"`{name}` starts and stops at every step; profile a few steps with a `schedule`"
        remedy = "Start it before the loop with a `schedule=…`, and call its `step()` in each step"
    else:
        message = f"`{name}` records every training step and keeps all of them in memory; pass a `schedule`"
        remedy = "Pass a `schedule=…` to `torch.profiler.profile`, and call its `step()` in each step"
    yield Finding(call, message, related=((found.training, "the training runs here"),), remedy=remedy)

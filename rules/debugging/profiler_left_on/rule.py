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

    Finds `torch.profiler.profile` without a `schedule`, autograd's `profile`, `emit_nvtx` and `emit_itt`
    around a whole training, or entered at every step of it.

    What an option asks for is left alone (`if args.profile:`, `enabled=args.profile`), functions and programs
    for profiling are, and so are trainings that end after few steps.

    ## Why is this bad?

    A profiler records every operation and every kernel, with their shapes, memory and Python stacks if it is
    told to. That takes host time at each of them, and what is recorded stays in memory until the profiler
    ends: an epoch fills the memory, and gives a trace that no viewer opens. What is worth looking at is a
    handful of steps after the first few. Entered anew at each step, the profiler also starts and stops each
    time, which waits for the device. `emit_nvtx` marks every operation, for a profiler that mostly does not
    run.

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

    or, for a few steps, when an option asks for them:

    ```python
    schedule = torch.profiler.schedule(wait=10, warmup=2, active=5, repeat=1)
    with torch.profiler.profile(schedule=schedule) as prof:
        for images, labels in loader:
            train_step(images, labels)
            prof.step()
    ```

    ## Fix safety

    There is no fix: what becomes of the profile, and which steps are of interest, the author knows.

    ## References

    - [torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html)
    - [PyTorch performance tuning guide: disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis)
    """
    found = profiled_training(module, call)
    if found is None:
        return
    name = found.profiler.rpartition(".")[2]
    if found.profiler in ANNOTATING:
        message = f"`{name}` marks every operation of the training; let an option switch it on"
        remedy = "Let an option switch it on, by `enabled=…`"
    elif found.each_step:
        message = f"`{name}` starts, records and stops at every step; profile a few steps, with a `schedule`"
        remedy = "Start it before the loop, with a `schedule=…`, and call its `step()` in each step"
    else:
        message = f"`{name}` records every step of the training and keeps it all; give it a `schedule`"
        remedy = "Give `torch.profiler.profile` a `schedule=…`, and call its `step()` in each step"
    yield Finding(call, message, related=((found.training, "what trains"),), remedy=remedy)

"""TL807: the number of threads is set when nobody reads it any more."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import unsafe
from torchlint.fixes.environment import moved_up
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .threads import trains_with_one_thread, unread_settings


@rule(
    "TL807",
    "threads-configured-too-late",
    severity=WARNING,
    fix="unsafe",
    measured=False,
    on=(cst.Assign, cst.Call),
    mentions=("OMP_|KMP_|MKL_NUM_THREADS|OPENBLAS_NUM_THREADS|set_num_threads", "torch|numpy"),
)
def threads_configured_too_late(node: cst.Assign | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `OMP_NUM_THREADS`, `OMP_PROC_BIND`, `GOMP_CPU_AFFINITY`, `MKL_NUM_THREADS`, `KMP_AFFINITY` and their
    like set in `os.environ` after torch has been imported, and `OPENBLAS_NUM_THREADS` after NumPy.

    `torch.set_num_threads(1)` in a program that trains in one process on the CPU is advice. Programs with an
    accelerator, and those that start other processes, have reason to say so.

    What the file sets for processes that it starts is left alone, and so is what it sets beside
    `torch.set_num_threads()`, or in a function that only other files call.

    ## Why is this bad?

    The libraries read these variables once, when they are loaded. In torch's packages for Linux that is the
    import: with torch 2.13, what was set between `import torch` and the first operation changed neither the
    number of threads nor the processors that they ran on. Nothing says so, and the program runs with as many
    threads as the machine has processors, in each of its processes. Intel's runtime, where it is preloaded,
    reads the `KMP_*` variables while torch is imported, too. On other systems the OpenMP runtime may
    read them somewhat later, at its first use.

    With one thread, each operation runs on one core, however many there are. Only for small models does that
    cost nothing.

    ## Example

    ```python
    import os
    import torch

    os.environ["OMP_NUM_THREADS"] = "4"
    ```

    ## Use instead

    ```python
    import os

    os.environ["OMP_NUM_THREADS"] = "4"
    import torch
    ```

    or `torch.set_num_threads(4)`, at any time, for torch alone.

    ## Fix safety

    The fix moves the statement above the import. It is unsafe: the program then runs with a number of threads
    that it has never run with, which may make it faster or slower, and sums may be rounded otherwise. There
    is none where the value is not written out, or the statement does not stand in the block of the import.

    ## References

    - [Threading environment variables](https://docs.pytorch.org/docs/stable/threading_environment_variables.html)
    - [CPU threading and TorchScript inference](https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html)
    - [PyTorch performance tuning guide: utilize OpenMP](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if isinstance(node, cst.Call) and trains_with_one_thread(module, node):
        yield Finding(
            node,
            "with one thread, the operations of this training on the CPU run on a single core",
            severity=NOTE,
            remedy="Delete the line, or set the number of cores that training may use",
        )
        return
    for setting, imported in unread_settings(module, node):
        library = "NumPy" if setting.variable.startswith("OPENBLAS") else "torch"
        yield Finding(
            node,
            f"`{setting.variable}` is read when {library} is imported, and set after that; set it above",
            fix=unsafe(module, "Set it above the import", moved_up(module, setting, imported)),
            remedy=f"Set it above the first import of {library}",
            related=((imported, "imported here"),),
        )

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

    Finds `OMP_NUM_THREADS`, `OMP_PROC_BIND`, `GOMP_CPU_AFFINITY`, `MKL_NUM_THREADS`, `KMP_AFFINITY` and
    similar variables set in `os.environ` after torch was imported, and `OPENBLAS_NUM_THREADS` set after NumPy
    was imported.

    `torch.set_num_threads(1)` in a program that trains in one process on the CPU is reported as a note.
    Programs that use an accelerator or start other processes have a reason for it.

    The rule ignores variables set for processes that the file starts, variables set next to
    `torch.set_num_threads()`, and functions that only other files call.

    ## Why is this bad?

    The libraries read these variables once, when they are loaded. For the Linux packages of torch this
    happens at import: with torch 2.13, variables set between `import torch` and the first operation changed
    neither the number of threads nor their affinity. There is no warning, and each process uses as many
    threads as the machine has cores. If Intel's OpenMP runtime is preloaded, it also reads the `KMP_*`
    variables while torch is imported. On other systems the OpenMP runtime may read them later, at its first
    use.

    With one thread, each operation runs on a single core. This costs nothing only for small models.

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

    or call `torch.set_num_threads(4)`, which works at any time but affects torch only.

    ## Fix safety

    Unsafe: the fix moves the statement above the import. The program then runs with a different number of
    threads, which may make it faster or slower and may change rounding. There is no fix if the value is not a
    literal, or if the statement is not in the same block as the import.

    ## References

    - [Threading environment variables](https://docs.pytorch.org/docs/stable/threading_environment_variables.html)
    - [CPU threading and TorchScript inference](https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html)
    - [PyTorch performance tuning guide: utilize OpenMP](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if isinstance(node, cst.Call) and trains_with_one_thread(module, node):
        yield Finding(
            node,
            "with one thread, this training on the CPU uses a single core",
            severity=NOTE,
            remedy="Remove the call, or set the number of cores that training may use",
        )
        return
    for setting, imported in unread_settings(module, node):
        library = "NumPy" if setting.variable.startswith("OPENBLAS") else "torch"
        yield Finding(
            node,
            f"{library} has already read `{setting.variable}` at import; setting it here has no effect",
            fix=unsafe(
                module,
                "Set it before the import",
                moved_up(module, setting, imported),
                risk="the program then runs with another number of threads, faster or slower",
            ),
            remedy=f"Set it before the first import of {library}",
            related=((imported, "imported here"),),
        )

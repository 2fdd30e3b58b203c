"""TL805: a switch that is there to find one error slows down every run."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import remove_statement, unsafe
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .debugging import aids_left_on


@rule(
    "TL805",
    "launch-blocking-left-on",
    severity=WARNING,
    fix="unsafe",
    on=(cst.Assign, cst.Call),
    mentions=(
        "LAUNCH_BLOCKING|AMD_SERIALIZE|_MEMORY_CACHING|DISTRIBUTED_DEBUG|COMPILE_DEBUG|sync_debug_mode",
    ),
    lasting=True,
)
def launch_blocking_left_on(node: cst.Assign | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds debugging switches that the source code sets for every run: `CUDA_LAUNCH_BLOCKING` and its AMD
    counterparts, `PYTORCH_NO_CUDA_MEMORY_CACHING`, and `TORCH_DISTRIBUTED_DEBUG` at the level `DETAIL`.
    `TORCH_COMPILE_DEBUG` and `torch.cuda.set_sync_debug_mode` are reported as notes.

    The rule ignores switches set by an option or after a failure, switches that the file resets, functions
    that enforce determinism, tests, and variables set after CUDA was initialized, which have no effect.

    ## Why is this bad?

    Accelerators are fast because kernels are launched asynchronously. With blocking launches the host waits
    for every kernel, and the device is idle between two kernels. Without the caching allocator every tensor
    is allocated and freed by the driver, and freeing synchronizes with the device. With detailed debugging of
    collectives, all ranks compare their arguments before each collective. These switches help to find an
    error; left on, they slow down every run.

    ## Example

    ```python
    import os

    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    import torch
    ```

    ## Use instead

    ```python
    import torch
    ```

    and set the variable only to debug: `CUDA_LAUNCH_BLOCKING=1 python train.py`.

    ## Fix safety

    Unsafe: the fix removes the statement. Kernel errors are then reported later than where they occur, and a
    program that does not synchronize its streams correctly may have worked only because of the switch. There
    is no fix if the same statement sets something else.

    ## References

    - [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    - [PyTorch performance tuning guide: disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis)
    - [torch.distributed: TORCH_DISTRIBUTED_DEBUG](https://docs.pytorch.org/docs/stable/distributed.html#torch-distributed-debug)
    """
    for switch in aids_left_on(module, node):
        place = module.tree.parent(node)
        statement = isinstance(node, cst.Assign) or isinstance(place, cst.Expr)
        edits = remove_statement(module, node) if switch.alone and statement else None
        yield Finding(
            node,
            f"`{switch.name}` {switch.aid.cost}; set it only for debugging",
            severity=WARNING if switch.aid.always else NOTE,
            fix=unsafe(module, "Remove the statement", edits, risk=_LOST),
            remedy=f"Remove `{switch.name}`, and set it only for debugging",
        )


_LOST = "errors are reported later or in less detail, and the program may only work with the switch on"

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

    Finds switches for debugging that a program sets in its source, for every run: `CUDA_LAUNCH_BLOCKING` and
    its like for AMD, `PYTORCH_NO_CUDA_MEMORY_CACHING`, and `TORCH_DISTRIBUTED_DEBUG` at the level `DETAIL`. A
    note is given for `TORCH_COMPILE_DEBUG` and `torch.cuda.set_sync_debug_mode`.

    What an option or a failure asks for is left alone, and so is what the file switches off again, what a
    function for determinism sets, tests, and what is set when CUDA has been initialised, and does nothing.

    ## Why is this bad?

    An accelerator is fast because the host runs ahead of it. With blocking launches the host waits for every
    kernel, so that the device idles between any two of them. Without the caching allocator every tensor is
    asked of the driver, which waits for the device to free one. In detailed debugging of collectives all
    processes compare notes before each of them. All of this is there to find one error, and is not seen
    afterwards: the program only is slow.

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

    and, when there is an error to find, `CUDA_LAUNCH_BLOCKING=1 python train.py`.

    ## Fix safety

    The fix removes the statement. It is unsafe: an error of a kernel is then reported later than where it was
    made, and a program whose streams are not ordered as they should be may have worked only because of the
    switch. There is no fix where the same statement sets something else.

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
            f"`{switch.name}` {switch.aid.cost}; set it only for the run that looks for an error",
            severity=WARNING if switch.aid.always else NOTE,
            fix=unsafe(module, "Remove the statement", edits),
            remedy=f"Remove `{switch.name}`, and set it only for the run that looks for an error",
        )

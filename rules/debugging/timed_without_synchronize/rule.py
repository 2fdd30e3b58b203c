"""TL806: a clock is read while the device is still at work."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import insert_before, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.clocks import Interval
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase

from .timing import ends_too_early, timed_by_block, timed_by_call, waited_above

_ACCELERATOR_SINCE = "2.6"


@rule(
    "TL806",
    "timed-without-synchronize",
    severity=WARNING,
    fix="unsafe",
    measured=False,
    on=(cst.BinaryOperation, cst.Call),
    mentions=(
        "torch",
        "import time|from time|, time|,time|timeit",
        "time(|time.time|time as|time_ns|perf_counter|monotonic|timeit",
    ),
)
def timed_without_synchronize(node: cst.BinaryOperation | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds times that are taken with a clock of the host (`time.time()`, `time.perf_counter()`, `timeit`, a
    context manager of the file that reads one) around work for an accelerator, where nothing between the two
    readings waits for the device.

    A synchronisation waits, also in a helper of the file; so does reading a value (`.item()`, `print(loss)`),
    a copy to or from the host, and `torch.distributed.barrier()`, that of NCCL included. What another file's
    function does is not known, and such times are left alone; so are those of loops over data and of whole
    trainings, where the last step is all that is missing, times from one iteration to the next, deadlines,
    and what is timed because it is done once, such as a compilation.

    ## Why is this bad?

    The host only hands work to the device, and goes on before it is done. The clock then shows how long it
    takes to launch the kernels, which may be far less than they run, or, where the queue is full, the work of
    others. What waits next, a loss that is printed, pays for it all. Such numbers lead to optimising what is
    not slow.

    ## Example

    ```python
    start = time.perf_counter()
    output = model(images)
    print(f"{time.perf_counter() - start:.4f} s")
    ```

    ## Use instead

    ```python
    torch.cuda.synchronize()
    start = time.perf_counter()
    output = model(images)
    torch.cuda.synchronize()
    print(f"{time.perf_counter() - start:.4f} s")
    ```

    For a benchmark there is `torch.utils.benchmark.Timer`, which synchronises and warms up by itself. In a
    training `torch.cuda.Event(enable_timing=True)`, recorded around the step and read some steps later, does
    not hold the host up.

    ## Fix safety

    The fix synchronises before both readings, where there is a device
    (`if torch.cuda.is_available(): torch.cuda.synchronize()`). It is unsafe: the program waits where it did
    not before, and its numbers change, which is the purpose. There is none in a training step, which would be
    slower for it, and none for `timeit` and context managers.

    ## References

    - [CUDA semantics: asynchronous execution](https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution)
    - [torch.utils.benchmark](https://docs.pytorch.org/docs/stable/benchmark_utils.html)
    - [torch.cuda.Event](https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html)
    """
    if isinstance(node, cst.Call):
        yield from _of_timer(module, node)
        return
    found = ends_too_early(module, node)
    if found is None:
        return
    measured, work = found
    training = phase(module, measured.end) is Phase.TRAINING and places.hot(module, measured.end) is not None
    advice = "record `torch.cuda.Event`s around it" if training else "call `torch.cuda.synchronize()` first"
    remedy = "Record a `torch.cuda.Event` on each side, and ask them for the time when all is done"
    if not training:
        remedy = "Call `torch.cuda.synchronize()` before each reading of the clock"
    yield Finding(
        measured.end,
        f"the clock is read when the work has been handed to the device, not when it is done; {advice}",
        fix=None if training else _fix(module, measured),
        remedy=remedy,
        related=((work, "nothing waits for this"),),
    )


def _of_timer(module: Module, call: cst.Call) -> Iterator[Finding]:
    """``timeit`` and the context managers of the file."""
    work = timed_by_call(module, call)
    if work is not None:
        yield Finding(
            call,
            "`timeit` does not wait for the device; use `torch.utils.benchmark.Timer`",
            related=((work, "nothing waits for this"),),
            remedy="Use `torch.utils.benchmark.Timer`",
        )
    block = timed_by_block(module, call)
    if block is not None:
        end, work = block
        yield Finding(
            call,
            "the timer reads its clock when the work has been handed to the device, not when it is done; "
            "synchronize before it does",
            related=((end, "the clock is read here"), (work, "nothing waits for this")),
            remedy="Call `torch.cuda.synchronize()` in the timer, before each reading of its clock",
        )


def _fix(module: Module, measured: Interval) -> Fix | None:
    """Wait before both readings, where there is a device; None where one of them shares its statement."""
    newer = module.tree.mentions("torch.accelerator") and module.target.at_least(_ACCELERATOR_SINCE)
    if not newer and not module.tree.mentions("cuda"):
        return None
    package = "torch.accelerator" if newer else "torch.cuda"
    ends = [measured.end] if waited_above(module, measured.start) else [measured.start, measured.end]
    edits = []
    for place in ends:
        wait = spell(module, f"{package}.synchronize", place)
        asked = spell(module, f"{package}.is_available", place)
        if (
            wait is None
            or asked is None
            or not isinstance(module.tree.statement(place), cst.SimpleStatementLine)
        ):
            return None
        indent = module.tree.root.default_indent
        code = f"if {asked.text}():\n{indent}{wait.text}()"
        edits += [insert_before(module, module.tree.statement(place), code), wait.edits]
    return unsafe(module, "Wait for the device before the clock is read", *edits)

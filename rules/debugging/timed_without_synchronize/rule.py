"""TL806: a clock is read while the device is still at work."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import insert_before, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.module import Module
from torchlint.semantics.phases import Phase, phase

from .timers import Interval
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

    Finds times taken on the host (`time.time()`, `time.perf_counter()`, `timeit`, or a timing context manager
    of the project) around work on an accelerator, if nothing in between synchronizes with the device.

    An explicit synchronization counts, also in a helper of the file, and so does reading a value (`.item()`,
    `print(loss)`), a copy to or from the host, and `torch.distributed.barrier()`. The rule ignores code that
    calls functions of other files, loops over data and whole training runs, where only the last step is
    missing, times between iterations, deadlines, and one-time work such as compilation.

    ## Why is this bad?

    The host only launches kernels and continues before they have finished. The measured time is the launch
    time, which may be far shorter than the run time of the kernels, or, if the launch queue is full, the run
    time of earlier kernels. The time is then attributed to the next operation that synchronizes, such as
    printing the loss. Such numbers lead to optimizing code that is not slow.

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

    For benchmarks use `torch.utils.benchmark.Timer`, which synchronizes and warms up. In a training step use
    `torch.cuda.Event(enable_timing=True)`: recorded around the step and read some steps later, events do not
    block the host.

    ## Fix safety

    The fix synchronizes before both times are taken, if a device is available (`if torch.cuda.is_available():
    torch.cuda.synchronize()`). It is unsafe, because the program now waits for the device and reports
    different times, as intended. There is no fix in a training step, which would become slower, nor for
    `timeit` and context managers.

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
    advice = "use `torch.cuda.Event` instead" if training else "call `torch.cuda.synchronize()` first"
    remedy = "Record a `torch.cuda.Event` before and after, and read `elapsed_time()` some steps later"
    if not training:
        remedy = "Call `torch.cuda.synchronize()` before taking each time"
    yield Finding(
        measured.end,
        f"the time is taken before the device has finished; {advice}",
        fix=None if training else _fix(module, measured),
        remedy=remedy,
        related=((work, "nothing synchronizes after this"),),
    )


def _of_timer(module: Module, call: cst.Call) -> Iterator[Finding]:
    """Yield ``timeit`` and the context managers of the file."""
    work = timed_by_call(module, call)
    if work is not None:
        yield Finding(
            call,
            "`timeit` does not synchronize with the device; use `torch.utils.benchmark.Timer`",
            related=((work, "nothing synchronizes after this"),),
            remedy="Use `torch.utils.benchmark.Timer`",
        )
    block = timed_by_block(module, call)
    if block is not None:
        end, work = block
        yield Finding(
            call,
            "this timer takes the time before the device has finished; synchronize first",
            related=((end, "the time is taken here"), (work, "nothing synchronizes after this")),
            remedy="Call `torch.cuda.synchronize()` in the timer before it takes each time",
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
    return unsafe(
        module,
        "Synchronize before taking the time",
        *edits,
        risk="the program waits for the device here, and reports other times",
    )

"""TL605: recording of the CUDA memory history is never stopped."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.lexicon import Role, begins, has
from torchlint.semantics.module import Module

_RECORDING = "torch.cuda.memory._record_memory_history"
_ASKING = (Role.PROFILING, Role.MEASUREMENT, Role.RECORDING, Role.MEMORY, Role.DEBUGGING)


def _begins_recording(name: str | None) -> bool:
    """Return whether a function of this name begins a recording."""
    return begins(name, Role.BEGINNING) or has(name, Role.SAVING) or name == "__enter__"


@rule(
    "TL605",
    "memory-history-left-on",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("_record_memory_history",),
    lasting=True,
)
def memory_history_left_on(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.cuda.memory._record_memory_history()` in a file that never stops the recording with
    `enabled=None`. The rule ignores recordings that an option turns on for the whole run, a history kept to
    be dumped on an out-of-memory error, functions that start recording for their callers, and scripts that
    end by taking the snapshot.

    ## Why is this bad?

    While recording is on, every allocation and every free captures a stack trace of several kilobytes on the
    host. Without `max_entries` all of them are kept, and host memory fills up.

    ## Example

    ```python
    torch.cuda.memory._record_memory_history()
    train(model, loader)
    torch.cuda.memory._dump_snapshot("memory.pickle")
    ```

    ## Use instead

    ```python
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    for step in range(5):
        train_step(model, next(batches))
    torch.cuda.memory._dump_snapshot("memory.pickle")
    torch.cuda.memory._record_memory_history(enabled=None)
    ```

    ## Fix safety

    There is no fix: how many steps to record is a decision for the author.

    ## References

    - [Understanding CUDA memory usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)
    """
    if module.qualified(call.func) != _RECORDING or is_test(module):
        return
    recordings = [node for node in module.tree.nodes(cst.Call) if module.qualified(node.func) == _RECORDING]
    if not all(_begins(module, node) for node in recordings):
        return
    if _half_of_a_pair(module, call) or _asked_for(module, call) or _kept_for_failure(module):
        return
    if _ends_with_snapshot(module, call):
        return
    bounded = not module.argument(call, "max_entries").absent
    what = "takes a stack trace at" if bounded else "keeps a stack trace of"
    yield Finding(
        call,
        f"memory history recording never stops and {what} every allocation",
        remedy=f"Call `{module.source(call.func)}(enabled=None)` after taking the snapshot",
    )


def _begins(module: Module, call: cst.Call) -> bool:
    """Return whether a call certainly switches the recording on."""
    enabled = module.argument(call, "enabled")
    return enabled.absent or (enabled.given and enabled.constant in (True, "all", "state"))


def _half_of_a_pair(module: Module, call: cst.Call) -> bool:
    """Return whether a function that others call begins the recording; another one may end it."""
    function = module.function(call)
    if not isinstance(function, cst.FunctionDef) or module.callers(function):
        return False
    return _begins_recording(function.name.value)


def _asked_for(module: Module, call: cst.Call) -> bool:
    """Return whether an option asks for a record of the whole run: not of some of the rounds of a loop."""
    if module.flow.loops(call):
        return False
    branches = module.flow.branches(call, outward=True)
    return any(branch.holds and has(module.source(branch.test), *_ASKING) for branch in branches)


def _kept_for_failure(module: Module) -> bool:
    """Return whether the snapshot is taken where memory has run out."""
    if module.tree.mentions("out_of_memory_observer"):
        return True
    return any("_snapshot" in module.source(handler) for handler in module.tree.nodes(cst.ExceptHandler))


def _ends_with_snapshot(module: Module, call: cst.Call) -> bool:
    """Return whether a script that records itself ends with the snapshot, and the recording with it."""
    if module.function(call) is not None:
        return False
    last: cst.CSTNode = module.tree.root.body[-1]
    while isinstance(last, (cst.If, cst.With)):
        last = last.body.body[-1]
    return isinstance(last, cst.SimpleStatementLine) and "_snapshot" in module.source(last)

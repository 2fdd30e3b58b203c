"""TL605: the history of device memory is recorded, and nothing ends it."""

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
    """Whether a function of this name begins a recording."""
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

    Finds `torch.cuda.memory._record_memory_history()` in a file that never ends the recording with
    `enabled=None`. A run that is recorded as a whole because an option asks for it is left alone, and so are
    a history that is kept for the moment when memory runs out, a function that others call to begin, and a
    script whose last line takes the snapshot.

    ## Why is this bad?

    As long as it is on, every allocation and every free takes a stack trace on the host and keeps it, several
    kilobytes each. Without `max_entries` they are kept for ever, so that the memory of the host fills up.

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

    There is no fix: how many steps are worth recording is for the author to say.

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
    kept = "takes a stack trace" if bounded else "takes a stack trace and keeps it for ever"
    yield Finding(
        call,
        f"nothing ends this recording, so that every allocation {kept}",
        remedy=f"Call `{module.source(call.func)}(enabled=None)` when the snapshot is taken",
    )


def _begins(module: Module, call: cst.Call) -> bool:
    """Whether a call certainly switches the recording on."""
    enabled = module.argument(call, "enabled")
    return enabled.absent or (enabled.given and enabled.constant in (True, "all", "state"))


def _half_of_a_pair(module: Module, call: cst.Call) -> bool:
    """Whether a function that others call begins the recording; another one may end it."""
    function = module.function(call)
    if not isinstance(function, cst.FunctionDef) or module.callers(function):
        return False
    return _begins_recording(function.name.value)


def _asked_for(module: Module, call: cst.Call) -> bool:
    """Whether an option asks for a record of the whole run: not of some of the rounds of a loop."""
    if module.flow.loops(call):
        return False
    branches = module.flow.branches(call, outward=True)
    return any(branch.holds and has(module.source(branch.test), *_ASKING) for branch in branches)


def _kept_for_failure(module: Module) -> bool:
    """Whether the snapshot is taken where memory has run out."""
    if module.tree.mentions("out_of_memory_observer"):
        return True
    return any("_snapshot" in module.source(handler) for handler in module.tree.nodes(cst.ExceptHandler))


def _ends_with_snapshot(module: Module, call: cst.Call) -> bool:
    """Whether a script that records itself ends with the snapshot, and the recording with it."""
    if module.function(call) is not None:
        return False
    last: cst.CSTNode = module.tree.root.body[-1]
    while isinstance(last, (cst.If, cst.With)):
        last = last.body.body[-1]
    return isinstance(last, cst.SimpleStatementLine) and "_snapshot" in module.source(last)

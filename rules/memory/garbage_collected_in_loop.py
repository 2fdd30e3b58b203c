"""TL602: the garbage collector of Python runs at every step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import reason
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

from .clearances import clears_each_step


@rule(
    "TL602",
    "garbage-collected-in-loop",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("torch", "gc", "collect"),
    remedy="Remove the call, or make it once in many steps",
)
def garbage_collected_in_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `gc.collect()` at every step of a loop that works on the device, also in helpers that are called
    there. Calls now and then, behind an option, in exception handlers, between models and around measurements
    are left alone, and so is the collection of the young generations only, `gc.collect(0)`.

    ## Why is this bad?

    A full collection looks at every object that Python holds, those of torch and its libraries among them,
    and meanwhile the host queues no work for the device. It frees no tensor that `del` or the end of a
    function does not free at once, unless objects refer to each other in a circle.

    ## Example

    ```python
    for images, labels in loader:
        train_step(model, images.cuda(), labels.cuda())
        gc.collect()
    ```

    ## Use instead

    ```python
    for images, labels in loader:
        train_step(model, images.cuda(), labels.cuda())
    ```

    If circles hold memory, collect once in many steps: `if step % 500 == 0: gc.collect()`.

    ## Fix safety

    There is no fix: whether circles of objects hold memory is for the author to say.

    ## References

    - [gc: garbage collector interface](https://docs.python.org/3/library/gc.html)
    """
    if call.args or module.qualified(call.func) != "gc.collect":
        return
    hot = clears_each_step(module, call)
    if hot is None or module.tree.mentions("gc.disable("):
        return
    yield Finding(
        call,
        "`gc.collect()` at every step looks at every object that Python holds while the device gets no work",
        related=((hot.path[0] if hot.path else hot.loop, reason(hot)),),
    )

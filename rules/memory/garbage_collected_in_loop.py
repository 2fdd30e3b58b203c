"""TL602: Python's garbage collector runs at every step."""

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
    named={cst.Call: ("collect",)},
    remedy="Remove the call, or collect only every few hundred steps",
)
def garbage_collected_in_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `gc.collect()` at every step of a loop that runs on the device, including in helpers called from the
    loop. The rule ignores calls in only some iterations, behind an option, in exception handlers, between
    models or around measurements, and `gc.collect(0)`, which collects only the youngest generation.

    ## Why is this bad?

    A full collection traverses every container object in the process, including those of torch and its
    libraries. The host launches no kernels meanwhile. Tensors are freed as soon as their last reference goes
    away; the collector only frees objects in reference cycles.

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

    If reference cycles keep tensors alive, collect every few hundred steps: `if step % 500 == 0:
    gc.collect()`.

    ## Fix safety

    There is no fix: the program may rely on the collection to free reference cycles.

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
        "`gc.collect()` at every step traverses all Python objects and delays kernel launches",
        related=((hot.path[0] if hot.path else hot.loop, reason(hot)),),
    )

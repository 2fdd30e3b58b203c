"""TL601: the allocator's cache is given back to the driver at every step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import remove_statement, safe, unsafe
from torchlint.messages import reason
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.places import Hot

from .clearances import (
    called_elsewhere,
    clears_each_step,
    emptying,
    explained,
    measures_memory,
)


@rule(
    "TL601",
    "cache-emptied-in-loop",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("empty_cache|clear_device_cache|free_memory|garbage_collection_cuda",),
    remedy="Remove the call, or move it out of the loop",
)
def cache_emptied_in_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.cuda.empty_cache()`, its twins for other accelerators and helpers of well-known libraries
    that call them, at every step of a loop that works on the device. Calls behind an option for saving
    memory, now and then, after a failed allocation, between models and around measurements are left alone.

    ## Why is this bad?

    PyTorch keeps freed memory for the next allocation. Giving it back waits for the device, frees every
    cached block, and makes the next step ask the driver for memory again, which is slow and waits for the
    device once more. It does not make room: memory in the cache is used before new memory is asked for.

    ## Example

    ```python
    for images, labels in loader:
        train_step(model, images.cuda(), labels.cuda())
        torch.cuda.empty_cache()
    ```

    ## Use instead

    ```python
    for images, labels in loader:
        train_step(model, images.cuda(), labels.cuda())
    ```

    If the memory is fragmented, `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` helps; if it does not
    suffice, a smaller batch does.

    ## Fix safety

    Safe: results do not depend on the cache, so the fix removes the call. It is unsafe where a comment right
    above the call, or one about memory with no empty line between, gives a reason for it. None is offered
    where the file measures memory, since what it measures would change, and where a function that empties the
    cache is also called at places that do not run at every step.

    ## References

    - [Visualize and understand GPU memory in PyTorch](https://huggingface.co/blog/train_memory)
    - [CUDA semantics: memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
    """
    name = emptying(module, call)
    if name is None:
        return
    hot = clears_each_step(module, call)
    if hot is None:
        return
    yield Finding(
        call,
        f"`{name}()` at every step gives back memory that the next one asks for again",
        fix=_fix(module, call, hot),
        related=((hot.path[0] if hot.path else hot.loop, reason(hot)),),
    )


def _fix(module: Module, call: cst.Call, hot: Hot) -> Fix | None:
    if not isinstance(module.tree.parent(call), cst.Expr) or measures_memory(module):
        return None
    if called_elsewhere(module, hot, call) or call.args:
        return None
    make = unsafe if explained(module, call) else safe
    return make(module, "Remove the call", remove_statement(module, _idle_without(module, call)))


def _idle_without(module: Module, call: cst.Call) -> cst.CSTNode:
    """The call, or the ``if torch.cuda.is_available():`` that holds nothing else."""
    statement = module.tree.statement(call)
    block = statement if isinstance(statement, cst.If) else module.tree.parent(statement)
    outer = block if isinstance(block, cst.If) else module.tree.parent(block) if block is not None else None
    if not isinstance(outer, cst.If) or outer.orelse is not None or len(outer.body.body) != 1:
        return call
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) != 1:
        return call
    if any(line.lstrip().startswith("#") for line in module.source(outer).splitlines()):
        # What stands above the call would go with the condition.
        return call
    is_else = isinstance(module.tree.parent(outer), cst.If)
    return call if is_else or not _only_asks(module, outer.test) else outer


def _only_asks(module: Module, test: cst.BaseExpression) -> bool:
    """Whether a condition changes nothing: names and attributes, compared or not, and ``is_available()``."""
    return all(
        (module.qualified(node.func) or "").endswith(".is_available")
        if isinstance(node, cst.Call)
        else not isinstance(node, (cst.NamedExpr, cst.Await, cst.Subscript))
        for node in module.tree.descendants(test)
    )

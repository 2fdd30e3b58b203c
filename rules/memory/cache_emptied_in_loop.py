"""TL601: the allocator's cache is given back to the driver at every step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module

_EMPTYING = frozenset(
    {
        "torch.cuda.empty_cache",
        "torch.cuda.memory.empty_cache",
        "torch.accelerator.empty_cache",
        "torch.accelerator.memory.empty_cache",
        "torch.xpu.empty_cache",
        "torch.mps.empty_cache",
    }
)
_MEASURING = re.compile(
    r"memory_(allocated|reserved|cached|stats|summary|snapshot|usage)|mem_get_info|nvml|nvidia[-_]smi|gputil",
    re.IGNORECASE,
)
_SAVING = re.compile(r"cache|memory|_mem\b|vram|offload|empty", re.IGNORECASE)


@rule(
    "TL601",
    "cache-emptied-in-loop",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("empty_cache",),
)
def cache_emptied_in_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.cuda.empty_cache()` (and its twins for other accelerators) at every step of a loop that
    works on the device. Calls behind an option for saving memory, now and then, or after a failed
    allocation are left alone.

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

    Results do not depend on the cache, so the fix removes the call. None is offered where the file measures
    memory, since what it measures would change.

    ## References

    - [Visualize and understand GPU memory in PyTorch](https://huggingface.co/blog/train_memory)
    - [CUDA semantics: memory management](https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management)
    """
    name = module.qualified(call.func)
    if name not in _EMPTYING:
        return
    hot = module.hot(call)
    if hot is None or _changes_models(hot.loop, module) or _asked_for(call, module):
        return
    yield Finding(
        call,
        f"`{name.removeprefix('torch.')}()` at every step gives back memory that the next one asks for again",
        fix=_fix(call, module),
        related=((hot.path[0] if hot.path else hot.loop, hot.reason),),
    )


def _changes_models(loop: cst.CSTNode, module: Module) -> bool:
    """Whether each iteration makes a model of its own and frees it: then the cache of the last is no use."""
    if not isinstance(loop, (cst.For, cst.While)):
        return False
    for node in module.tree.descendants(loop.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            bindings = module.bindings(node.func)
            if bindings and all(
                isinstance(binding.value, cst.Call) and module.tree.contains(loop.body, binding.node)
                for binding in bindings
            ):
                return True
    return False


def _asked_for(call: cst.Call, module: Module) -> bool:
    """Whether it happens only if an option for saving memory is set."""
    child: cst.CSTNode = call
    for ancestor in module.tree.ancestors(call):
        if isinstance(ancestor, cst.If) and child is ancestor.body:
            test = module.source(ancestor.test)
            if _SAVING.search(test) and "is_available" not in test:
                return True
        child = ancestor
    return False


def _fix(call: cst.Call, module: Module) -> Fix | None:
    if not isinstance(module.tree.parent(call), cst.Expr) or _MEASURING.search(module.tree.text):
        return None
    return module.safe("Remove the call", module.remove_statement(_idle_without(call, module)))


def _idle_without(call: cst.Call, module: Module) -> cst.CSTNode:
    """The call, or the ``if torch.cuda.is_available():`` that holds nothing else."""
    statement = module.tree.statement(call)
    block = module.tree.parent(statement)
    outer = module.tree.parent(block) if block is not None else None
    alone = isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    if outer is not None and any(line.lstrip().startswith("#") for line in module.source(outer).splitlines()):
        # What stands above the call would go with the condition.
        return call
    single = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    if alone and single and isinstance(outer, cst.If) and outer.orelse is None:
        test = outer.test
        is_else = isinstance(module.tree.parent(outer), cst.If)
        if isinstance(test, cst.Call) and not is_else:
            if (module.qualified(test.func) or "").endswith(".is_available"):
                return outer
    return call

"""TL601: the caching allocator is emptied at every step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix, Frequency
from torchlint.fixes import graded, remove_statement
from torchlint.messages import reason
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.attributes import SelfAttributes
from torchlint.semantics.flow.graph import Function
from torchlint.semantics.module import Module
from torchlint.semantics.places import Hot
from torchlint.semantics.repetition import frequency
from torchlint.semantics.spellings import last_name, start_of
from torchlint.semantics.values import Device

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

    Finds calls of `torch.cuda.empty_cache()`, its counterparts for other accelerators, and library helpers
    that call them, at every step of a loop that runs on the device. The rule ignores calls behind a
    memory-saving option, calls in only some iterations, and calls after an out-of-memory error, between
    models or around measurements.

    Findings are of low impact where a program evaluates single inputs one by one, which may differ in size,
    and where the method around the call keeps tensors on the host (`self.state[key] = average.to("cpu")`).

    ## Why is this bad?

    PyTorch's caching allocator keeps freed memory and reuses it for later allocations. `empty_cache()`
    synchronizes with the device and returns all cached blocks to the driver, so that the next step has to
    allocate them again with `cudaMalloc`, which is slow. It does not make more memory available to PyTorch:
    cached memory is reused before new memory is requested.

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

    If memory is fragmented, try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, then a smaller batch.

    ## Fix safety

    The fix removes the call and is safe, because results do not depend on the cache. It is unsafe if a
    comment explains the call. There is no fix if the file measures memory, because the measured values would
    change, or if the function that empties the cache is also called outside the loop.

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
        f"`{name}()` at every step frees cached memory that the next step reallocates",
        fix=_fix(module, call, hot),
        related=((hot.path[0] if hot.path else hot.loop, reason(hot)),),
        slight=_slight(module, call, hot),
    )


def _slight(module: Module, call: cst.Call, hot: Hot) -> str | None:
    """Return why there is little to gain, as where a program evaluates single inputs, which differ in size.

    Nor is there much where an optimizer or a model keeps tensors on the host, since memory is short.
    """
    function = module.function(call)
    around = (hot.loop, *hot.path) if function is None else (hot.loop, *hot.path, function)
    if frequency(module, call) is Frequency.BATCH and any(_makes_batch(module, each) for each in around):
        return "evaluates single inputs"
    offloads = function is not None and _keeps_on_host(module, function)
    return "memory is short: tensors are kept on the host" if offloads else None


def _keeps_on_host(module: Module, function: Function) -> bool:
    """Return whether a method puts tensors away on the host: ``self.state[key] = average.to("cpu")``."""
    return any(
        SelfAttributes.is_self(start_of(target.target, cst.Attribute, cst.Subscript))
        and isinstance(assign.value, cst.Call)
        and last_name(assign.value.func) in ("to", "cpu")
        and module.value(assign.value).device is Device.CPU
        for assign in module.tree.nodes_within(function, cst.Assign)
        for target in assign.targets
    )


def _makes_batch(module: Module, node: cst.CSTNode) -> bool:
    """Return whether code makes a batch of one input: ``image.unsqueeze(0)``."""
    home = module.home(node)
    return any(
        home.value(home.argument(call, "dim").node or call.args[0].value).constant == 0
        for name in ("unsqueeze", "unsqueeze_")
        for call in home.tree.within(node, home.tree.calls_by_name.get(name, ()))
        if call.args
    )


def _fix(module: Module, call: cst.Call, hot: Hot) -> Fix | None:
    if not isinstance(module.tree.parent(call), cst.Expr) or measures_memory(module):
        return None
    if called_elsewhere(module, hot, call) or call.args:
        return None
    risk = "a comment here gives a reason for the call" if explained(module, call) else None
    edits = remove_statement(module, _idle_without(module, call))
    return graded(module, "Remove the call", edits, risk=risk)


def _idle_without(module: Module, call: cst.Call) -> cst.CSTNode:
    """Return the call, or the ``if torch.cuda.is_available():`` that holds nothing else."""
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
    """Return whether a condition changes nothing: names and attributes, compared or not,
    and ``is_available()``.
    """
    return all(
        (module.qualified(node.func) or "").endswith(".is_available")
        if isinstance(node, cst.Call)
        else not isinstance(node, (cst.NamedExpr, cst.Await, cst.Subscript))
        for node in module.tree.descendants(test)
    )

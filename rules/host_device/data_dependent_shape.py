"""TL206 data-dependent-shape."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.graphbreaks import graph_break
from torchlint.semantics.module import Module
from torchlint.semantics.purpose import writes_results
from torchlint.semantics.synchronisation import (
    after_a_decision,
    after_a_wait,
    indexed_by_number,
    mask_of,
    shape_wait,
    trail,
    waiting_place,
    when,
)
from torchlint.semantics.values import Device, Kind


@rule(
    "TL206",
    "data-dependent-shape",
    severity=WARNING,
    fix="unsafe",
    on=(cst.Call, cst.Subscript),
    mentions=("torch|lightning|accelerate",),
)
def data_dependent_shape(node: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds operations whose output size depends on the contents of a tensor on the accelerator, in every
    iteration of a hot loop or in every forward pass: `nonzero`, `torch.where` with one argument,
    `masked_select`, `unique`, indexing by a boolean mask, assignment of a tensor through one,
    `repeat_interleave` by a tensor, `bincount`, `one_hot` without `num_classes`, slices that end where a
    tensor says (`x[:, : lengths.max()]`), items that are taken by a number on the device
    (`x[scores.argmax()]`), and what takes its size from one: factories (`torch.arange(lengths.max())`),
    `narrow`, `split`, `chunk`, `topk`, `repeat`, `expand` and `F.pad`.

    ## Why is this bad?

    The host has to know the size before it can allocate the result, so it waits until the device has counted.
    Under `torch.compile` such an operation breaks the graph or makes its shapes dynamic.

    ## Example

    ```python
    loss = F.cross_entropy(logits[labels != ignored], labels[labels != ignored])
    scores[scores < 0] = scores.mean()
    ```

    ## Use instead

    ```python
    loss = F.cross_entropy(logits, labels, ignore_index=ignored)
    scores = torch.where(scores < 0, scores.mean(), scores)
    ```

    An index with a dimension is looked up by the device: `x.index_select(0, scores.argmax().view(1))`.
    Weighted sums take the place of selections (`(x * mask).sum() / mask.sum()`), `repeat_interleave` takes
    `output_size=`, `one_hot` takes `num_classes`, and `torch.nonzero_static` a fixed size.

    ## Fix safety

    Since torch 1.10 the assignment of a number through a mask (`x[mask] = 0`) is a `masked_fill` and waits
    for nothing. Where the target admits an older release it is a note, and the fix writes
    `x.masked_fill_(mask, 0)`; it is unsafe, because a mask with fewer dimensions than `x` is laid along the
    first dimensions by the one and along the last by the other. The other operations have no fix.

    Of several tensors that are cut one behind the other only the first is reported: the host has waited then.
    Where a loop writes each result to a file, a slice is a note. In compiled code TL513 speaks instead.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not module.may_repeat(node) or not module.accelerated or not shape_wait(module, node):
        return
    hot = waiting_place(module, node)
    if hot is None or after_a_decision(module, node) or graph_break(module, node):
        return
    related = trail(module, hot)
    if isinstance(node, cst.Call):
        what = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        message = (
            f"the size of what `{module.tree.source(what)}` gives depends on the data: the host waits for it"
        )
        yield Finding(node, f"{message} {when(module, hot)}", related=related)
        return
    assigned = _assigned(module, node)
    if mask_of(module, node) is None:
        if after_a_wait(module, node):
            return
        number = indexed_by_number(module, node)
        message = "where this slice begins or ends is on the device: the host waits for it"
        if number is not None:
            message = f"`{module.source(number)}` is a number on the device: the host waits for it"
        severity = NOTE if writes_results(module, hot) else None
        yield Finding(node, f"{message} {when(module, hot)}", severity=severity, related=related)
    elif assigned is None:
        message = "indexing by a mask gives a size that depends on the data: the host waits for it"
        yield Finding(node, f"{message} {when(module, hot)}", related=related)
    elif module.value(assigned).kind is Kind.TENSOR and module.value(assigned).device is not Device.CPU:
        message = "a tensor assigned through a mask makes the host wait for the size of the selection"
        yield Finding(node, f"{message} {when(module, hot)}; use `torch.where`", related=related)
    elif module.value(assigned).kind in (Kind.NUMBER, Kind.BOOL) and module.target.admits_below("1.10"):
        message = (
            "before torch 1.10 assignment through a mask makes the host wait for the size of the selection"
        )
        fix = _masked_fill(module, node, assigned)
        yield Finding(node, f"{message} {when(module, hot)}", fix, severity=NOTE, related=related)


def _assigned(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """What is assigned through ``node``; None where it is read."""
    match module.tree.parent(node):
        case cst.AssignTarget() as target:
            statement = module.tree.parent(target)
            return statement.value if isinstance(statement, cst.Assign) else None
    return None


def _masked_fill(module: Module, node: cst.Subscript, number: cst.BaseExpression) -> Fix | None:
    mask = mask_of(module, node)
    statement = module.tree.parent(module.tree.parent(node) or node)
    if (
        mask is None
        or len(node.slice) != 1
        or not isinstance(statement, cst.Assign)
        or len(statement.targets) != 1
    ):
        return None
    source = module.tree.source
    code = f"{source(node.value)}.masked_fill_({source(mask)}, {source(number)})"
    return module.unsafe("Fill in place", module.replace(statement, code))

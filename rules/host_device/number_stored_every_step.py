"""TL215 number-stored-every-step."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import often, trail
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.values import Kind

from .remedies import as_spelt, inline, tight
from .sending import async_helper, beside, on_accelerator, place_of_sending
from .stakes import slight
from .stores import Store, filled_in_place, stored_number, written_indices


@rule(
    "TL215",
    "number-stored-every-step",
    severity=WARNING,
    fix="safe",
    on=cst.Subscript,
    mentions=("torch", "["),
    remedy="Fill on the device with `fill_` or `index_fill_`",
    follows=("TL201", "TL202", "TL208", "TL209", "TL210", "TL212", "TL213", "TL215"),
    synchronizes=True,
)
def number_stored_every_step(node: cst.Subscript, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python numbers that are stored in a tensor on the accelerator with a blocking copy, in every
    iteration of a hot loop or in every forward pass: in a single element (`lengths[i] = n`,
    `table[i, j] = n`), or in the elements that a list or a tensor of indices selects (`x[rows] = n`,
    `x[:, [0, 2]] = n`).

    Findings are of low impact, because few programs store a single number where time counts; in servers and
    decoding loops they are of high impact.

    ## Why is this bad?

    PyTorch creates a tensor from the number in host memory and copies it to the device, and the host waits
    until all work launched before the copy is done. Behind 6.4 ms of work, `x[5] = 1.0` blocked the host for
    6.4 ms (H200, torch 2.11). `fill_` and `index_fill_` pass the number to a kernel as an argument.

    Assigning to a slice (`x[2:4] = n`), to a row (`x[i] = n`, if `x` has two dimensions) or through a mask
    copies nothing and is not reported.

    ## Example

    ```python
    lengths = torch.zeros(32, dtype=torch.int64, device=device)
    for step in range(steps):
        lengths[slot] = 0
        scores[rows] = float("-inf")
        logits = model(tokens, lengths)
    ```

    ## Use instead

    ```python
    lengths = torch.zeros(32, dtype=torch.int64, device=device)
    for step in range(steps):
        lengths[slot].fill_(0)
        scores.index_fill_(0, rows, float("-inf"))
        logits = model(tokens, lengths)
    ```

    Collect many values in host memory, and copy them once with `non_blocking=True`. With several indices,
    `x[rows, columns] = zero` accepts a scalar that was created on the device once:
    `zero = torch.zeros((), device=device)`.

    ## Fix safety

    The fix is offered for single elements. It is safe for small constants at indices that certainly are
    numbers: what a list or a mask selects is a copy. It is unsafe for other numbers: if the dtype of the
    tensor cannot hold the number, `fill_` raises a different error than an assignment.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.Tensor.index_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_fill_.html)
    """
    if not may_recur(module, node):
        return
    store = stored_number(module, node)
    hot = place_of_sending(module, node) if store is not None else None
    if store is None or hot is None:
        return
    message = f"storing this number blocks on a host-to-device copy {often(hot)}"
    remedy = as_spelt(module, node, _filled_on_device(module, node, store))
    fix = filled_in_place(module, node, store)
    little = beside(module, node) or slight(module, node, "it copies a single number")
    yield Finding(store.number, message, fix, related=trail(hot), remedy=remedy, slight=little)


def _filled_on_device(module: Module, node: cst.Subscript, store: Store) -> str:
    """Return what fills in a number without sending it, by what the place is named by."""
    target, filled = inline(module, node.value), inline(module, store.number)
    if store.element:
        return f"Fill in place: `{inline(module, node)}.fill_({filled})`"
    if store.selector is None and any(
        index is not None and module.value(index).kind is Kind.LIST for index in written_indices(node)
    ):
        return f"Keep a mask on the device instead of lists: `{target}.masked_fill_(…, {filled})`"
    if store.selector is None:
        # Through indices on the device only a tensor of the same dtype is assigned.
        return f"Assign a scalar created on the device: `{target}.new_full((), {filled})`"
    if on_accelerator(module, store.selector):
        rows = f"{tight(module, store.selector)}.flatten()"
        return f"Fill in place: `{target}.index_fill_({store.dimension}, {rows}, {filled})`"
    if (helper := async_helper(module)) is not None:
        return f"Copy the indices with {helper}, and fill in place: `{target}.index_fill_(…)`"
    return f"Create the indices on the device once, and fill in place: `{target}.index_fill_(…)`"

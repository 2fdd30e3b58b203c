"""TL206 data-dependent-shape."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix, Impact
from torchlint.fixes import replace, unsafe
from torchlint.messages import trail, when
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.rules.host_device.purpose import writes_results
from torchlint.semantics.evidence import accelerated
from torchlint.semantics.graphbreaks import graph_break
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import (
    SHAPE_WAITS,
    after_a_wait,
    before_a_wait,
    indexed_by_number,
    mask_of,
    shape_wait,
    waiting_place,
)
from torchlint.semantics.values import Device, Kind

from .remedies import as_spelt, inline, tight
from .selections import IGNORING, Fate, fates, guards
from .stakes import slight


@rule(
    "TL206",
    "data-dependent-shape",
    severity=WARNING,
    fix="unsafe",
    on=(cst.Call, cst.Subscript),
    named={cst.Call: SHAPE_WAITS},
    mentions=("torch|lightning|accelerate",),
    remedy="Keep everything and let the mask choose, with `torch.where(…)`",
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

    Of several waits one behind the other, with no model to run in between, only the first is reported: once
    the host has waited, the device has nothing left to do. Where the next statement reads a number or copies
    to the host, that is the wait that counts (see TL202, TL203, TL205).
    Findings are of low impact where the selection is the result, as for the edges of a graph, a mean over
    what is selected, or a quotient that is only finite there; in servers and decoding loops they count as
    any other.
    Where a loop writes each result to a file, a slice is a note. In compiled code TL513 speaks instead.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not may_repeat(module, node) or not accelerated(module) or not shape_wait(module, node):
        return
    hot = waiting_place(module, node)
    if hot is None or after_a_wait(module, node) or graph_break(module, node):
        return
    if before_a_wait(module, node):
        return
    related = trail(hot)
    if isinstance(node, cst.Call):
        what = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        message = (
            f"the size of what `{module.tree.source(what)}` gives depends on the data: the host waits for it"
        )
        remedy, impact = as_spelt(module, node, _sized_beforehand(node)), Impact.HIGH
        if last_name(node.func) in _SELECTING:
            found = fates(module, node)
            remedy = _of_fates(found, _condition(module, node), module) or remedy
            impact = _impact(module, node, found)
        yield Finding(node, f"{message} {when(module, hot)}", related=related, remedy=remedy, impact=impact)
        return
    assigned = _assigned(module, node)
    if mask_of(module, node) is None:
        number = indexed_by_number(module, node)
        message = "where this slice begins or ends is on the device: the host waits for it"
        if number is not None:
            message = f"`{module.source(number)}` is a number on the device: the host waits for it"
        severity = NOTE if writes_results(module, hot) else None
        remedy = _FROM_SHAPE if number is None else _looked_up(module, node)
        message = f"{message} {when(module, hot)}"
        yield Finding(node, message, severity=severity, related=related, remedy=remedy)
    elif assigned is None:
        message = "indexing by a mask gives a size that depends on the data: the host waits for it"
        found = fates(module, node)
        remedy = as_spelt(module, node, _unselected(module, node, found))
        impact = _impact(module, node, found)
        yield Finding(node, f"{message} {when(module, hot)}", related=related, remedy=remedy, impact=impact)
    elif module.value(assigned).kind is Kind.TENSOR and module.value(assigned).device is not Device.CPU:
        message = "a tensor assigned through a mask makes the host wait for the size of the selection"
        message = f"{message} {when(module, hot)}; use `torch.where`"
        impact = slight(module, node) if guards(module, node, assigned) else Impact.HIGH
        yield Finding(node, message, related=related, remedy=_chosen(module, node, "…"), impact=impact)
    elif module.value(assigned).kind in (Kind.NUMBER, Kind.BOOL) and module.target.admits_below("1.10"):
        message = (
            "before torch 1.10 assignment through a mask makes the host wait for the size of the selection"
        )
        fix = _masked_fill(module, node, assigned)
        message, remedy = f"{message} {when(module, hot)}", _chosen(module, node, inline(module, assigned))
        yield Finding(node, message, fix, severity=NOTE, related=related, remedy=remedy)


_SELECTING = frozenset({"argwhere", "masked_select", "nonzero", "where"})


def _impact(module: Module, node: cst.BaseExpression, found: frozenset[Fate]) -> Impact:
    """The most that is at stake in a selection: little where what is selected is the result."""
    return slight(module, node) if Fate.KEPT in found else Impact.HIGH


def _of_fates(found: frozenset[Fate], mask: cst.BaseExpression | None, module: Module) -> str | None:
    """What spares a selection that is only counted, or one that is the result; None for others."""
    if Fate.KEPT in found:
        return "Compute the indices once if the mask stays the same, or give what it leaves out no weight"
    if found == {Fate.COUNTED} and mask is not None:
        return f"Count on the device: `{tight(module, mask)}.sum()`"
    return None


def _condition(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """The condition by which a call selects."""
    if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
        return (
            call.args[0].value if last_name(call.func) == "masked_select" and call.args else call.func.value
        )
    position = 1 if last_name(call.func) == "masked_select" else 0
    return call.args[position].value if len(call.args) > position else None


_FROM_SHAPE = "Take it from a shape, such as `x.shape[1]`, or as a number that the host has worked out itself"
_PLACES = "Compute with the condition and not with the places, `torch.where(…, …, …)`"
_BEFOREHAND = {
    "argwhere": _PLACES,
    "bincount": "Count with `torch.zeros(…).scatter_add_(0, …, …)`",
    "histc": "Give the range, `min=…` and `max=…`",
    "masked_select": "Keep everything and let the mask choose, with `torch.where(…)`",
    "nonzero": _PLACES,
    "one_hot": "Give the number of classes as a number of Python, `num_classes=…`",
    "repeat_interleave": "Give the length of the result, `output_size=…`",
    "sparse_coo_tensor": "Give the size, `size=…`",
    "to_sparse": "Remove `.to_sparse()` and stay dense",
    "unique": "Sort, and mark where a new value begins: `.sort().values.diff() != 0`",
    "unique_consecutive": "Mark where a new value begins: `.diff() != 0`",
    "where": _PLACES,
}


def _sized_beforehand(call: cst.Call) -> str:
    """What tells an operation how large its result is, or does with a result as large as its input."""
    return _BEFOREHAND.get(last_name(call.func) or "", _FROM_SHAPE)


def _looked_up(module: Module, node: cst.Subscript) -> str:
    if isinstance(module.tree.parent(node), cst.AssignTarget):
        return f"Fill on the device: `{inline(module, node.value)}.index_fill_(…, ….view(1), …)`"
    return f"Look it up on the device: `{inline(module, node.value)}.index_select(…, ….view(1))`"


def _unselected(module: Module, node: cst.Subscript, found: frozenset[Fate]) -> str:
    """What does without a selection: all of the tensor, with what is not wanted told or put out."""
    spared = _of_fates(found, mask_of(module, node), module)
    if spared is not None:
        return spared
    parent = module.tree.parent(node)
    if isinstance(parent, cst.AugAssign):
        sign = inline(module, parent.operator)[:-1]
        return _chosen(module, node, f"{inline(module, node.value)} {sign} {inline(module, parent.value)}")
    call = module.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and module.qualified(call.func) in IGNORING:
        return "Pass everything, with the label to leave out as `ignore_index=…`"
    return "Keep everything and let the mask choose, with `torch.where(…)`"


def _chosen(module: Module, node: cst.Subscript, code: str) -> str:
    """The assignment that takes the place of one through a mask."""
    target, mask = inline(module, node.value), mask_of(module, node)
    assert mask is not None
    chosen = f"{target} = torch.where({inline(module, mask)}, {code}, {target})"
    return as_spelt(module, node, f"Write `{chosen}`; the mask needs as many dimensions")


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
    return unsafe(module, "Fill in place", replace(module, statement, code))

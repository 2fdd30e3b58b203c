"""TL206 data-dependent-shape."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, unsafe
from torchlint.messages import SIZED_BEFOREHAND, trail, when
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.rules.host_device.purpose import writes_results
from torchlint.semantics.attributes import part_of
from torchlint.semantics.evidence import perhaps_accelerated
from torchlint.semantics.graphbreaks import graph_break
from torchlint.semantics.module import Module
from torchlint.semantics.names import BindingKind
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.sinks import verdicts
from torchlint.semantics.sources import Path, Source, Through, onward, some, traced
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import SHAPE_WAITS, indexed_by_number, mask_of, shape_wait
from torchlint.semantics.values import Device, Kind

from ..invariance import never_changes
from ..neighbours import beside_staying_wait
from ..numbers import gone_through
from ..remedies import SAME_INPUT, SAME_MASK, as_spelt, inline, tight
from ..selections import (
    IGNORING,
    Fate,
    computes_on_selection,
    fates,
    guards,
    has_rows,
    looped_over,
    selected_by_another,
)
from ..stakes import BESIDE, in_row, inherent, slight, unspared
from ..suppression import SUPPRESSION, first_wait, suppression
from ..waits import after_a_wait, before_a_wait, waiting_place, within_a_wait


@rule(
    "TL206",
    "data-dependent-shape",
    severity=WARNING,
    fix="unsafe",
    on=(cst.Call, cst.Subscript),
    named={cst.Call: SHAPE_WAITS},
    mentions=("torch|lightning|accelerate",),
    remedy="Keep the shape, and select with `torch.where(…)`",
    synchronizes=True,
)
def data_dependent_shape(node: cst.Call | cst.Subscript, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds operations whose output size depends on values of a tensor on the accelerator, in every iteration
    of a hot loop or in every forward pass. This includes

    - `nonzero`, `torch.where` with one argument, `masked_select`, `unique`, indexing with a boolean mask,
      and assigning a tensor through one;
    - `repeat_interleave` with a tensor, `bincount`, and `one_hot` without `num_classes`;
    - slices with bounds on the device (`x[:, : lengths.max()]`) and indexing with a number on the device
      (`x[scores.argmax()]`);
    - operations that take a size from the device: factory functions (`torch.arange(lengths.max())`),
      `narrow`, `split`, `chunk`, `topk`, `repeat`, `expand` and `F.pad`.

    Of several synchronizations in a row without a model call in between, only the first is reported: after
    it, the device has no work left to wait for. In servers, the others are reported as well, unless they only
    read further sizes. If the next statement reads a number or copies to the host, that statement is reported
    instead (TL202, TL203, TL205). Slices are a note in loops that write every result to a file. In compiled
    code, TL513 reports a graph break instead.

    Findings are of low impact where the selection is the result, as for the edges of a graph, a mean over
    what is selected, values that a loop goes through, what is computed for the selected elements only,
    distinct values, as many frames as a model predicts, or a quotient that is only finite there, unless the
    mask depends on sizes alone (`~torch.eye(n, dtype=torch.bool)`). Nothing is of low impact in inference
    engines, and in decoding loops only selections are.

    ## Why is this bad?

    The host has to know the size to allocate the result, so it waits until the device has computed it. Under
    `torch.compile`, such an operation breaks the graph or makes its shapes dynamic.

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

    An index with a dimension is read on the device: `x.index_select(0, scores.argmax().view(1))`. A weighted
    mean (`(x * mask).sum() / mask.sum()`) replaces the mean of a selection. `repeat_interleave` accepts
    `output_size=`, `one_hot` accepts `num_classes`, and `torch.nonzero_static` returns a fixed size.

    ## Fix safety

    Since torch 1.10, assigning a number through a mask (`x[mask] = 0`) is a `masked_fill`, which does not
    synchronize. If the target allows an older release, the assignment is a note, and the fix replaces it
    with `x.masked_fill_(mask, 0)`. The fix is unsafe because a mask with fewer dimensions than `x` is
    aligned with the first dimensions in an assignment and with the last in `masked_fill_`. There is no fix
    for other operations.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not may_recur(module, node) or not perhaps_accelerated(module) or not shape_wait(module, node):
        return
    hot = waiting_place(module, node)
    if hot is None or graph_break(module, node):
        return
    row = BESIDE if _stands_in_row(module, node) else None
    if row is not None and within_a_wait(module, node):
        return
    related = trail(hot)
    loop = suppression(module, node)
    if loop is not None:
        if first_wait(module, loop) is node:
            yield Finding(node, f"{_waits(node)} {when(module, hot)}", related=related, remedy=SUPPRESSION)
        return
    beside = slight(module, node, BESIDE) if row is None and beside_staying_wait(module, node, hot) else row
    if isinstance(node, cst.Call):
        name, message = last_name(node.func) or "", _waits(node)
        remedy, little = as_spelt(module, node, _sized_beforehand(node)), None
        if last_name(node.func) in _SELECTING:
            found = fates(module, node)
            remedy = _of_fates(found, _condition(module, node), module) or remedy
            little = _little(module, node, found)
        elif any(verdicts(module, node, looped_over)):
            remedy = as_spelt(
                module, node, f"Loop over numbers that are read at once: `{_listed(module, node)}`"
            )
            little = slight(module, node, "the loop needs the numbers on the host")
        elif _is_result(module, node, name):
            remedy, little = (
                SAME_INPUT,
                slight(module, node, "the size of the result is not known beforehand"),
            )
        elif name not in SIZED_BEFOREHAND:
            # The size has been computed on the device.
            little = slight(module, node, "the size is computed on the device")
        little = row or little or beside or unspared(module, hot, remedy)
        yield Finding(node, f"{message} {when(module, hot)}", related=related, remedy=remedy, slight=little)
        return
    assigned = _assigned(module, node)
    mask = mask_of(module, node)
    if mask is None:
        number = indexed_by_number(module, node)
        message = "this slice synchronizes with the device to read its bounds"
        if number is not None:
            message = f"indexing with `{module.source(number)}` synchronizes with the device"
        severity = NOTE if writes_results(module, hot) else None
        remedy = _bounds(module, node) if number is None else _looked_up(module, node)
        message = f"{message} {when(module, hot)}"
        yield Finding(node, message, severity=severity, related=related, remedy=remedy, slight=beside)
    elif assigned is None:
        message = _waits(node)
        found = fates(module, node)
        remedy = as_spelt(module, node, _unselected(module, node, found))
        little = _little(module, node, found)
        if (Fate.KEPT in found or Fate.SUMMED in found) and never_changes(module, mask):
            remedy, little = _SAME_PLACES, None
        little = row or little or beside or unspared(module, hot, remedy)
        yield Finding(node, f"{message} {when(module, hot)}", related=related, remedy=remedy, slight=little)
    elif module.value(assigned).kind is Kind.TENSOR and module.value(assigned).device is not Device.CPU:
        message = f"assigning a tensor through a mask synchronizes with the device {when(module, hot)}"
        chosen = guards(module, node, assigned) or computes_on_selection(module, assigned)
        remedy = _chosen(module, node, "…")
        if selected_by_another(module, node, assigned):
            chosen, remedy = True, _scattered(module, node, assigned)
        elif never_changes(module, mask):
            remedy = _SAME_PLACES
        elif has_rows(module, node, assigned):
            remedy = _scattered(module, node, assigned)
        spares = slight(module, node, "the selection guards or spares a computation") if chosen else beside
        little = row or spares
        yield Finding(node, message, related=related, remedy=remedy, slight=little)
    elif module.value(assigned).kind in (Kind.NUMBER, Kind.BOOL) and module.target.admits_below("1.10"):
        often = f"{when(module, hot)} (torch < 1.10)"
        message = f"assigning a number through a mask synchronizes with the device {often}"
        fix = _masked_fill(module, node, assigned)
        remedy = _chosen(module, node, inline(module, assigned))
        yield Finding(node, message, fix, severity=NOTE, related=related, remedy=remedy, slight=row)


def _waits(node: cst.Call | cst.Subscript) -> str:
    """Return what waits for which size, as a clause."""
    if isinstance(node, cst.Subscript):
        return "boolean indexing synchronizes with the device to determine its output size"
    name = last_name(node.func) or ""
    return f"`{name}` synchronizes with the device to determine {_DETERMINED.get(name, 'its output size')}"


_SAME_PLACES = (
    "The mask never changes: compute its indices once, with `.nonzero(as_tuple=True)`, and index with them"
)


def _stands_in_row(module: Module, node: cst.Call | cst.Subscript) -> bool:
    """Return whether a wait next to another costs little: in servers only if it reads one more number."""
    if in_row(module, node):
        return True
    if isinstance(node, cst.Subscript):
        computes = mask_of(module, node) is not None
    else:
        computes = last_name(node.func) in {*SIZED_BEFOREHAND, *_SELECTING, *_DISTINCT}
    return not computes and (after_a_wait(module, node) or before_a_wait(module, node))


_SELECTING = frozenset({"argwhere", "masked_select", "nonzero", "where"})
_DISTINCT = frozenset({"unique", "unique_consecutive"})


def _is_result(module: Module, call: cst.Call, name: str) -> bool:
    """Return whether a size that nobody can tell beforehand is that of what the program wants.

    The distinct values themselves, not their number; as many frames as a model has predicted.
    """
    if name in _DISTINCT:
        return Fate.KEPT in fates(module, call)
    if name != "repeat_interleave":
        return False
    repeats = module.argument(call, "repeats")
    return repeats.node is not None and some(_is_rounded(module, repeats.node))


@traced(Through.NOTHING)
def _is_rounded(module: Module, node: cst.CSTNode, path: Path) -> bool | list[Source] | None:
    """Return whether a count is a number that was predicted, rounded on the device."""
    if not isinstance(node, cst.Call) or path:
        return None
    if last_name(node.func) in _ROUNDING:
        return True
    return onward(node.func.value) if isinstance(node.func, cst.Attribute) else None


_ROUNDING = frozenset({"round", "ceil", "floor", "trunc"})


def _little(module: Module, node: cst.BaseExpression, found: frozenset[Fate]) -> str | None:
    """Return why little is at stake in a selection: what is selected is the result."""
    return inherent(module, node) if Fate.KEPT in found else None


def _of_fates(found: frozenset[Fate], mask: cst.BaseExpression | None, module: Module) -> str | None:
    """Return what spares a selection that is only counted, or one that is the result; None for others."""
    if Fate.KEPT in found:
        return SAME_MASK
    if found == {Fate.COUNTED} and mask is not None:
        return f"Count on the device: `{tight(module, mask)}.sum()`"
    return None


def _condition(module: Module, call: cst.Call) -> cst.BaseExpression | None:
    """Return the condition by which a call selects."""
    if isinstance(call.func, cst.Attribute) and module.qualified(call.func) is None:
        return (
            call.args[0].value if last_name(call.func) == "masked_select" and call.args else call.func.value
        )
    position = 1 if last_name(call.func) == "masked_select" else 0
    return call.args[position].value if len(call.args) > position else None


def _bounds(module: Module, node: cst.Subscript) -> str:
    """Return what spares the reading of bounds: all at once, if a loop goes through them."""
    for element in node.slice:
        for part in module.tree.descendants(element):
            if isinstance(part, (cst.Name, cst.Subscript)) and module.value(part).kind is Kind.TENSOR:
                items = gone_through(module, part)
                if items is not None:
                    return f"Read all bounds at once before the loop: `{tight(module, items)}.tolist()`"
    return _FROM_SHAPE


_FROM_SHAPE = "Take the number from a shape, such as `x.shape[1]`, or compute it on the host"
_DETERMINED = {"histc": "the range"}


def _sized_beforehand(call: cst.Call) -> str:
    """Return what tells an operation how large its result is, or does with a result as large as its input."""
    return SIZED_BEFOREHAND.get(last_name(call.func) or "", _FROM_SHAPE)


def _listed(module: Module, call: cst.Call) -> str:
    return f"{inline(module, call)}.tolist()"


def _looked_up(module: Module, node: cst.Subscript) -> str:
    if isinstance(module.tree.parent(node), cst.AssignTarget):
        return f"Fill on the device: `{inline(module, node.value)}.index_fill_(…, ….view(1), …)`"
    return f"Index on the device: `{inline(module, node.value)}.index_select(…, ….view(1))`"


def _unselected(module: Module, node: cst.Subscript, found: frozenset[Fate]) -> str:
    """Return what does without a selection: all of the tensor, with what is not wanted told or put out."""
    mask = mask_of(module, node)
    spared = _of_fates(found, mask, module)
    if spared is not None:
        return spared
    parent = module.tree.parent(node)
    if isinstance(parent, cst.AugAssign) and mask is not None:
        sign = inline(module, parent.operator)[:-1]
        computed = f"{_unmasked(module, node, mask)} {sign} {inline(module, parent.value)}"
        return _chosen(module, node, computed)
    call = module.tree.parent(parent) if isinstance(parent, cst.Arg) else None
    if isinstance(call, cst.Call) and module.qualified(call.func) in IGNORING:
        return "Pass all elements, and pass the label to ignore as `ignore_index=…`"
    return "Keep the shape, and select with `torch.where(…)`"


def _chosen(module: Module, node: cst.Subscript, code: str) -> str:
    """Return the assignment that takes the place of one through a mask."""
    mask = mask_of(module, node)
    assert mask is not None
    target = _unmasked(module, node, mask)
    chosen = f"torch.where({inline(module, mask)}, {code}, {target})"
    shared = len(node.slice) == 1 and (_is_view(module, node.value) or _is_given(module, node.value))
    chosen = f"{target}.copy_({chosen})" if shared else f"{target} = {chosen}"
    return as_spelt(module, node, f"Use `{chosen}`; {_AS_MANY}")


_AS_MANY = "the mask needs as many dimensions as the tensor"


def _unmasked(module: Module, node: cst.Subscript, mask: cst.BaseExpression) -> str:
    """Return what a mask chooses from: ``scores``, or ``scores[:, token]`` of ``scores[mask, token]``."""
    owner = inline(module, node.value)
    if len(node.slice) == 1:
        return owner
    # A mask of one dimension takes the place of a slice.
    parts = (
        ":" if isinstance(part.slice, cst.Index) and part.slice.value is mask else inline(module, part.slice)
        for part in node.slice
    )
    return f"{owner}[{', '.join(parts)}]"


def _is_given(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether a tensor is the caller's, who sees what is written to it."""
    bindings = module.bindings(tensor)
    return any(binding.kind is BindingKind.PARAMETER for binding in bindings)


def _is_view(module: Module, tensor: cst.BaseExpression) -> bool:
    """Return whether what is written to a variable goes to a tensor that it is a part of:
    ``row = x[:, i]``.
    """
    bindings = module.bindings(tensor)
    parts = [part_of(b.value, b.path) for b in bindings if b.value is not None]
    return bool(parts) and all(
        isinstance(part, cst.Subscript) and any(isinstance(each.slice, cst.Slice) for each in part.slice)
        for part in parts
    )


_NUMBERS = {"torch.zeros": "0", "torch.zeros_like": "0", "torch.ones": "1", "torch.ones_like": "1"}


def _scattered(module: Module, node: cst.Subscript, assigned: cst.BaseExpression) -> str:
    """Return what puts values that were selected before where a mask holds, one after another."""
    mask = mask_of(module, node)
    assert mask is not None
    if isinstance(assigned, cst.Call) and (number := _NUMBERS.get(module.qualified(assigned.func) or "")):
        return f"Assign the number itself: `{inline(module, node)} = {number}`"
    into = _unmasked(module, node, mask)
    code = f"{into}.masked_scatter_({inline(module, mask)}, {inline(module, assigned)})"
    return f"Use `{code}`; {_AS_MANY}"


def _assigned(module: Module, node: cst.Subscript) -> cst.BaseExpression | None:
    """Return what is assigned through ``node``; None where it is read."""
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
    return unsafe(
        module,
        "Use `masked_fill_`",
        replace(module, statement, code),
        risk="a mask with fewer dimensions is aligned with the last ones, no longer with the first",
    )

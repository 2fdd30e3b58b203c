"""TL212 tensor-from-device-scalars."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_recur
from torchlint.semantics.spellings import last_name

from ..remedies import as_spelt, callee, inline, tight
from ..stakes import BESIDE, behind_wait, in_row
from ..waits import waiting_place, within_a_wait
from .elements import (
    READERS,
    ReadOneByOne,
    filled_in,
    made_step_by_step,
    read_one_by_one,
    stacked,
    taken_as_number,
)


@rule(
    "TL212",
    "tensor-from-device-scalars",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    named={cst.Call: READERS},
    mentions=(
        "torch|lightning|accelerate",
        "ensor(|asarray(|full|_fill|np.|numpy|max(|min(|sorted(|alpha=|value=|dropout(|leaky_relu(",
    ),
    remedy="Stack the tensors on the device with `torch.stack(…)`",
    follows=("TL201", "TL202", "TL208", "TL209", "TL210", "TL212", "TL213", "TL215"),
    synchronizes=True,
)
def tensor_from_device_scalars(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds tensors on the accelerator that are read one by one, as elements of a list or as scalar arguments.
    This includes

    - `torch.tensor([loss_a, loss_b])`, and NumPy functions and the builtins `max`, `min` and `sorted` on a
      list of tensors;
    - device scalars as fill values: `torch.full(size, scalar)`, `full_like`, `new_full`, `masked_fill`,
      `index_fill`;
    - device scalars in place of a number: `x.add_(y, alpha=scalar)`, `x.addcdiv_(y, z, value=scalar)`,
      `F.dropout(x, p=scalar)`.

    A list that is read outside a hot loop is reported if a hot loop fills it. Inside a hot loop, `max()`,
    `min()` and `sorted()` are reported as a branch on a tensor (TL205). `sum()` over a list of tensors adds
    on the device and is not reported.

    ## Why is this bad?

    Every element is copied to the host separately, and every copy synchronizes with the device: a list of a
    thousand losses means a thousand round trips. `torch.stack` joins the tensors on the device, so that one
    copy is enough, or none. NumPy raises an error for tensors on the device.

    ## Example

    ```python
    for x, y in loader:
        out, aux = model(x)
        terms = torch.tensor([F.cross_entropy(out, y), aux.mean()])
        totals += terms
    ```

    ## Use instead

    ```python
    for x, y in loader:
        out, aux = model(x)
        terms = torch.stack([F.cross_entropy(out, y), aux.mean()]).detach().cpu()
        totals += terms
    ```

    If `totals` is on the device as well, the loop does not synchronize at all.

    ## Fix safety

    Safe for a list literal that contains only 0-dim tensors: the result has the same values, dtype and
    device, and no autograd graph. The fix is unsafe

    - with an integer `dtype=`, because `torch.tensor` raises an error if a value does not fit;
    - for a list in a variable or a comprehension: `torch.stack` raises an error for an empty list, and
      returns another shape for tensors of one element;
    - for NumPy functions, which raise an error for device tensors in most versions;
    - for `max()` and `min()`, which handle NaN differently.

    There is no fix for lists that also contain numbers or tensors on the host, with `requires_grad`, or for
    `torch.full`, where `scalar.expand(size)` avoids the copy.

    ## References

    - [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.stack](https://docs.pytorch.org/docs/stable/generated/torch.stack.html)
    """
    scalar = _read_scalar(module, call)
    if scalar is not None:
        yield scalar
        return
    read = read_one_by_one(module, call)
    if read is None:
        return
    row = behind_wait(module, call, guards=True)
    name, builtin = callee(module, call), read.name.startswith("builtins.")
    hot = waiting_place(module, call)
    if hot is not None and not builtin:
        often = when(module, hot)
        message = f"`{name}` synchronizes with the device for each tensor in the list {often}"
        if read.refused:
            message = f"`{name}` raises an error for tensors on the device; stack them and copy once"
        fix, related = stacked(module, read), trail(hot)
        remedy = as_spelt(module, call, _joined(module, read))
        yield Finding(call, message, fix, related=related, remedy=remedy, slight=row)
    elif hot is None and (made := made_step_by_step(module, read.items)) is not None:
        message = f"`{name}` synchronizes with the device for each tensor that the loop has collected"
        if read.refused:
            message = f"`{name}` raises an error for tensors on the device; stack them and copy once"
        fix, related = stacked(module, read), trail(made)
        remedy = as_spelt(module, call, _joined(module, read))
        yield Finding(call, message, fix, related=related, remedy=remedy, slight=row)


def _joined(module: Module, read: ReadOneByOne) -> str:
    """Return what reads nothing, or all of the list at once."""
    if read.name == "builtins.sorted":
        return f"Sort on the device: `torch.stack({inline(module, read.items)}).sort().values`"
    return "Stack the tensors on the device with `torch.stack(…)`, and convert any numbers to tensors"


def _read_scalar(module: Module, call: cst.Call) -> Finding | None:
    """Return a device scalar that is filled in, or given for a number."""
    if not may_recur(module, call):
        return None
    value, parameter = filled_in(module, call), ""
    if value is None:
        taken = taken_as_number(module, call)
        if taken is None:
            return None
        parameter, value = taken
    hot, row = waiting_place(module, call), in_row(module, call)
    if hot is None or (row and within_a_wait(module, call)):
        return None
    read = f"`{parameter}`" if parameter else "the fill value"
    message = f"`{callee(module, call)}` synchronizes with the device to read {read} {when(module, hot)}"
    remedy = _multiplied(module, parameter, value) if parameter else _expanded(module, call, value)
    little = BESIDE if row else None
    return Finding(call, message, related=trail(hot), remedy=as_spelt(module, call, remedy), slight=little)


def _expanded(module: Module, call: cst.Call, scalar: cst.BaseExpression) -> str:
    """Return what fills in a scalar without reading it."""
    name, code = last_name(call.func) or "", tight(module, scalar)
    if "mask" in name:
        return f"Select on the device: `torch.where(…, {inline(module, scalar)}, …)`"
    if "index" in name:
        return f"Use a copy on the device: `.index_copy(…, …, {code}.expand(…))`"
    return f"Expand the scalar instead: `{code}.expand{'_as' if 'like' in name else ''}(…)`"


def _multiplied(module: Module, parameter: str, scalar: cst.BaseExpression) -> str:
    """Return what takes a scalar of the device where ``parameter`` takes a number."""
    if parameter in ("alpha", "value"):
        return f"Multiply by the tensor instead: `… * {tight(module, scalar)}`"
    if parameter == "negative_slope":
        return f"Use `prelu(…, {inline(module, scalar)})`, which accepts a tensor"
    return f"Pass a Python number as `{parameter}`, such as an attribute of the module"

"""TL212 tensor-from-device-scalars."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.messages import trail, when
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name
from torchlint.semantics.synchronisation import (
    after_a_guard,
    after_a_wait,
    before_a_wait,
    may_be_on_device,
    waiting_place,
)

from ..remedies import as_spelt, inline, tight
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
    remedy="Join the tensors on the device, with `torch.stack(…)`",
)
def tensor_from_device_scalars(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds tensors on the accelerator that are handed over in a list and read one by one:
    `torch.tensor([loss_a, loss_b])`, NumPy functions and the builtins `max`, `min` and `sorted` given a list
    of device tensors; device scalars that are filled in: `torch.full(size, scalar)`, `full_like`,
    `new_full`, `masked_fill`, `index_fill`; and those that are given for a number: `x.add_(y, alpha=scalar)`,
    `x.addcdiv_(y, z, value=scalar)`, `F.dropout(x, p=scalar)`. Outside of hot places, a list counts if a hot
    loop has filled it.

    ## Why is this bad?

    Each element is copied to the host by itself, and the host waits for the device at each: a thousand losses
    are a thousand round trips. `torch.stack` joins them on the device, and one copy, or none, serves all.
    NumPy refuses tensors on the device.

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

    Left on the device (`totals` with it), the terms need no wait at all until they are shown.

    In a hot place `max()` and its like are reported as a branch on a tensor (TL205). `sum()` over a list of
    tensors reads nothing: it adds them up on the device.

    ## Fix safety

    The fix is safe where a list written out holds nothing but tensors that provably have no dimensions: the
    result has the same values, dtype and device, and no graph. It is unsafe

    * with a `dtype=` of whole numbers, where `torch.tensor` raises if something does not fit;
    * for a list in a variable and for a comprehension: `torch.stack` has no answer for an empty list, and
      gives tensors of one element another shape;
    * for NumPy, which refuses tensors on the device in most versions;
    * for `max()` and `min()`, which treat NaN in another way.

    No fix is offered for lists that also hold numbers or tensors on the host, with `requires_grad`, and for
    `torch.full`, where `scalar.expand(size)` does without a copy.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    * [torch.stack](https://docs.pytorch.org/docs/stable/generated/torch.stack.html)
    """
    scalar = _read_scalar(module, call)
    if scalar is not None:
        yield scalar
        return
    read = read_one_by_one(module, call)
    if read is None or after_a_guard(module, call):
        return
    name, builtin = module.source(call.func), read.name.startswith("builtins.")
    hot = waiting_place(module, call)
    if hot is not None and not builtin:
        often = when(module, hot)
        message = f"`{name}` reads the tensors of the list one by one, and the host waits for each {often}"
        if read.refused:
            message = f"`{name}` raises for tensors on the accelerator; stack them, and copy once"
        fix, related = stacked(module, read), trail(hot)
        yield Finding(
            call, message, fix, related=related, remedy=as_spelt(module, call, _joined(module, read))
        )
    elif hot is None and (made := made_step_by_step(module, read.items)) is not None:
        message = f"`{name}` reads what the loop has collected tensor by tensor, and the host waits for each"
        if read.refused:
            message = f"`{name}` raises for tensors on the accelerator; stack what the loop has collected"
        fix, related = stacked(module, read), trail(made)
        yield Finding(
            call, message, fix, related=related, remedy=as_spelt(module, call, _joined(module, read))
        )


def _joined(module: Module, read: ReadOneByOne) -> str:
    """What reads nothing, or all of the list at once."""
    if read.name == "builtins.sorted":
        return f"Sort on the device: `torch.stack({inline(module, read.items)}).sort().values`"
    return "Join the tensors on the device, with `torch.stack(…)`, and numbers as tensors with them"


def _read_scalar(module: Module, call: cst.Call) -> Finding | None:
    """A device scalar that is filled in, or given for a number."""
    if not may_repeat(module, call):
        return None
    value, parameter = filled_in(module, call), ""
    if value is None:
        taken = taken_as_number(module, call)
        if taken is None:
            return None
        parameter, value = taken
    if not may_be_on_device(module, value):
        return None
    hot = waiting_place(module, call)
    if hot is None or after_a_wait(module, call) or before_a_wait(module, call):
        return None
    name, often = module.source(call.func), when(module, hot)
    read = f"the tensor given for `{parameter}`" if parameter else "the tensor that it fills in"
    message = f"`{name}` reads {read}, and the host waits {often}; {_instead(name, parameter)}"
    remedy = _multiplied(module, parameter, value) if parameter else _expanded(module, call, value)
    return Finding(call, message, related=trail(hot), remedy=as_spelt(module, call, remedy))


def _expanded(module: Module, call: cst.Call, scalar: cst.BaseExpression) -> str:
    """What fills in a scalar without reading it."""
    name, code = last_name(call.func) or "", tight(module, scalar)
    if "mask" in name:
        return f"Choose on the device: `torch.where(…, {inline(module, scalar)}, …)`"
    if "index" in name:
        return f"Copy it in: `.index_copy(…, …, {code}.expand(…))`"
    return f"Expand it, without a copy: `{code}.expand{'_as' if 'like' in name else ''}(…)`"


def _multiplied(module: Module, parameter: str, scalar: cst.BaseExpression) -> str:
    """What takes a scalar of the device where ``parameter`` takes a number."""
    if parameter in ("alpha", "value"):
        return f"Multiply by it instead: `… * {tight(module, scalar)}`"
    if parameter == "negative_slope":
        return f"Call `prelu(…, {inline(module, scalar)})`, which takes a tensor"
    return f"Give `{parameter}` a number that Python keeps, such as an attribute of the module"


def _instead(name: str, parameter: str) -> str:
    if parameter in ("alpha", "value"):
        return "multiply by it"
    if parameter:
        return "keep the number in Python"
    return "`torch.where` does not" if "mask" in name else "`expand` does not"

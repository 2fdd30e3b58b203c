"""TL209 legacy-tensor-constructor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module

from ..remedies import as_spelt
from .legacy import (
    LEGACY_NAMES,
    cast_by_hand,
    constructor_by_hand,
    legacy_cast,
    legacy_constructor,
    modern_cast,
    modern_constructor,
    reported_as_move,
)


@rule(
    "TL209",
    "legacy-tensor-constructor",
    severity=NOTE,
    fix="safe",
    measured=False,
    on=cst.Call,
    named={cst.Call: LEGACY_NAMES},
    mentions=("torch", "Tensor"),
    remedy="Write `torch.tensor(…)` for data, and `torch.empty(…)` for sizes",
)
def legacy_tensor_constructor(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds tensors that are made by the tensor types of before dtypes, `torch.FloatTensor(…)`,
    `torch.cuda.LongTensor(…)`, `torch.Tensor(…)`, and casts to these types, `x.type(torch.cuda.FloatTensor)`.

    ## Why is this bad?

    The constructors take sizes as well as data: `torch.FloatTensor(3)` has three elements of whatever was in
    the memory, `torch.FloatTensor([3])` has one. They know nothing of `device=` and `requires_grad=`, so that
    their tensors are made in host memory and copied, and the types in `torch.cuda` tie the code to one kind
    of accelerator. PyTorch keeps them for old programs only.

    ## Example

    ```python
    weights = torch.FloatTensor([0.2, 0.8])
    buffer = torch.cuda.LongTensor(64, 8)
    mask = mask.type(torch.FloatTensor)
    ```

    ## Use instead

    ```python
    weights = torch.tensor([0.2, 0.8], dtype=torch.float32)
    buffer = torch.empty(64, 8, dtype=torch.int64, device="cuda")
    mask = mask.to("cpu", torch.float32)
    ```

    Types in annotations and in `isinstance` make no tensor and are left alone. A tensor of some size that
    moves to the accelerator at once (`torch.FloatTensor(2, 3).cuda()`) is reported as a tensor created on the
    host (TL201), whose fix replaces the constructor, too.

    ## Fix safety

    The fix is safe: sizes become `torch.empty`, lists `torch.tensor`, and arrays, whose memory is shared,
    `torch.as_tensor`, with the same dtype and device. It is unsafe for a cast to a type of `torch.cuda`,
    unless the tensor is on the host: one on another GPU would have stayed there. No fix is offered where the
    file does not show whether the argument is a size or data, for a tensor as the argument, and where the
    file changes the default dtype or device.

    ## References

    * [torch.Tensor: initializing and basic operations](https://docs.pytorch.org/docs/stable/tensors.html#initializing-and-basic-operations)
    * [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    """
    name = legacy_constructor(module, call)
    if name is not None and not reported_as_move(module, call):
        spelt = module.source(call.func)
        message = f"`{spelt}` takes sizes as well as data, but no device; use `torch.tensor` or `torch.empty`"
        fix, remedy = modern_constructor(module, call), constructor_by_hand(module, call)
        remedy = as_spelt(module, call, remedy)
        yield Finding(call, message, fix, remedy=remedy)
    elif name is None and (cast := legacy_cast(module, call)) is not None:
        if not reported_as_move(module, call):
            message = f"`{cast}` is a tensor type of before dtypes; name the device and the dtype with `.to`"
            remedy = as_spelt(module, call, cast_by_hand(module, call))
            yield Finding(call, message, modern_cast(module, call), remedy=remedy)

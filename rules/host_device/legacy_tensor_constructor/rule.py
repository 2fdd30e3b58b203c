"""TL209 legacy-tensor-constructor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module

from ..legacytypes import LEGACY_NAMES
from ..remedies import as_spelt
from .legacy import (
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
    remedy="Use `torch.tensor(…)` for data, and `torch.empty(…)` for sizes",
)
def legacy_tensor_constructor(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds legacy tensor constructors, such as `torch.FloatTensor(…)`, `torch.cuda.LongTensor(…)` and
    `torch.Tensor(…)`, and casts to these types, such as `x.type(torch.cuda.FloatTensor)`.

    The rule ignores the types in annotations and in `isinstance`, which create no tensor. A tensor that is
    created by size and moved to the accelerator at once (`torch.FloatTensor(2, 3).cuda()`) is reported as
    created on the host (TL201), with a fix that also replaces the constructor.

    ## Why is this bad?

    The constructors accept both sizes and data: `torch.FloatTensor(3)` is an uninitialized tensor with three
    elements, `torch.FloatTensor([3])` has one element. They do not accept `requires_grad=`, or an
    accelerator as `device=`, so tensors are created in host memory and then copied, and the types in
    `torch.cuda` tie the code to one kind of accelerator. PyTorch keeps them only for backward compatibility.

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

    ## Fix safety

    Safe: the fix uses `torch.empty` for sizes, `torch.tensor` for lists, and `torch.as_tensor` for arrays,
    whose memory is shared, with the same dtype and device. It is unsafe for casts to a type of `torch.cuda`,
    unless the tensor is on the host: a tensor on another GPU would have stayed there. There is no fix if the
    file does not show whether the argument is a size or data, if the argument is a tensor, or if the project
    changes the default dtype or device.

    ## References

    - [torch.Tensor: initializing and basic operations](https://docs.pytorch.org/docs/stable/tensors.html#initializing-and-basic-operations)
    - [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    """
    name = legacy_constructor(module, call)
    if name is not None and not reported_as_move(module, call):
        spelt = module.source(call.func)
        message = f"`{spelt}` is a legacy constructor; use `torch.tensor` or `torch.empty`"
        fix, remedy = modern_constructor(module, call), constructor_by_hand(module, call)
        remedy = as_spelt(module, call, remedy)
        yield Finding(call, message, fix, remedy=remedy)
    elif name is None and (cast := legacy_cast(module, call)) is not None:
        if not reported_as_move(module, call):
            message = f"`{cast}` is a legacy tensor type; use `.to()` with a device and a dtype"
            remedy = as_spelt(module, call, cast_by_hand(module, call))
            yield Finding(call, message, modern_cast(module, call), remedy=remedy)

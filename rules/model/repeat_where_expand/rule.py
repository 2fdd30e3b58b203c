"""TL413: a tensor is copied along dimensions that broadcasting goes along by itself."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Edit, Fix
from torchlint.fixes import replace, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics import places
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .expansion import RepeatCall, is_literal_one, repeated_view


@rule(
    "TL413",
    "repeat-where-expand",
    severity=NOTE,
    fix="unsafe",
    on=cst.Call,
    mentions=("torch", ".repeat("),
    named={cst.Call: ("repeat",)},
    remedy="Replace `repeat` with `expand`, which returns a view",
)
def repeat_where_expand(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `x.repeat(...)` that only repeats dimensions of size one (from `unsqueeze`, an index of `None`, a
    literal shape, or a reduction with `keepdim`), and whose result is only used in operations that broadcast.
    The rule ignores results that are written to, returned, reshaped or passed to other functions, and
    constructors, which run once.

    ## Why is this bad?

    `repeat` allocates the large tensor and writes every copy, and the operation reads them all back. `expand`
    returns a view in which all copies share memory.

    ## Example

    ```python
    difference = points.unsqueeze(1) - centers.unsqueeze(0).repeat(len(points), 1, 1)
    ```

    ## Use instead

    ```python
    difference = points.unsqueeze(1) - centers.unsqueeze(0).expand(len(points), -1, -1)
    ```

    Operations that broadcast need neither, as long as the other operand has the full size.

    ## Fix safety

    Values and shapes are the same. The fix is unsafe, because the number of dimensions is not always known,
    and because the memory layout of the result may differ.

    ## References

    - [torch.Tensor.expand](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.expand.html)
    - [torch.Tensor.repeat](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.repeat.html)
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "repeat" or is_test(module):
        return
    function = module.function(call)
    if function is None and not module.flow.loops(call):
        return
    if isinstance(function, cst.FunctionDef) and function.name.value in ("__init__", "reset_parameters"):
        return
    repetition = repeated_view(module, call)
    if repetition is None:
        return
    yield Finding(
        call,
        "`repeat` copies data that the next operation can broadcast; use `expand`, which returns a view",
        fix=_expanded(module, repetition),
        # What is repeated elsewhere are mostly indices and other small tensors.
        slight="not in a hot loop" if places.hot(module, call) is None else None,
    )


def _expanded(module: Module, repetition: RepeatCall) -> Fix | None:
    """Return the fix that makes a view instead of copies; None if a comment would be lost."""
    call, count = repetition.call, len(repetition.times)
    assert isinstance(call.func, cst.Attribute)
    new = 0 if repetition.shape.rank is None else count - repetition.shape.rank
    edits: list[Edit] = []
    for i, time in enumerate(repetition.times):
        if is_literal_one(time) and i >= new:
            edits += replace(module, time, "-1") or ()
    renamed = replace(module, call.func.attr, "expand")
    return unsafe(
        module,
        "Use `expand`, which returns a view",
        renamed,
        tuple(edits),
        risk="the repeated elements share memory, so that `view` and writing in place may fail",
    )

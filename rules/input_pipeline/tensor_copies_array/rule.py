"""TL109: `torch.tensor` copies an array, or a tensor, that could be used as it is."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, spell, unsafe
from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .copies import copied


@rule(
    "TL109",
    "tensor-copies-array",
    severity=NOTE,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: ("tensor",)},
    mentions=("torch", "tensor"),
    remedy="Use `torch.as_tensor`, and apply the other arguments to the result",
)
def tensor_copies_array(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.tensor(array)` for a NumPy array that keeps its dtype, and `torch.tensor(tensor)`.

    The rule ignores arrays that are converted to another dtype or device, which copies them anyway, arrays
    that are converted only once, arrays and tensors that the file modifies, and tensors that become
    parameters or buffers.

    ## Why is this bad?

    `torch.tensor` always copies. `torch.as_tensor` and `torch.from_numpy` share the memory of the array. For
    a tensor, `torch.tensor` warns at run time, because it does not say whether the copy should be detached
    from the autograd graph; `.detach().clone()` does.

    ## Example

    ```python
    image = torch.tensor(np.load(path).astype(np.float32))
    target = torch.tensor(output)
    ```

    ## Use instead

    ```python
    image = torch.as_tensor(np.load(path).astype(np.float32))
    target = output.detach().clone()
    ```

    ## Fix safety

    Unsafe: tensor and array share memory afterwards, so that a change to one is visible in the other,
    possibly from another file. For tensors, the default device no longer applies.

    ## References

    - [torch.as_tensor](https://docs.pytorch.org/docs/stable/generated/torch.as_tensor.html)
    - [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    """
    if is_test(module):
        return
    found = copied(module, call)
    if found is None:
        return
    if found.tensor:
        message = "`torch.tensor` called on a tensor warns at run time; use `.detach().clone()`"
        remedy = "Use `.detach().clone()`, and apply the other arguments to the result"
        yield Finding(call, message, fix=_clone(module, call, found.data), remedy=remedy)
        return
    spelling = spell(module, "torch.as_tensor", call)
    fix = None
    if spelling is not None:
        fix = unsafe(
            module,
            f"Use `{spelling.text}`",
            spelling.edits,
            replace(module, call.func, spelling.text),
            risk="tensor and array share their memory, so that a change to one shows in the other",
        )
        if any(module.argument(call, name).given for name in ("requires_grad", "pin_memory")):
            fix = None  # as_tensor has neither
    yield Finding(call, "`torch.tensor` copies this array; `torch.as_tensor` shares its memory", fix=fix)


def _clone(module: Module, call: cst.Call, data: cst.BaseExpression) -> Fix | None:
    """Return ``data.detach().clone()``, or a copying ``to`` where a dtype or device is asked for."""
    if any(arg.star for arg in call.args) or module.argument(call, "pin_memory").given:
        return None
    text = module.source(data)
    if not module.tree.takes_dot(data):
        text = f"({text})"
    given = [
        f"{name}={module.source(argument.node)}"
        for name in ("dtype", "device")
        if (argument := module.argument(call, name)).node is not None
    ]
    text += f".detach().to({', '.join(given)}, copy=True)" if given else ".detach().clone()"
    tracked = module.argument(call, "requires_grad")
    if tracked.node is not None and tracked.constant is not False:
        text += f".requires_grad_({'' if tracked.constant is True else module.source(tracked.node)})"
    return unsafe(
        module,
        "Use `.detach().clone()`",
        replace(module, call, text),
        risk="the copy is on the device of the tensor, no longer on the default device",
    )

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
    remedy="Call `torch.as_tensor`, and set on its result what it takes no argument for",
)
def tensor_copies_array(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.tensor(array)` of a NumPy array that keeps its dtype, and `torch.tensor(tensor)`.

    ## Why is this bad?

    `torch.tensor` always copies. `torch.as_tensor` and `torch.from_numpy` make a tensor of the memory that
    the array has already. Of a tensor, `torch.tensor` warns at run time, since it is not clear whether the
    copy was meant to leave the graph: `.detach().clone()` says so.

    Arrays that are converted to another dtype or sent to another device are copied anyway, and left alone;
    so are arrays that are copied only once, arrays and tensors that the file writes to, and tensors that
    become parameters or buffers.

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

    Unsafe: the tensor and the array share their memory afterwards, so what is written to one is seen
    through the other, perhaps in another file. For tensors, the default device does not apply any more.

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
        message = "`torch.tensor` of a tensor warns at run time; `.detach().clone()` says what is meant"
        remedy = "Call `.detach().clone()` on the tensor, and set on the copy what the arguments ask for"
        yield Finding(call, message, fix=_clone(module, call, found.data), remedy=remedy)
        return
    spelling = spell(module, "torch.as_tensor", call)
    fix = None
    if spelling is not None:
        fix = unsafe(
            module, f"Use `{spelling.text}`", spelling.edits, replace(module, call.func, spelling.text)
        )
        if any(module.argument(call, name).given for name in ("requires_grad", "pin_memory")):
            fix = None  # as_tensor has neither
    yield Finding(call, "`torch.tensor` copies this array; `torch.as_tensor` shares its memory", fix=fix)


def _clone(module: Module, call: cst.Call, data: cst.BaseExpression) -> Fix | None:
    """``data.detach().clone()``, or a copying ``to`` where a dtype or device is asked for."""
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
    return unsafe(module, "Use `.detach().clone()`", replace(module, call, text))

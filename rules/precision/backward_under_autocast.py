from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import end_block_before, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name

from .autocasting import backward_under_autocast as found_in
from .autocasting import computes_nothing, helper_under_autocast, tail_from


@rule(
    "TL509",
    "backward-under-autocast",
    severity=WARNING,
    fix="unsafe",
    measured=False,
    on=cst.With,
    mentions=("autocast", "backward|.step("),
    remedy="End the autocast block before this call",
)
def backward_under_autocast(block: cst.With, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds backward passes and optimizer steps inside an autocast block.

    The rule ignores disabled blocks, nested blocks that disable autocast, and `torch.autograd.grad`, which
    may be part of the loss.

    ## Why is this bad?
    Autocast is meant for the forward pass and the loss. The backward pass already runs each operation in the
    dtype of the corresponding forward operation. Under autocast its operations are cast again: operations
    that ran in float32 on purpose are differentiated in low precision, and gradients are converted back and
    forth.

    ## Example
    ```python
    with torch.autocast("cuda"):
        loss = criterion(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    ```

    ## Use instead
    ```python
    with torch.autocast("cuda"):
        loss = criterion(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Fix safety
    The fix ends the block before the backward pass. It is unsafe, because gradients change in the last
    digits. It is only offered where nothing follows in the block but the backward pass, the step and
    bookkeeping: another forward pass has to stay under autocast.

    ## References
    - [torch.autocast: only the forward pass belongs under it](https://docs.pytorch.org/docs/2.13/amp.html)
    - [torch.compile and backward passes under autocast](https://docs.pytorch.org/docs/2.13/user_guide/torch_compiler/torch.compiler_backward.html)
    """
    if is_test(module):
        return
    call = found_in(module, block)
    if call is None:
        if (helper := helper_under_autocast(module, block)) is not None:
            yield _in_helper(module, *helper, block)
        return
    yield Finding(
        call,
        _message(call),
        fix=_dedent(module, call, block),
        related=((block.items[0].item, "autocast is enabled here"),),
    )


def _message(call: cst.Call) -> str:
    done = "the optimizer steps" if last_name(call.func) == "step" else "the backward pass runs"
    return f"{done} under autocast, which should cover only the forward pass and the loss"


def _in_helper(module: Module, call: cst.Call, done: cst.Call, block: cst.With) -> Finding:
    """Return what is found where the block only calls a function that holds the backward pass."""
    function = module.function(done)
    assert isinstance(function, cst.FunctionDef)
    name = function.name.value
    return Finding(
        call,
        f"{_message(done)} (in `{name}`)",
        related=((block.items[0].item, "autocast is enabled here"), (done, f"in `{name}`")),
        remedy=f"Move the autocast block into `{name}`, around only the forward pass and the loss",
    )


def _dedent(module: Module, call: cst.Call, block: cst.With) -> Fix | None:
    """End the block before the statement that holds ``call``, where only bookkeeping follows."""
    tail = list(tail_from(module, call, block))
    if len(block.items) > 1 or not all(computes_nothing(module, statement) for statement in tail):
        return None
    edits = end_block_before(module, tail[0])
    risk = "gradients change in the last digits"
    return unsafe(module, "Move it out of the autocast block", edits, risk=risk)

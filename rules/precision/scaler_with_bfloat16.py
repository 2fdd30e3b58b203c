from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import set_argument, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .autocasting import makes_scaler, only_bfloat16


@rule(
    "TL508",
    "scaler-with-bfloat16",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    mentions=("GradScaler", "bfloat16", "autocast"),
    remedy="Pass `enabled=False`",
    lasting=True,
)
def scaler_with_bfloat16(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds gradient scalers in programs whose autocast regions all use bfloat16.

    The rule ignores scalers that have their own switch, and files that mention float16 in any way, where the
    scaler may be meant for float16. A switch for mixed precision in general, or for GPUs, does not count.

    ## Why is this bad?
    A scaler keeps small gradients from underflowing in float16, whose exponent has five bits. The exponent of
    bfloat16 has eight bits, like that of float32, so scaling gains nothing. The scaler still multiplies the
    loss, divides all gradients again, checks them for infinities, and, for optimizers that are not fused,
    synchronizes with the device in every step.

    ## Example
    ```python
    scaler = torch.amp.GradScaler("cuda")
    for inputs, targets in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    ```

    ## Use instead
    ```python
    for inputs, targets in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety
    The fix passes `enabled=False`, which turns all methods of the scaler into pass-throughs. It is unsafe: an
    enabled scaler also skips steps whose gradients are infinite or NaN, and checkpoints contain its state.

    ## References
    - [Automatic mixed precision: gradient scaling](https://docs.pytorch.org/docs/2.13/amp.html)
    - [Hugging Face: efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    if is_test(module) or not makes_scaler(module, call) or not only_bfloat16(module):
        return
    yield Finding(
        call,
        "bfloat16 has the range of float32, so loss scaling only costs a pass over all gradients per step",
        fix=unsafe(
            module,
            "Pass `enabled=False`",
            set_argument(module, call, "enabled", "False"),
            risk="steps with infinite or NaN gradients are no longer skipped, and checkpoints hold no scale",
        ),
    )

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
    Finds gradient scalers in programs whose autocast regions are all in bfloat16.

    Scalers that a switch of their own turns on, and files that mention float16 in any way, are left alone:
    there the scaler may be meant for that. A switch for mixed precision as a whole, or for GPUs, is none.

    ## Why is this bad?
    A scaler keeps small gradients from vanishing in float16, whose exponent has five bits. The exponent of
    bfloat16 has eight, as that of float32, so that there is nothing to save. The scaler still multiplies the
    loss, divides all gradients again, looks for infinities in them, and, for optimizers that are not fused,
    makes the host wait for the answer at every step.

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
    The fix passes `enabled=False`, with which all methods of the scaler do nothing but hand on. It is unsafe:
    an enabled scaler also leaves out the steps whose gradients are infinite or not a number, and checkpoints
    hold its state.

    ## References
    - [Automatic mixed precision: gradient scaling](https://docs.pytorch.org/docs/2.13/amp.html)
    - [Hugging Face: efficient training on a single GPU](https://huggingface.co/docs/transformers/perf_train_gpu_one)
    """
    if is_test(module) or not makes_scaler(module, call) or not only_bfloat16(module):
        return
    yield Finding(
        call,
        "bfloat16 has the range of float32, so that scaling the loss gains nothing and costs a pass over all "
        "gradients a step",
        fix=unsafe(module, "Pass `enabled=False`", set_argument(module, call, "enabled", "False")),
    )

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .halftraining import trained_in_half


@rule(
    "TL510",
    "pure-half-training",
    severity=WARNING,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=(".half(|float16|torch.half", "optim", "backward|.step("),
    remedy="Keep the model in float32, run it under `torch.autocast`, and scale the loss with a `GradScaler`",
)
def pure_half_training(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds models that are cast to float16 as a whole, `model.half()` or `model.to(torch.float16)`, or whose
    weights are loaded so, `from_pretrained(…, torch_dtype=torch.float16)`, and trained by an optimizer of
    torch, without a scaler and without weights in float32.

    Models that are cast back for training, that are evaluated only or trained in part, and programs with
    apex, DeepSpeed and the like, which keep weights in float32, are left alone.

    ## Why is this bad?
    The smallest steps of float16 are coarse. Most updates are a small share of the weight that they are added
    to, and round to nothing; small gradients become zero on the way, and the squares that Adam keeps of them
    sooner still. Training stalls or ends in `nan`. Autocast keeps the weights in float32, computes in float16
    where that is faster, and a scaler keeps the gradients in range.

    ## Example
    ```python
    model = Net().cuda().half()
    optimizer = torch.optim.Adam(model.parameters())
    for inputs, targets in loader:
        loss = criterion(model(inputs.half()), targets)
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    for inputs, targets in loader:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    ```

    ## Fix safety
    There is no fix: the forward passes, the input and the scaler are changed in several places.

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/2.13/amp.html)
    - [Mixed precision training](https://arxiv.org/abs/1710.03740)
    """
    if is_test(module):
        return
    optimizer = trained_in_half(module, call)
    if optimizer is None:
        return
    yield Finding(
        call,
        "the model is trained in float16 throughout, where small gradients and updates round to nothing; "
        "train it under `torch.autocast` with a `GradScaler`",
        related=((optimizer, "its optimizer"),),
    )

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
    Finds models that are converted to float16 as a whole, with `model.half()` or `model.to(torch.float16)`,
    or whose weights are loaded in float16, with `from_pretrained(…, torch_dtype=torch.float16)`, and that an
    optimizer of torch trains without a scaler and without float32 weights.

    The rule ignores models that are converted back for training, that are only evaluated or only partly
    trained, and programs that use apex, DeepSpeed and similar libraries, which keep float32 weights.

    ## Why is this bad?
    float16 has a coarse resolution. Most updates are small relative to the weight that they are added to, and
    round to zero. Small gradients underflow, and the squared gradients that Adam accumulates underflow even
    earlier. Training stalls or ends in `nan`. Autocast keeps the weights in float32 and computes in float16
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
    There is no fix: the forward passes, the inputs and the scaler change in several places.

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
        "training in pure float16 rounds small gradients and updates to zero; use `torch.autocast`",
        related=((optimizer, "its optimizer is created here"),),
    )

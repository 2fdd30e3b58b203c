from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.evalmode import left_evaluating
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name


@rule(
    "TL307",
    "left-in-eval-mode",
    severity=ERROR,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("torch", "eval(|train(False", "backward", "step("),
)
def left_in_eval_mode(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds models that a training loop puts into evaluation mode, to validate them or to draw samples, and
    trains on without `train()`: not at the start of the loop, nor after the evaluation, nor in a function
    that the loop calls.

    The model must be the one that the optimizer of the loop steps, and nothing is said where it is meant: a
    model that is in evaluation mode before the loop, a frozen part, a teacher or average of another model, a
    model without any layer that depends on the mode.

    ## Why is this bad?
    `eval()` stays in force until `train()` is called. From the first validation on, dropout is off, and batch
    norm neither normalises by the batch nor updates its statistics: the model is trained in another way than
    was meant, and nothing says so.

    ## Example
    ```python
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        model.eval()
        validate(model)
    ```

    ## Use instead
    ```python
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        model.eval()
        validate(model)
    ```

    ## Fix safety
    There is no fix: training in evaluation mode changes the results, and so does ending it.

    ## References
    - [Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
    - [Evaluation mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
    """
    if not isinstance(call.func, cst.Attribute) or last_name(call.func) not in ("eval", "train"):
        return
    if not may_repeat(module, call):
        return
    found = left_evaluating(module, call)
    if found is None:
        return
    model = module.source(call.func.value)
    yield Finding(
        call,
        f"`{model}` is trained on in evaluation mode: nothing in the training loop calls `train()`",
        related=((found.step.node, "trains it on in the next iteration"),),
        remedy=f"Call `{model}.train()` when the evaluation is done",
    )

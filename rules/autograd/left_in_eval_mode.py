from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.evalmode import left_evaluating
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat


@rule(
    "TL307",
    "left-in-eval-mode",
    severity=ERROR,
    fix="none",
    measured=False,
    on=cst.Call,
    named={cst.Call: ("eval", "train")},
    mentions=("torch", "eval(|train(False", "backward", "step("),
)
def left_in_eval_mode(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds models that a training loop puts into evaluation mode, to validate or to draw samples, and then
    continues to train without calling `train()`: neither at the start of the loop, nor after the evaluation,
    nor in a function that the loop calls.

    The model must be the one that the loop's optimizer updates. Intended uses are ignored: models that are in
    evaluation mode before the loop, frozen parts, teachers or averages of another model, and models without a
    layer that depends on the mode.

    ## Why is this bad?
    `eval()` stays in effect until `train()` is called. From the first validation on, dropout is off, and
    batch norm neither normalizes with batch statistics nor updates its running statistics. The model trains
    differently from what was intended, without any error.

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
    There is no fix: calling `train()` changes the results of the training.

    ## References
    - [Module.eval](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.eval)
    - [Evaluation mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval)
    """
    if not isinstance(call.func, cst.Attribute):
        return
    if not may_repeat(module, call):
        return
    found = left_evaluating(module, call)
    if found is None:
        return
    model = module.source(call.func.value)
    yield Finding(
        call,
        f"`{model}` continues training in evaluation mode: nothing in the loop calls `{model}.train()`",
        related=((found.step.node, "the next iteration trains it here"),),
        remedy=f"Call `{model}.train()` after the evaluation",
    )

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .clearing import clearings_around, uncleared


@rule(
    "TL305",
    "zero-grad-missing",
    severity=ERROR,
    fix="none",
    measured=False,
    on=cst.Call,
    named={cst.Call: ("step",)},
    mentions=("torch", "backward", "step("),
)
def zero_grad_missing(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds loops that compute gradients and step an optimizer, although nothing in the loop clears the
    gradients of the previous step: not near the step, nor in a helper, a closure or a gradient accumulation
    branch. It also finds training steps that an ignite engine or code in other files calls repeatedly:
    methods that compute a loss and step an optimizer of the object, in a file that never clears the
    gradients.

    A finding requires that the whole iteration can be followed. Where functions of other files get the
    optimizer, they may clear its gradients, and nothing is reported.

    ## Why is this bad?
    `backward()` adds to existing gradients. Without clearing, every step follows the sum of the gradients of
    all batches so far. The program runs, the loss may even decrease for a while, but the result is wrong.

    ## Example
    ```python
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety
    There is no fix: whether to clear the gradients after every batch or after several is up to the author.

    ## References
    - [Zeroing out gradients](https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html)
    - [torch.optim: taking an optimization step](https://docs.pytorch.org/docs/stable/optim.html)
    """
    if is_test(module):
        return
    found = uncleared(module, call)
    if found is None:
        return
    assert found.step.subject is not None
    optimizer = module.source(found.step.subject.node)
    outside = next(clearings_around(module, found), None)
    if outside is not None:
        rest = "they are cleared only outside the loop"
    else:
        where = "file" if isinstance(found.iteration.loop, cst.FunctionDef) else "loop"
        rest = f"nothing in the {where} clears them"
    yield Finding(
        call,
        f"`{optimizer}` steps with gradients summed over all iterations: {rest}",
        related=(
            (found.backward.node, "adds to the gradients of earlier iterations"),
            *(((outside, "clears the gradients, but not in each iteration"),) if outside else ()),
        ),
        remedy=f"Call `{optimizer}.zero_grad()` {_where(module, call, found.step.subject.node)}",
    )


def _where(module: Module, call: cst.Call, optimizer: cst.BaseExpression) -> str:
    """Return the place at which the gradients are cleared once for each backward pass
    that a step is made of.
    """
    closure = next((arg.value for arg in call.args if arg.value is not optimizer), None)
    if closure is None or not isinstance(module.value(closure).definition, cst.FunctionDef):
        return "after this step"
    return f"at the start of `{module.source(closure)}`"

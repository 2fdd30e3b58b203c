from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import unsafe, unset_argument
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.repetition import may_repeat
from torchlint.semantics.spellings import last_name

from .graphreuse import retained_for_nothing


@rule(
    "TL304",
    "backward-retains-graph",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    mentions=("torch", "backward", "retain_graph"),
)
def backward_retains_graph(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds `backward(retain_graph=True)` in a loop where no second backward pass goes through the same graph:
    everything that the loss depends on is recomputed in each iteration, and no later loss, `autograd.grad`
    call or function of another file shares it. Where several backward passes go through one graph, only the
    last is reported.

    ## Why is this bad?
    A backward pass frees the activations that the forward pass saved. With `retain_graph=True` they stay in
    memory until the loss is recomputed. The forward pass of the next iteration then runs while the
    activations of the previous one are still allocated, which raises peak memory.

    ## Example
    ```python
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward(retain_graph=True)
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
    Unsafe: the results are the same, but if code outside the file does go through the graph again, it fails
    with "Trying to backward through the graph a second time".

    ## References
    - [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)
    - [Saved tensors](https://docs.pytorch.org/docs/stable/notes/autograd.html#saved-tensors)
    """
    if last_name(call.func) not in ("backward", "manual_backward") or not may_repeat(module, call):
        return
    retained = module.argument(call, "retain_graph")
    if retained.constant is not True or not retained.given:
        return
    if not module.argument(call, "create_graph").absent or not retained_for_nothing(module, call):
        return
    yield Finding(
        call,
        "`retain_graph=True` keeps the saved activations for another backward pass that never runs",
        fix=unsafe(
            module,
            "Remove `retain_graph=True`",
            unset_argument(module, call, "retain_graph"),
            risk="fails if code elsewhere backpropagates through the same graph again",
        ),
        remedy="Remove `retain_graph=True`",
    )

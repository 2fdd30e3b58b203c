"""TL205 branch-on-tensor."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.checks import Check, check_of
from torchlint.semantics.module import Module
from torchlint.semantics.synchronisation import asking_function, trail, truth_tests, waiting_place, when
from torchlint.semantics.usage import receivers, steps_environment


@rule(
    "TL205",
    "branch-on-tensor",
    severity=WARNING,
    fix="none",
    on=(
        cst.If,
        cst.While,
        cst.Assert,
        cst.IfExp,
        cst.CompIf,
        cst.UnaryOperation,
        cst.BooleanOperation,
        cst.Comparison,
        cst.Call,
    ),
    mentions=("torch|lightning|accelerate",),
)
def branch_on_tensor(node: cst.CSTNode, module: Module) -> Iterator[Finding]:
    """## What it does

    Finds Python decisions that depend on a tensor on the accelerator, in every iteration of a hot loop or in
    every forward pass: `if`, `while`, `assert`, `and`, `or`, `not`, ternaries, chained comparisons, `in`, the
    builtins `any`, `all`, `min`, `max`, `sorted` and `sum`, and `torch.equal` and `torch.allclose`; and the
    decisions that calls make by themselves: a distribution of `torch.distributions` checks its parameters
    when it is made, `clip_grad_norm_(..., error_if_nonfinite=True)` the norm, `torch.normal` the deviations,
    and `torch.linalg.inv`, `solve`, `cholesky` and `lu_factor` whether they have succeeded.

    ## Why is this bad?

    Python must know the answer before it can go on, so the host waits until the device has finished
    everything queued so far. `any()`, `max()` and their like ask once for every element (`sum()` asks
    nothing, but launches one addition for each). In compiled code TL513 speaks instead, as the graph breaks.

    ## Example

    ```python
    loss = criterion(model(x), y)
    if torch.isnan(loss):
        continue
    ```

    ## Use instead

    Choose on the device:

    ```python
    loss = torch.nan_to_num(criterion(model(x), y))
    x = torch.where(x > limit, limit, x)
    ```

    or look later:

    ```python
    bad |= ~torch.isfinite(loss)
    if step % 100 == 0 and bad:
        raise RuntimeError("the loss is not finite")
    ```

    `torch.maximum` is `max` on the device, a `GradScaler` finds infinite gradients by itself, and
    `Normal(mean, scale, validate_args=False)` believes its parameters
    (`torch.distributions.Distribution.set_default_validate_args(False)` does so for all of them).
    `torch.linalg.inv_ex` and its like return the outcome instead of looking at it, which is a note. So is the
    check of a distribution where the sample is an action that an environment waits for.

    ## Fix safety

    There is no fix: what the branch does decides what can take its place.

    ## References

    * [PyTorch performance tuning guide: avoid unnecessary CPU-GPU synchronization](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """
    if not module.may_repeat(node) or not module.accelerated:
        return
    if isinstance(node, cst.Call):
        yield from _call_that_decides(node, module)
        return
    if module.compiled(node):
        return
    for tensor in truth_tests(module, node):
        hot = waiting_place(module, tensor)
        if hot is not None:
            message = (
                f"Python needs this tensor to decide, and the host waits for it {when(module, hot)}; "
                "decide on the device (`torch.where`) or check later"
            )
            yield Finding(tensor, message, related=trail(module, hot))


def _call_that_decides(call: cst.Call, module: Module) -> Iterator[Finding]:
    check = check_of(module, call)
    name = asking_function(module, call) if check is None else None
    if (check is None and name is None) or (name == "builtins.sum" and _decides(call, module)):
        return
    if check is None and module.compiled(call):
        return
    hot = waiting_place(module, call)
    if hot is None:
        return
    often, related = when(module, hot), trail(module, hot)
    if check is None:
        assert name is not None
        yield Finding(call, _of_call(module, call, name, often), related=related)
        return
    # Who acts in an environment waits for the action anyway.
    acting = any(steps_environment(module, receiver) for receiver in receivers(module, call))
    severity = NOTE if acting or check.advice else None
    yield Finding(call, _of_check(module, call, check, often), severity=severity, related=related)


def _of_check(module: Module, call: cst.Call, check: Check, often: str) -> str:
    name = f"`{module.source(call.func)}`"
    return f"{name} looks {check.look}, and the host waits for the device {often}; {check.instead}"


def _decides(call: cst.Call, module: Module) -> bool:
    """Whether a decision on the sum is reported anyway."""
    parent = module.tree.parent(call)
    return isinstance(
        parent, (cst.Comparison, cst.ComparisonTarget, cst.If, cst.While, cst.Assert, cst.IfExp)
    )


def _of_call(module: Module, call: cst.Call, name: str, often: str) -> str:
    package, _, function = name.rpartition(".")
    if function == "sum":
        return f"builtin `sum()` adds the tensor up one element at a time {often}; use `.sum()`"
    if package.startswith("torch"):
        return f"`{name}` needs the answer in Python, and the host waits for the device {often}"
    if package == "builtins":
        return f"builtin `{function}()` asks the device about each element {often}; use the function of torch"
    spelt = module.source(call.func)
    return f"`{spelt}` compares tensors one by one, and the host waits for each {often}; stack them first"

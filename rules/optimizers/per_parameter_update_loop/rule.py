from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Frequency
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .foreach import PUBLIC_SINCE
from .groups import OPTIMIZERS, grouped_one_by_one
from .multitensor import as_one_call, clipped_to
from .updates import Change, UpdateLoop, makes_average, runs_every_step, update_loop

_TOLD = "{} launches kernels per parameter"
_AVERAGED = (
    "Collect the floating-point tensors in lists, and average them with "
    "`torch.optim.swa_utils.get_ema_multi_avg_fn`"
)


@rule(
    "TL505",
    "per-parameter-update-loop",
    severity=WARNING,
    fix="unsafe",
    on=(cst.For, cst.ListComp, cst.DictComp, cst.Call),
    named={cst.Call: OPTIMIZERS},
    mentions=("param|state_dict",),
)
def per_parameter_update_loop(
    node: cst.For | cst.ListComp | cst.DictComp | cst.Call, module: Module
) -> Iterator[Finding]:
    """## What it does
    Finds Python loops that update parameters one by one in every step: moving averages and soft updates of
    target networks, hand-written gradient steps, clipping of gradients or weights, scaling of gradients, sums
    of gradient norms, and copies. Averages may also be put into new lists or dicts. It also finds optimizers
    that get a parameter group for each parameter, over which they loop themselves.

    The rule ignores loops that run once or only occasionally, loops that do anything else for each parameter
    (such as a collective or a message), loops inside optimizers and compiled functions, loops over a few
    tensors that are listed explicitly, and programs for the CPU. Loops that clear gradients are reported by
    TL302.

    Moving averages are updated repeatedly, and gradients are new after each backward pass. A function that
    updates an average, clips gradients or steps along them, and that only other files call, is therefore
    assumed to run in every step.

    Findings are of low impact where only private functions of the declared release do the same for all
    tensors at once, as for clamped weights, scaled gradients and copies before torch 2.15.

    ## Why is this bad?
    Each operation on each parameter is a separate kernel, and most parameters are small: launching the kernel
    takes longer than running it. The torch operations on lists of tensors process all parameters in a few
    kernels. On the CPU they are loops, too.

    ## Example
    ```python
    with torch.no_grad():
        for p_ema, p in zip(ema.parameters(), model.parameters()):
            p_ema.mul_(decay).add_(p, alpha=1 - decay)
    ```

    ## Use instead
    ```python
    update = torch.optim.swa_utils.get_ema_multi_avg_fn(decay)
    update(list(ema.parameters()), list(model.parameters()), None)
    ```

    `torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))` also keeps the copy
    of the model. The operations themselves are public as `torch.foreach` since torch 2.15. Before,
    `torch._foreach_lerp_` and similar functions are private by name.

    ## Fix safety
    There is a fix for averages of the parameters of two modules, and for gradients clipped to a value on both
    sides. It is unsafe: the average rounds differently in the last digits and requires both modules to have
    the same parameters in the same dtype, and `clip_grad_value_` skips parameters without a gradient. If
    every release that may run the program is torch 2.15 or newer, there is a fix with `torch.foreach` for
    clipped weights, copied parameters and multiplied gradients: it gives bitwise identical results, but the
    API is in beta.

    There is no fix for state dicts, which contain integers that cannot be averaged this way, for buffers and
    gradients that may be None, because `torch.foreach` does not accept empty lists, for gradients that are
    divided, which rounds differently, for the states of optimizers, where the file casts averages to a
    shorter dtype, and where code after the loop reads a loop variable.

    ## References
    - [AveragedModel and get_ema_multi_avg_fn](https://docs.pytorch.org/docs/2.13/optim.html)
    - [clip_grad_value_](https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.clip_grad_value_.html)
    - [torch.foreach](https://docs.pytorch.org/docs/main/foreach.html)
    """
    if is_test(module) or not module.target.admits("2.0"):
        return
    match node:
        case cst.For():
            yield from _of_loop(module, node)
        case cst.Call() if grouped_one_by_one(module, node):
            yield Finding(
                node,
                "one parameter group per parameter makes the optimizer update parameters one by one",
                remedy="Put all parameters that have the same options into one group",
                frequency=Frequency.STEP,
            )
        case cst.ListComp() | cst.DictComp() if makes_average(module, node):
            if runs_every_step(module, node, Change.AVERAGE):
                yield Finding(
                    node,
                    f"{_TOLD.format(Change.AVERAGE.value)}; use `torch.optim.swa_utils.get_ema_multi_avg_fn`",
                    remedy=_AVERAGED,
                    frequency=Frequency.STEP,
                )


def _of_loop(module: Module, loop: cst.For) -> Iterator[Finding]:
    found = update_loop(module, loop)
    if found is None or not runs_every_step(module, loop, found.change):
        return
    yield Finding(
        loop.iter,
        f"{_TOLD.format(found.change.value)}; use {_instead(module, found)}",
        fix=as_one_call(module, found),
        remedy=_remedy(module, found),
        frequency=Frequency.STEP,
        slight=_PRIVATE if _only_private(module, found) else None,
    )


_PRIVATE = "before torch 2.15, only private functions do this for all tensors at once"
_FOR_FOREACH = frozenset({Change.CLAMP, Change.CLIP, Change.COPY, Change.SCALE})
"""What has no function of its own for all parameters, unless gradients are clipped on both sides."""


def _only_private(module: Module, found: UpdateLoop) -> bool:
    """Return whether nothing but private functions of the installed release can replace a loop."""
    if found.change not in _FOR_FOREACH or module.target.at_least(PUBLIC_SINCE):
        return False
    return found.change is not Change.CLIP or clipped_to(module, found.loop) is None


def _instead(module: Module, found: UpdateLoop) -> str:
    """Return what does the same to all parameters in a few kernels."""
    foreach = "torch.foreach." if module.target.at_least(PUBLIC_SINCE) else "torch._foreach_"
    match found.change:
        case Change.AVERAGE:
            return "`torch.optim.swa_utils.get_ema_multi_avg_fn`"
        case Change.STEP:
            return "a `torch.optim` optimizer"
        case Change.CLIP if clipped_to(module, found.loop) is not None:
            return "`torch.nn.utils.clip_grad_value_`"
        case Change.CLIP | Change.CLAMP:
            return f"`{foreach}clamp_min_` and `clamp_max_`"
        case Change.SCALE:
            return f"`{foreach}mul_`"
        case Change.NORM:
            return "`torch.nn.utils.clip_grad_norm_`"
        case Change.COPY:
            return f"`{foreach}copy_`"


def _remedy(module: Module, found: UpdateLoop) -> str:
    foreach = "torch.foreach." if module.target.at_least(PUBLIC_SINCE) else "torch._foreach_"
    match found.change:
        case Change.AVERAGE:
            return _AVERAGED
        case Change.STEP:
            return "Pass the parameters to an optimizer such as `torch.optim.SGD`, and call its `step()`"
        case Change.CLIP if clipped_to(module, found.loop) is not None:
            return "Clip all gradients at once with `torch.nn.utils.clip_grad_value_`"
        case Change.CLIP | Change.CLAMP:
            does = f"clip them with `{foreach}clamp_min_` and `{foreach}clamp_max_`"
        case Change.SCALE:
            does = f"scale them with `{foreach}mul_`"
        case Change.NORM:
            return (
                "Use the norm that `torch.nn.utils.clip_grad_norm_` returns; "
                'a limit of `float("inf")` clips nothing'
            )
        case Change.COPY:
            does = f"copy them with `{foreach}copy_`"
    return f"Collect the tensors in lists, and {does}"

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

from .foreach import PUBLIC_SINCE
from .multitensor import as_one_call, clipped_to
from .updates import Change, UpdateLoop, runs_every_step, update_loop


@rule(
    "TL505",
    "per-parameter-update-loop",
    severity=WARNING,
    fix="unsafe",
    on=cst.For,
    mentions=("param|state_dict",),
)
def per_parameter_update_loop(loop: cst.For, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds Python loops that change parameters one by one at every step: moving averages and soft updates of
    target networks, steps along the gradient by hand, gradients and weights that are clipped, gradients that
    are scaled or whose norms are added up, and copies.

    Loops that run once or now and then are left alone, and so are those that do anything else for each
    parameter, such as a collective operation or a message, those of optimizers, of a few tensors that are
    listed by hand, in compiled functions, and of programs for the CPU. Gradients that are cleared in a loop
    are found by TL302.

    An average is taken again and again, and gradients are new after each backward pass. A function that takes
    an average, or clips or follows gradients, and that only other files call, is taken to be called at every
    step.

    ## Why is this bad?
    Each operation on each parameter is a kernel of its own, and most parameters are small: launching the
    kernel takes longer than running it. The operations of torch on lists of tensors handle all parameters in
    a few kernels. On the CPU they are loops, too.

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

    `torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))` keeps the copy as
    well. The operations themselves are public as `torch.foreach` since torch 2.15; before,
    `torch._foreach_lerp_` and its kin are private by their names.

    ## Fix safety
    There is a fix for averages of the parameters of two modules, and for gradients clipped to a value on both
    sides. It is unsafe: the average is rounded differently in the last digits, it needs both modules to have
    the same parameters in the same dtype, and `clip_grad_value_` passes over parameters without a gradient.
    Where every release that may run the program is torch 2.15 or newer, there is one by `torch.foreach` for
    weights that are clipped, parameters that are copied and gradients that are multiplied: it gives the same
    bits, but is a beta.

    There is none for states, since they hold integers that cannot be averaged so; for buffers and gradients
    that may be None, since `torch.foreach` takes no empty lists; for gradients that are divided, which rounds
    otherwise; and for the states of optimizers. Nor is there one where the file casts averages to a shorter
    dtype, and where a variable of the loop is read behind it.

    ## References
    - [AveragedModel and get_ema_multi_avg_fn](https://docs.pytorch.org/docs/2.13/optim.html)
    - [clip_grad_value_](https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.clip_grad_value_.html)
    - [torch.foreach](https://docs.pytorch.org/docs/main/foreach.html)
    """
    if is_test(module) or not module.target.admits("2.0"):
        return
    found = update_loop(module, loop)
    if found is None or not runs_every_step(module, found):
        return
    yield Finding(
        loop.iter,
        f"{found.change.value} is worked out parameter by parameter, with kernels of its own for each; "
        f"{_instead(module, found)}",
        fix=as_one_call(module, found),
        remedy=_remedy(module, found),
    )


def _instead(module: Module, found: UpdateLoop) -> str:
    """What does the same to all parameters in a few kernels."""
    foreach = "torch.foreach." if module.target.at_least(PUBLIC_SINCE) else "torch._foreach_"
    match found.change:
        case Change.AVERAGE:
            return "`torch.optim.swa_utils.get_ema_multi_avg_fn` averages all of them at once"
        case Change.STEP:
            return "an optimizer of `torch.optim` steps all of them at once"
        case Change.CLIP if clipped_to(module, found.loop) is not None:
            return "`torch.nn.utils.clip_grad_value_` clips all of them at once"
        case Change.CLIP | Change.CLAMP:
            return f"`{foreach}clamp_min_` and `{foreach}clamp_max_` clip all of them at once"
        case Change.SCALE:
            return f"`{foreach}mul_` scales all of them at once"
        case Change.NORM:
            return "`torch.nn.utils.clip_grad_norm_` returns it, and takes all of them at once"
        case Change.COPY:
            return f"`{foreach}copy_` copies all of them at once"


def _remedy(module: Module, found: UpdateLoop) -> str:
    foreach = "torch.foreach." if module.target.at_least(PUBLIC_SINCE) else "torch._foreach_"
    match found.change:
        case Change.AVERAGE:
            return (
                "Collect the tensors of floating point in lists, and average those with "
                "`torch.optim.swa_utils.get_ema_multi_avg_fn`"
            )
        case Change.STEP:
            return "Give the parameters to an optimizer such as `torch.optim.SGD`, and let it step"
        case Change.CLIP if clipped_to(module, found.loop) is not None:
            return "Clip all of them at once with `clip_grad_value_`"
        case Change.CLIP | Change.CLAMP:
            does = f"clip those with `{foreach}clamp_min_` and `{foreach}clamp_max_`"
        case Change.SCALE:
            does = f"scale those with `{foreach}mul_`"
        case Change.NORM:
            return "Take the norm that `clip_grad_norm_` returns, with a limit of infinity if none is wanted"
        case Change.COPY:
            does = f"copy those with `{foreach}copy_`"
    return f"Collect the tensors in lists, and {does}"

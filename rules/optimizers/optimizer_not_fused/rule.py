from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, set_argument, spell, unsafe, unset_argument
from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Argument, Module

from .optimizers import MadeOptimizer, made_optimizer


@rule(
    "TL506",
    "optimizer-not-fused",
    severity=NOTE,
    fix="unsafe",
    on=cst.Call,
    mentions=("optim", "Adam|SGD|Adagrad|foreach|fused|_multi_tensor"),
    remedy="Pass `fused=True` if the parameters are on an accelerator",
    advice=True,
    lasting=True,
)
def optimizer_not_fused(call: cst.Call, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds torch optimizers for parameters on an accelerator that could run as one fused kernel: `Adam`,
    `AdamW`, `Adagrad`, and `SGD` with momentum or weight decay, created without `fused` and `foreach`. It is
    a warning where `foreach=False`, or `fused=False` alone, makes the step update the parameters one by one,
    and for the private classes of `torch.optim._multi_tensor`.

    The rule ignores plain `SGD`, whose multi-tensor implementation already makes a single pass; `SGD` with
    momentum where mixed precision may scale the loss, because the fused implementation uses uninitialized
    momentum buffers if the scaler skips the first step (torch 2.13); optimizers of a few tensors that are
    listed explicitly; differentiable optimizers; sparse gradients; and programs for CPUs and TPUs.

    ## Why is this bad?
    Since torch 2.0 the default on a GPU is the multi-tensor (`foreach`) implementation. It launches separate
    kernels for each operation of the update formula, and each of them reads and writes all parameters,
    gradients or states again. It also allocates memory for intermediate results. The fused implementation
    computes the whole formula in one pass. How much that saves depends on the optimizer's share of a training
    step. Updating the parameters one by one takes several kernels for every single parameter.

    ## Example
    ```python
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    ```

    ## Use instead
    ```python
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    ```

    ## Fix safety
    The fix is unsafe: the fused kernel rounds differently in the last digits, and rejects parameters that are
    not of a floating-point type. It is only offered where every release that may run the program has the
    fused implementation for the CPU as well (torch 2.4), because scripts fall back to it. `Adam` has `fused`
    since torch 1.13, `AdamW` since 2.0, `SGD` since 2.3, and `Adagrad` on GPUs since 2.13. There is no fix in
    Lightning modules: with 16-bit mixed precision, Lightning refuses to clip the gradients of a fused
    optimizer.

    A class of `torch.optim._multi_tensor` becomes the public one with `fused=True`, or with the equivalent
    `foreach=True` where an older release may run the program.

    ## References
    - [torch.optim: which implementation is chosen](https://docs.pytorch.org/docs/2.13/optim.html)
    - [AdamW](https://docs.pytorch.org/docs/2.13/generated/torch.optim.AdamW.html)
    - [Fused SGD, which came with torch 2.3](https://github.com/pytorch/pytorch/pull/94791)
    - [Fused SGD and steps that a scaler leaves out](https://github.com/LibreYOLO/libreyolo/pull/771)
    - [Lightning: fused Adam and gradient clipping](https://github.com/Lightning-AI/pytorch-lightning/pull/15555)
    """
    made = made_optimizer(module, call)
    if made is None or is_test(module) or not module.target.admits("2.0"):
        return
    if made.differentiable or not made.on_accelerator:
        return
    fused, foreach = module.argument(call, "fused"), module.argument(call, "foreach")
    if made.legacy:
        yield Finding(
            call,
            f"`_multi_tensor.{made.name}` is private; `torch.optim.{made.name}` does the same by default",
            fix=_public(module, made),
            severity=WARNING,
            remedy=f"Call `torch.optim.{made.name}`",
        )
    elif _is_off(foreach) and _is_open(fused):
        yield Finding(
            call,
            f"`foreach=False` makes `{made.name}` launch several kernels for every single parameter",
            fix=_fuse(module, made),
            severity=WARNING,
        )
    elif _is_off(fused) and _is_open(foreach):
        yield Finding(
            call,
            f"`fused=False` also disables `foreach`: `{made.name}` launches several kernels per parameter",
            fix=_fuse(module, made),
            severity=WARNING,
        )
    elif _is_open(fused) and _is_open(foreach) and _gains(module, made):
        yield Finding(
            call,
            f"`{made.name}` makes several passes over parameters and states per step; use `fused=True`",
            fix=_fuse(module, made),
        )


def _is_off(argument: Argument) -> bool:
    return argument.given and argument.constant is False


def _is_open(argument: Argument) -> bool:
    """Return whether torch chooses: nothing, or None, is passed."""
    return argument.absent or (argument.given and argument.constant is None)


def _gains(module: Module, made: MadeOptimizer) -> bool:
    """Return whether there is a fused form, with fewer passes than the default has."""
    since = made.fusible_since
    if since is None or not module.target.admits(since):
        return False
    return not made.steps_in_one_pass and not made.loses_first_momentum


def _fuse(module: Module, made: MadeOptimizer) -> Fix | None:
    """Ask for the fused form, or where there is none, for the default."""
    if _in_lightning(module, made.call):
        return None
    if made.fusible_since is None or made.loses_first_momentum:
        name = "foreach" if module.argument(made.call, "foreach").given else "fused"
        edits = unset_argument(module, made.call, name)
        return unsafe(module, f"Remove `{name}=False`", edits, risk=_ROUNDED)
    if not made.fusible_anywhere:
        return None
    old = module.argument(made.call, "foreach").arg
    if old is not None and old.keyword is not None and module.argument(made.call, "fused").absent:
        edits = replace(module, old, "fused=True")
        return unsafe(module, f"Replace `{module.source(old)}` with `fused=True`", edits, risk=_ROUNDED)
    edits = set_argument(module, made.call, "fused", "True")
    return unsafe(module, "Pass `fused=True`", edits, risk=_ROUNDED)


_ROUNDED = "results change in the last digits, and parameters have to be of a floating-point type"


def _public(module: Module, made: MadeOptimizer) -> Fix | None:
    """Return the public class, under the name that the file has for it or under its own."""
    spelling = spell(module, f"torch.optim.{made.name}", made.call)
    if spelling is None or "multi_tensor" in spelling.text or spelling.text == made.name:
        return None
    edits, message = replace(module, made.call.func, spelling.text), f"Call `{spelling.text}`"
    chosen = [module.argument(made.call, name) for name in ("fused", "foreach")]
    if not all(argument.absent for argument in chosen) or not _gains(module, made):
        return unsafe(module, message, edits, spelling.edits, risk=_ROUNDED)
    # The default form would be found in its turn.
    wanted = "fused" if made.fusible_anywhere and not _in_lightning(module, made.call) else "foreach"
    added = set_argument(module, made.call, wanted, "True")
    told = f"{message} with `{wanted}=True`"
    return unsafe(module, told, edits, added, spelling.edits, risk=_ROUNDED)


def _in_lightning(module: Module, call: cst.Call) -> bool:
    """Return whether a Lightning module makes the optimizer, whose trainer may clip gradients its own way."""
    function = module.function(call)
    if isinstance(function, cst.FunctionDef) and function.name.value == "configure_optimizers":
        return True
    owner = module.tree.enclosing(call, cst.ClassDef)
    return owner is not None and module.classes.info(owner).lightning

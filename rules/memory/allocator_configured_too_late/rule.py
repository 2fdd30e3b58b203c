"""TL603: the configuration of the allocator is set where torch does not read it, or cannot."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, unsafe
from torchlint.fixes.environment import moved_up
from torchlint.rule import ERROR, WARNING, Finding, rule
from torchlint.semantics.environmentvariables import Setting
from torchlint.semantics.module import Module

from .allocator import (
    COMMON_VARIABLE,
    CUDA_VARIABLE,
    configurations,
    misspelt_variable,
    mistakes,
    sets_backend,
    too_late,
)


@rule(
    "TL603",
    "allocator-configured-too-late",
    severity=ERROR,
    fix="unsafe",
    measured=False,
    on=(cst.Assign, cst.Call),
    mentions=("ALLOC", "environ|putenv"),
)
def allocator_configured_too_late(node: cst.Assign | cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `PYTORCH_CUDA_ALLOC_CONF` and `PYTORCH_ALLOC_CONF` set in `os.environ` after CUDA has been
    initialised: by a tensor or module on the device, or by a function that asks the driver, such as
    `torch.cuda.mem_get_info()`. A configuration that asks for another `backend` is found behind
    `import torch`. It also finds names of variables and options that no release of torch knows, values that
    none accepts, and `PYTORCH_ALLOC_CONF` where a release before 2.9, which does not read it, may run.

    What is set for other processes that the file starts is left alone.

    ## Why is this bad?

    The configuration is read once, when CUDA is initialised; what is set later changes nothing, and nothing
    says so. The backend is read when torch is imported, and another one found later is an internal error when
    CUDA is initialised. Unknown options and values raise there, too, and an unknown variable is never read.

    ## Example

    ```python
    model = Net().cuda()
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    ```

    ## Use instead

    ```python
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    model = Net().cuda()
    ```

    ## Fix safety

    Unsafe: the program then runs with a configuration with which it has never run before.

    ## References

    - [CUDA semantics: environment variables of the allocator](https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-envvars)
    """
    for setting in configurations(module, node):
        yield from _misspelt(module, setting)
        used = too_late(module, setting)
        if used is None:
            yield from _unread(module, setting)
            continue
        when = (
            "after `import torch`, which has chosen the backend"
            if sets_backend(setting)
            else "after CUDA was initialised, which is when torch reads it"
        )
        yield Finding(
            node,
            f"`{setting.variable}` is set {when}; set it above that",
            fix=_fix(module, setting, used),
            remedy=f"Set `{setting.variable}` above the line that makes torch read it",
            related=((used, "torch reads it here"),),
        )


def _misspelt(module: Module, setting: Setting) -> Iterator[Finding]:
    """Names and values that no release of torch takes."""
    meant = misspelt_variable(setting)
    if meant is not None:
        yield Finding(
            setting.name,
            f"torch reads no variable `{setting.variable}`; set `{meant}`",
            fix=_respelt(module, setting.name, setting.variable, meant),
            remedy=f"Write `{meant}`",
        )
    for mistake in mistakes(setting):
        advice = f"; write `{mistake.right}`" if mistake.right else ""
        yield Finding(
            setting.value or setting.node,
            f"torch raises when CUDA is initialised: {mistake.why}{advice}",
            fix=_respelt(module, setting.value, mistake.words, mistake.right),
            remedy=f"Write `{mistake.right}`" if mistake.right else mistake.remedy,
        )


def _respelt(module: Module, text: cst.BaseExpression | None, wrong: str, right: str | None) -> Fix | None:
    code = module.source(text) if isinstance(text, cst.SimpleString) else ""
    if right is None or code.count(wrong) != 1:
        return None
    assert text is not None
    return unsafe(module, f"Write `{right}`", replace(module, text, code.replace(wrong, right)))


def _unread(module: Module, setting: Setting) -> Iterator[Finding]:
    """The new name where an old release may run; the old one set beside it serves both."""
    """The new name where an old release may run; the old one set beside it serves both."""
    target = module.target
    if setting.variable != COMMON_VARIABLE or target.lower is None or target.at_least("2.9"):
        return
    if module.tree.mentions(CUDA_VARIABLE):
        return
    if not target.admits("2.9"):
        yield Finding(
            setting.name,
            f"before torch 2.9 `{COMMON_VARIABLE}` is not read; all releases read `{CUDA_VARIABLE}`",
            fix=_respelt(module, setting.name, COMMON_VARIABLE, CUDA_VARIABLE),
            remedy=f"Write `{CUDA_VARIABLE}`",
        )
    elif target.upper is None:  # else the newest is pinned, and deprecates the old name
        yield Finding(
            setting.name,
            f"before torch 2.9 `{COMMON_VARIABLE}` is not read",
            remedy=f"Set `{CUDA_VARIABLE}` to the same for older releases",
            severity=WARNING,
        )


def _fix(module: Module, setting: Setting, used: cst.CSTNode) -> Fix | None:
    return unsafe(module, "Set it above that", moved_up(module, setting, used))

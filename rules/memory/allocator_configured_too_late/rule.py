"""TL603: an allocator configuration that torch does not read, or rejects."""

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

    Finds `PYTORCH_CUDA_ALLOC_CONF` and `PYTORCH_ALLOC_CONF` set in `os.environ` after CUDA was initialized,
    by a tensor or module on the device or by a function such as `torch.cuda.mem_get_info()`. A configuration
    that selects another `backend` has to be set before `import torch`. The rule also finds variable and
    option names that no torch release knows, invalid values, and `PYTORCH_ALLOC_CONF` in projects that
    support releases before 2.9, which ignore it.

    Variables set for other processes that the file starts are ignored.

    ## Why is this bad?

    torch reads the configuration once, when CUDA is initialized. Setting it later has no effect and gives no
    warning. The backend is read when torch is imported; changing it later causes an internal error when CUDA
    is initialized. Unknown options and invalid values raise an error there too. An unknown variable is
    ignored.

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

    Unsafe: the configuration takes effect for the first time, which changes how the program uses memory.

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
            "after `import torch`, too late to choose the backend"
            if sets_backend(setting)
            else "after CUDA was initialized, when torch no longer reads it"
        )
        yield Finding(
            node,
            f"`{setting.variable}` is set {when}",
            fix=_fix(module, setting, used),
            remedy=f"Set `{setting.variable}` before the line that makes torch read it",
            related=((used, "torch reads it here"),),
        )


def _misspelt(module: Module, setting: Setting) -> Iterator[Finding]:
    """Yield names and values that no release of torch takes."""
    meant = misspelt_variable(setting)
    if meant is not None:
        yield Finding(
            setting.name,
            f"torch does not read `{setting.variable}`; set `{meant}`",
            fix=_respelt(module, setting.name, setting.variable, meant),
            remedy=f"Set `{meant}`",
        )
    for mistake in mistakes(setting):
        yield Finding(
            setting.value or setting.node,
            f"CUDA initialization fails: {mistake.why}",
            fix=_respelt(module, setting.value, mistake.words, mistake.right),
            remedy=f"Use `{mistake.right}`" if mistake.right else mistake.remedy,
        )


def _respelt(module: Module, text: cst.BaseExpression | None, wrong: str, right: str | None) -> Fix | None:
    code = module.source(text) if isinstance(text, cst.SimpleString) else ""
    if right is None or code.count(wrong) != 1:
        return None
    assert text is not None
    edits = replace(module, text, code.replace(wrong, right))
    return unsafe(module, f"Use `{right}`", edits, risk=_IN_EFFECT)


def _unread(module: Module, setting: Setting) -> Iterator[Finding]:
    """Yield the new name where an old release may run; the old one set beside it serves both."""
    target = module.target
    if setting.variable != COMMON_VARIABLE or target.lower is None or target.at_least("2.9"):
        return
    if module.tree.mentions(CUDA_VARIABLE):
        return
    if not target.admits("2.9"):
        yield Finding(
            setting.name,
            f"`{COMMON_VARIABLE}` is ignored before torch 2.9; set `{CUDA_VARIABLE}`",
            fix=_respelt(module, setting.name, COMMON_VARIABLE, CUDA_VARIABLE),
            remedy=f"Set `{CUDA_VARIABLE}`",
        )
    elif target.upper is None:  # else the newest is pinned, and deprecates the old name
        yield Finding(
            setting.name,
            f"`{COMMON_VARIABLE}` is ignored before torch 2.9",
            remedy=f"Set `{CUDA_VARIABLE}` to the same value for older releases",
            severity=WARNING,
        )


def _fix(module: Module, setting: Setting, used: cst.CSTNode) -> Fix | None:
    return unsafe(module, "Set it before torch reads it", moved_up(module, setting, used), risk=_IN_EFFECT)


_IN_EFFECT = "the setting had no effect so far; it changes how much memory the program takes"

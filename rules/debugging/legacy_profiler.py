"""TL804: the profiler of autograd, where that of torch is meant."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, safe, spell
from torchlint.rule import ERROR, NOTE, Finding, rule
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module

_LEGACY = "torch.autograd.profiler.profile"
# What only the profiler of torch takes; autograd's raises a TypeError.
_FOREIGN = ("activities", "schedule", "on_trace_ready", "execution_trace_observer")
# What both take under one name and with one meaning.
_SHARED = frozenset({"record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules"})
# What both results can be asked.
_ASKED = frozenset({"key_averages", "export_chrome_trace", "export_stacks", "events"})


@rule(
    "TL804",
    "legacy-profiler",
    severity=NOTE,
    fix="safe",
    measured=False,
    on=cst.Call,
    mentions=("profiler", "profile("),
    remedy="Use `torch.profiler.profile`",
)
def legacy_profiler(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds the legacy profiler `torch.autograd.profiler.profile`. It is an error to pass it `activities`,
    `schedule` or `on_trace_ready`, which only `torch.profiler.profile` accepts.

    ## Why is this bad?

    Arguments of the new profiler raise a `TypeError` in the legacy one. On the GPU, the legacy profiler
    records events around every operation, which slows the program down and does not show the time of
    individual kernels. `torch.profiler.profile` records the kernels themselves, can be limited to a few steps
    with a schedule, and writes traces during the run.

    ## Example

    ```python
    with torch.autograd.profiler.profile(use_cuda=True, record_shapes=True) as prof:
        step(batch)
    print(prof.key_averages().table())
    ```

    ## Use instead

    ```python
    with torch.profiler.profile(record_shapes=True) as prof:
        step(batch)
    print(prof.key_averages().table())
    ```

    ## Fix safety

    Safe: the fix is offered if both profilers accept the arguments and the program only uses results that
    both provide. If the GPU was not profiled before, the fix does not profile it either.

    ## References

    - [torch.profiler](https://docs.pytorch.org/docs/stable/profiler.html)
    - [torch.autograd.profiler.profile](https://docs.pytorch.org/docs/stable/autograd.html#torch.autograd.profiler.profile)
    """
    if module.qualified(call.func) != _LEGACY:
        return
    given = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    foreign = next((name for name in _FOREIGN if name in given), None)
    if foreign is not None:
        yield Finding(
            call,
            f"autograd's profiler raises a `TypeError` for `{foreign}`; use `torch.profiler.profile`",
            severity=ERROR,
            fix=_renamed(module, call),
        )
    elif module.target.at_least("1.9") and "use_kineto" not in given and not is_test(module):
        yield Finding(
            call,
            "the legacy autograd profiler times operations, not kernels; use `torch.profiler.profile`",
            fix=_fix(module, call, given),
        )


def _renamed(module: Module, call: cst.Call) -> Fix | None:
    spelling = spell(module, "torch.profiler.profile", call)
    if spelling is None:
        return None
    return safe(module, f"Use `{spelling.text}`", replace(module, call.func, spelling.text), spelling.edits)


def _fix(module: Module, call: cst.Call, given: dict[str, cst.Arg]) -> Fix | None:
    if len(given) != len(call.args) or not _only_asked_what_both_tell(module, call):
        return None
    on_device = None
    for name in ("use_cuda", "use_device"):
        if name in given:
            constant = module.value(given[name].value).constant
            if constant not in (True, False, None, "cuda"):
                return None
            on_device = constant in (True, "cuda")
    if set(given) - _SHARED - {"use_cuda", "use_device"}:
        return None
    profile = spell(module, "torch.profiler.profile", call)
    activity = spell(module, "torch.profiler.ProfilerActivity.CPU", call)
    if profile is None or activity is None:
        return None
    kept = [module.source(arg.value) for arg in given.values()]
    arguments = [f"{name}={module.source(arg.value)}" for name, arg in given.items() if name in _SHARED]
    if not on_device:
        arguments.insert(0, f"activities=[{activity.text}]")
    if any("\n" in text for text in kept):
        return None
    code = f"{profile.text}({', '.join(arguments)})"
    return safe(module, f"Use `{profile.text}`", replace(module, call, code), profile.edits)


def _only_asked_what_both_tell(module: Module, call: cst.Call) -> bool:
    """Return whether the profile is made by ``with`` under a name of
    which only shared questions are asked.
    """
    item = module.tree.parent(call)
    if not isinstance(item, cst.WithItem):
        return False
    if item.asname is None:
        return True
    name = item.asname.name
    binding = module.binding_of(name) if isinstance(name, cst.Name) else None
    if binding is None:
        return False
    for read in module.uses(binding):
        parent = module.tree.parent(read)
        if not isinstance(parent, cst.Attribute) or parent.attr.value not in _ASKED:
            return False
    return True

"""TL410: `model.forward(x)` where `model(x)` is meant."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, replace
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.identifiers import identifiers, imports
from torchlint.semantics.module import Module
from torchlint.semantics.names import dotted_text
from torchlint.semantics.wholeprogram import passed_by_others

from .bypasses import Bypass, bypass

# What runs before or after ``forward`` as a hook, and would now run.
_HOOKED = frozenset({"weight_norm", "spectral_norm", "prune", "parametrize", "parametrizations"})
# What other files may put into modules by whatever name.
_PATCHING = ("forward_hook", "forward_pre_hook", "__call__ =")
_SPOKEN = ("hook", "nn.utils", "torch.fx", *sorted(_HOOKED))


@rule(
    "TL410",
    "forward-called-directly",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=cst.Call,
    named={cst.Call: ("forward",)},
    mentions=(".forward",),
)
def forward_called_directly(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `model.forward(x)` on an `nn.Module`. The rule ignores `super().forward(x)` and `self.forward(x)`,
    wrappers that pass on their arguments, hooks, methods that replace `__call__` or are compiled by
    TorchScript, files that replace the `forward` of a module, and classes with their own `__call__`.

    ## Why is this bad?

    Calling the module runs its hooks around `forward`. Calling `forward` directly skips them silently.
    `fully_shard` gathers parameters in such hooks, pruning and `torch.nn.utils.spectral_norm` recompute
    weights in them, and profilers and feature extractors use them. `Module.compile()` also takes effect only
    when the module is called.

    ## Example

    ```python
    logits = model.forward(images)
    ```

    ## Use instead

    ```python
    logits = model(images)
    ```

    ## Fix safety

    Without hooks both compute the same. The fix is unsafe where a file of the program registers hooks, uses
    features that rely on them or `torch.fx`, where the class of the module is not in the file and may define
    its own `__call__` or is replaced by another, and where callers pass the object without saying of which
    class it is.

    ## References

    - [torch.nn.Module.forward](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.forward)
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "forward":
        return
    found = bypass(module, call)
    if found is None:
        return
    named = dotted_text(found.receiver)
    instead = f"`{named}(…)`" if named is not None else "the module itself"
    yield Finding(
        call,
        f"calling `forward` directly skips the module's hooks and compiled code; call {instead}",
        fix=_fix(module, call, found),
        remedy=f"Call {instead}",
        # Such a module has no hooks, and is not compiled.
        slight="the module is made for this call" if isinstance(found.receiver, cst.Call) else None,
    )


def _fix(module: Module, call: cst.Call, found: Bypass) -> Fix | None:
    risk = None
    if not found.plain or _is_replaced(module, found.receiver):
        risk = "the class may define a `__call__` of its own"
    elif passed_by_others(module, found.receiver, promised=True):
        risk = "callers may pass an object that has a `forward` and cannot be called"
    elif _has_hooks(module):
        risk = "the hooks of the module run from then on"
    code = module.source(found.receiver)
    return graded(module, "Call the module", replace(module, call.func, code), risk=risk)


def _is_replaced(module: Module, receiver: cst.BaseExpression) -> bool:
    """Return whether the program puts another class in the place of that of a module:
    ``nets.Head = Fast``.
    """
    made = module.value(receiver).definition
    if not isinstance(made, cst.ClassDef):
        return False
    home = module.link.home(made) if module.link is not None else module
    binding = home.names.by_node.get(made)
    return binding is not None and bool(home.inference.is_set_elsewhere(binding))


def _has_hooks(module: Module) -> bool:
    """Return whether a file of the program registers hooks, or has a utility of torch do so,
    or traces calls.
    """
    return any(
        imports(each, ("torch.nn.utils", "torch.fx"))
        or any(
            name in _HOOKED or (name.startswith("register_") and name.endswith("hook"))
            for name in identifiers(each)
        )
        for each in (module, *module.companions(*_SPOKEN))
    ) or bool(module.companions(*_PATCHING))

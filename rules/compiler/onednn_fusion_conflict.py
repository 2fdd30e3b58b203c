"""TL515: oneDNN fusion of TorchScript that is switched on and then prevented."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import NOTE, WARNING, Finding, rule
from torchlint.semantics.api.families import CLOCKS
from torchlint.semantics.module import Module
from torchlint.semantics.names import Binding, BindingKind

_ENABLE = "torch.jit.enable_onednn_fusion"
_OPTIMIZE = "torch.jit.optimize_for_inference"
_FREEZE = "torch.jit.freeze"
_MAKERS = frozenset({"torch.jit.trace", "torch.jit.trace_module", "torch.jit.script"})
# The documentation of 2.9 says so first; 2.10 warns when the functions are called.
_DEPRECATED = "2.10"


@rule(
    "TL515",
    "onednn-fusion-conflict",
    severity=WARNING,
    fix="none",
    measured=False,
    on=cst.Call,
    mentions=("enable_onednn_fusion",),
)
def onednn_fusion_conflict(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds code that defeats `torch.jit.enable_onednn_fusion(True)`, in files that call it: models changed by
    `torch.jit.optimize_for_inference`, traced or scripted models that are never frozen, and timings that
    include the first calls of a model, while its graph is still being profiled and fused.

    If TorchScript is deprecated in every torch release that may run the file (from 2.10 on),
    `enable_onednn_fusion(True)` gets a note.

    ## Why is this bad?

    The fusion matches the operators of the original model, with constant weights. `optimize_for_inference`
    replaces some of these operators, and a model that is not frozen has attributes instead of constants. In
    both cases little is left to fuse. The fusion happens during the first calls, which therefore should not
    be timed.

    ## Example

    ```python
    torch.jit.enable_onednn_fusion(True)
    model = torch.jit.trace(model.eval(), sample)
    model = torch.jit.optimize_for_inference(model)
    ```

    ## Use instead

    ```python
    torch.jit.enable_onednn_fusion(True)
    with torch.no_grad():
        model = torch.jit.freeze(torch.jit.trace(model.eval(), sample))
        model(sample)
        model(sample)
    ```

    In new programs, `torch.compile` fuses operations without TorchScript.

    ## Fix safety

    There is no fix: only the author knows which of the two optimizations is intended.

    ## References

    - [PyTorch performance tuning guide: oneDNN Graph with TorchScript](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [torch.jit.optimize_for_inference](https://docs.pytorch.org/docs/stable/generated/torch.jit.optimize_for_inference.html)
    - [TorchScript is deprecated](https://docs.pytorch.org/docs/stable/jit.html)
    """
    name = module.qualified(call.func)
    if name not in (_ENABLE, _OPTIMIZE, _FREEZE) and name not in _MAKERS:
        return
    switch = _switched_on(module)
    if switch is None:
        return
    related = ((switch, "oneDNN fusion is enabled here"),)
    if call is not switch and _in_another_branch(module, call, switch):
        return
    if name == _OPTIMIZE:
        yield Finding(
            call,
            "`optimize_for_inference` replaces operators that oneDNN fusion matches; "
            "use only `torch.jit.freeze`",
            related=related,
            remedy="Use only `torch.jit.freeze`",
        )
        return
    if call is switch and module.target.at_least(_DEPRECATED):
        message = f"TorchScript is deprecated since torch {_DEPRECATED}; `torch.compile` fuses without it"
        remedy = "Remove this call, and compile the model with `torch.compile`"
        yield Finding(call, message, severity=NOTE, remedy=remedy)
        return
    frozen = any(
        module.qualified(other.func) in (_FREEZE, _OPTIMIZE) for other in module.tree.nodes(cst.Call)
    )
    if name in _MAKERS and not frozen:
        yield Finding(
            call,
            "oneDNN fusion needs constant weights, but this model is not frozen; call `torch.jit.freeze`",
            related=related,
            remedy="Call `torch.jit.freeze` on the model",
        )
    elif name == _FREEZE:
        clock = _measured_cold(module, call)
        if clock is not None:
            yield Finding(
                call,
                "the timing includes the first calls, which profile and fuse the graph; "
                "call the model twice first",
                remedy="Call the model twice before the timing starts",
                related=((clock, "the timing starts here"),),
            )


def _switched_on(module: Module) -> cst.Call | None:
    """Return the call that switches the fusion on, if the file never switches it off."""
    switches = [call for call in module.tree.nodes(cst.Call) if module.qualified(call.func) == _ENABLE]
    values = [module.value(call.args[0].value).constant if call.args else None for call in switches]
    return switches[0] if switches and all(value is True for value in values) else None


def _in_another_branch(module: Module, call: cst.Call, switch: cst.Call) -> bool:
    """Return whether a condition sends the program either to the switch or to ``call``."""
    return not module.flow.may_follow(switch, call) and not module.flow.may_follow(call, switch)


def _measured_cold(module: Module, call: cst.Call) -> cst.Call | None:
    """Return the clock that is read before a frozen model is called for the first time in its function."""
    bound = _bound(module, call)
    if bound is None:
        return None
    function = module.function(call)
    runs = [use for use in module.uses(bound) if module.function(use) is function]
    called = [use for use in runs if isinstance(module.tree.parent(use), cst.Call)]
    others = [use for use in module.uses(bound) if use not in called]
    if not called or others:
        return None
    return read_between(module, call, min(called, key=module.tree.order.__getitem__))


def _bound(module: Module, call: cst.Call) -> Binding | None:
    """Return the name that a frozen model is given."""
    statement = module.tree.parent(call)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    bound = module.binding_of(statement.targets[0].target)
    return bound if bound is not None and bound.kind is BindingKind.ASSIGN and not bound.path else None


def read_between(module: Module, first: cst.CSTNode, last: cst.CSTNode) -> cst.Call | None:
    """Return the first reading of a clock between two places of one function."""
    order, function = module.tree.order, module.function(first)
    for call in module.tree.nodes(cst.Call):
        if order[first] < order[call] < order[last] and module.qualified(call.func) in CLOCKS:
            if module.function(call) is function:
                return call
    return None

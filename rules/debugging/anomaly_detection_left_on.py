"""TL801: autograd's anomaly detection is on while a model is trained."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import graded, remove_statement, safe, unset_argument
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.backpropagation import Backpropagation
from torchlint.semantics.contexts import is_test
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_name

from .switches import optional
from .workloads import training_in

_SETTING = frozenset({"torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"})
_AROUND = frozenset({"torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly"})


@rule(
    "TL801",
    "anomaly-detection-left-on",
    severity=WARNING,
    fix="safe",
    on=cst.Call,
    mentions=("detect_anomaly",),
    remedy="Remove it, or enable it with an option",
    lasting=True,
)
def anomaly_detection_left_on(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch.autograd.set_detect_anomaly(True)`, `detect_anomaly()` around training steps, and
    `Trainer(detect_anomaly=True)`. The rule ignores anomaly detection that an option, a failure or a
    debugging function turns on, that the file turns off again, and files that use `gradcheck`.

    ## Why is this bad?

    Anomaly detection stores a stack trace for every operation of the forward pass and checks every gradient
    of the backward pass for NaN, which synchronizes with the device each time. It is meant for finding an
    error, not for regular training.

    ## Example

    ```python
    torch.autograd.set_detect_anomaly(True)
    for images, labels in loader:
        criterion(model(images), labels).backward()
        optimizer.step()
    ```

    ## Use instead

    ```python
    for images, labels in loader:
        criterion(model(images), labels).backward()
        optimizer.step()
    ```

    To enable it on demand, use an option: `torch.autograd.set_detect_anomaly(args.debug)`.

    ## Fix safety

    The fix removes the statement or the argument. Results are the same, but a NaN gradient no longer ends the
    run. It is unsafe if the program catches errors around a backward pass, or asks whether anomaly detection
    is on. There is no fix for `with` blocks.

    ## References

    - [Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
    - [PyTorch performance tuning guide: disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis)
    """
    name = module.qualified(call.func)
    if is_test(module) or name is None:
        return
    if name in _SETTING or name in _AROUND:
        place = module.tree.parent(call)
        on = name in _AROUND or module.argument(call, "mode").constant is True
        if not on or optional(module, call) or _switched_off(module):
            return
        if isinstance(place, cst.WithItem):
            block = module.tree.parent(place)
            if isinstance(block, cst.With) and training_in(module, block.body) is not None:
                remedy = f"Remove `{last_name(call.func)}`, or enable it with an option"
                yield Finding(call, _MESSAGE, remedy=remedy)
        elif isinstance(place, cst.Expr) and name in _SETTING:
            yield Finding(call, _MESSAGE, fix=_fix(module, call))
    elif last_name(call.func) == "Trainer":
        argument = module.argument(call, "detect_anomaly")
        if argument.given and argument.constant is True and not optional(module, call):
            edits = unset_argument(module, call, "detect_anomaly")
            yield Finding(call, _MESSAGE, fix=safe(module, "Remove the argument", edits))


_OF_USER = ("builtins.KeyboardInterrupt", "builtins.SystemExit")
_MESSAGE = "anomaly detection traces every operation and checks every gradient for NaN, which is slow"


def _switched_off(module: Module) -> bool:
    """Return whether another call of the file takes it back, decides about it, or checks derivatives."""
    return any(
        (module.qualified(other.func) in _SETTING and module.argument(other, "mode").constant is not True)
        or last_name(other.func) in ("gradcheck", "gradgradcheck")
        for other in module.tree.nodes(cst.Call)
    )


def _fix(module: Module, call: cst.Call) -> Fix | None:
    edits = remove_statement(module, call)
    risk = None
    if _errors_are_caught(module):
        risk = "the program catches errors of the backward pass, and a NaN no longer raises one"
    elif module.mentions("is_anomaly_enabled"):
        risk = "the program asks whether anomaly detection is on"
    return graded(module, "Remove the call", edits, risk=risk)


def _errors_are_caught(module: Module) -> bool:
    """Return whether the error that a NaN raises may be what a file of the program waits for."""
    return any(
        any(_may_catch(each, handler) for handler in attempt.handlers)
        and Backpropagation.of(each).computes_gradients(attempt.body)
        for each in (module, *module.companions("except"))
        for attempt in each.tree.nodes(cst.Try)
    )


def _may_catch(module: Module, handler: cst.ExceptHandler) -> bool:
    """Return whether a handler is not just for a user who ends the run."""
    return handler.type is None or module.qualified(handler.type) not in _OF_USER

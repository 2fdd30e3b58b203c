"""TL408: binary cross entropy of a sigmoid, for which there is one stable function."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.comments import Topic, says
from torchlint.semantics.module import Module

from .losses import GivenTo, given_to
from .lossinputs import of_same_value, without_ending
from .outputs import logits_instead

_FUNCTION, _LAYER = "torch.nn.functional.binary_cross_entropy", "torch.nn.BCELoss"
_STABLE = {
    _FUNCTION: "torch.nn.functional.binary_cross_entropy_with_logits",
    _LAYER: "torch.nn.BCEWithLogitsLoss",
}


@rule(
    "TL408",
    "sigmoid-before-bce",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    mentions=("BCELoss|binary_cross_entropy", "igmoid"),
    lasting=True,
)
def sigmoid_before_bce(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `nn.BCELoss` and `F.binary_cross_entropy` applied to the output of a sigmoid, in any spelling,
    including a sigmoid that is the last operation or layer of a model in the file.

    ## Why is this bad?

    `BCEWithLogitsLoss` computes both in one function and stays accurate where the sigmoid rounds to 0 or 1.
    There, `BCELoss` clamps the logarithm and the gradient vanishes. Autograd saves only the logits, and not
    the output of the sigmoid as well. It is not faster: uncompiled, it launches a few kernels more. Under
    autocast to half precision `BCELoss` raises an error.

    ## Example

    ```python
    loss = F.binary_cross_entropy(torch.sigmoid(logits), target)
    ```

    ## Use instead

    ```python
    loss = F.binary_cross_entropy_with_logits(logits, target)
    ```

    ## Fix safety

    Unsafe: where the sigmoid saturates, the loss and its gradients change (to the correct values). A sigmoid
    inside the model is removed there, in another file too, where the files of the project show that its
    output only goes to the loss, to `argmax` or to queries of its shape. There is no fix where other code may
    need the probabilities, where one `BCELoss` is called in several places, or where the logits have been
    overwritten (`x = torch.sigmoid(x)`, if other code reads the result).

    ## References

    - [torch.nn.BCEWithLogitsLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html)
    - [Automatic mixed precision: prefer the form with logits](https://docs.pytorch.org/docs/stable/amp.html)
    """
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    if not isinstance(name, cst.Name) or not ("BCE" in name.value or "ross" in name.value):
        return
    found = given_to(module, call, _FUNCTION, _LAYER, ("sigmoid",))
    if found is None or _is_known(module, call):
        return
    stable = _STABLE[module.qualified(call.func) or ""]
    yield Finding(
        call,
        f"sigmoid before `{name.value}` is numerically unstable; use `{stable.rpartition('.')[2]}`",
        fix=_fix(module, call, found, stable),
        remedy=f"Remove the sigmoid, and pass the logits to `{stable.rpartition('.')[2]}`",
        related=((found.ending.node, "the sigmoid"),),
    )


def _is_known(module: Module, call: cst.Call) -> bool:
    """Return whether a comment there, or at the function around, speaks of the loss of logits."""
    function = module.function(call)
    return any(says(module, node, Topic.LOGITS) for node in (call, function) if node is not None)


def _fix(module: Module, call: cst.Call, found: GivenTo, stable: str) -> Fix | None:
    edits = logits_instead(module, found, _FUNCTION, _LAYER, _STABLE)
    if edits is not None:
        told = f"Remove the sigmoid from the model, and use `{stable.rpartition('.')[2]}`"
        return unsafe(module, told, *edits, risk=_SATURATED)
    if found.uses != 1:
        return None
    losses = of_same_value(module, found, _FUNCTION, ("sigmoid",))
    edits = without_ending(module, losses)
    spelling = spell(module, stable, call)
    if edits is None or spelling is None:
        return None
    named = [call] if found.call is not call else [each.call for each in losses]
    renamed = [replace(module, each.func, spelling.text) for each in named]
    told = f"Use `{spelling.text}`"
    return unsafe(module, told, *renamed, spelling.edits, *edits, risk=_SATURATED)


_SATURATED = "where the sigmoid saturates, the loss and its gradients change to the correct values"

"""TL408: binary cross entropy of a sigmoid, for which there is one stable function."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Fix
from torchlint.fixes import replace, spell, unsafe
from torchlint.rule import WARNING, Finding, rule
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
)
def sigmoid_before_bce(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `nn.BCELoss` and `F.binary_cross_entropy` that are given the output of a sigmoid, however it is
    spelt, also where it is the last step or layer of a model of the file.

    ## Why is this bad?

    Where the sigmoid rounds to 0 or 1, its logarithm is cut off and its gradient gone; `BCEWithLogitsLoss` is
    exact there. Autograd keeps the logits alone for it, and not the output of the sigmoid as well. It is no
    quicker: uncompiled it takes a few kernels more. Under autocast to half precision `BCELoss` raises.

    ## Example

    ```python
    loss = F.binary_cross_entropy(torch.sigmoid(logits), target)
    ```

    ## Use instead

    ```python
    loss = F.binary_cross_entropy_with_logits(logits, target)
    ```

    ## Fix safety

    Unsafe: where the sigmoid saturates, the loss and its gradients are others (the right ones). A sigmoid
    that belongs to the model is taken out there, in another file too, where the files of the project show all
    that is done with its output: it goes to the loss, or is asked for its shape or `argmax`. No fix is
    offered where others may want the output as it is, where one `BCELoss` is called in several places, or
    where the logits have another value by then (`x = torch.sigmoid(x)`, if something else reads the result).

    ## References

    - [torch.nn.BCEWithLogitsLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html)
    - [Automatic mixed precision: prefer the form with logits](https://docs.pytorch.org/docs/stable/amp.html)
    """
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    if not isinstance(name, cst.Name) or not ("BCE" in name.value or "ross" in name.value):
        return
    found = given_to(module, call, _FUNCTION, _LAYER, ("sigmoid",))
    if found is None:
        return
    stable = _STABLE[module.qualified(call.func) or ""]
    yield Finding(
        call,
        f"`{name.value}` of a sigmoid loses precision and keeps one more tensor; "
        f"`{stable.rpartition('.')[2]}` does neither",
        fix=_fix(module, call, found, stable),
        remedy=f"Take the sigmoid out, and give the logits to `{stable.rpartition('.')[2]}`",
        related=((found.ending.node, "the sigmoid"),),
    )


def _fix(module: Module, call: cst.Call, found: GivenTo, stable: str) -> Fix | None:
    edits = logits_instead(module, found, _FUNCTION, _LAYER, _STABLE)
    if edits is not None:
        told = f"Take the sigmoid out of the model, and use `{stable.rpartition('.')[2]}`"
        return unsafe(module, told, *edits)
    if found.uses != 1:
        return None
    losses = of_same_value(module, found, _FUNCTION, ("sigmoid",))
    edits = without_ending(module, losses)
    spelling = spell(module, stable, call)
    if edits is None or spelling is None:
        return None
    named = [call] if found.call is not call else [each.call for each in losses]
    renamed = [replace(module, each.func, spelling.text) for each in named]
    return unsafe(module, f"Use `{spelling.text}`", *renamed, spelling.edits, *edits)

"""TL407: a loss that takes logits is given what softmax made of them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import unsafe
from torchlint.rule import ERROR, WARNING, Finding, rule
from torchlint.semantics.module import Module

from .losses import given_to
from .lossinputs import of_same_value, without_ending
from .outputs import logits_instead

_FUNCTION, _LAYER = "torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"
_ENDINGS = ("softmax", "log_softmax")


@rule(
    "TL407",
    "softmax-before-cross-entropy",
    severity=ERROR,
    fix="unsafe",
    measured=False,
    on=cst.Call,
    mentions=("CrossEntropyLoss|cross_entropy", "oftmax"),
    remedy="Pass the logits to the loss",
)
def softmax_before_cross_entropy(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `nn.CrossEntropyLoss` and `F.cross_entropy` applied to probabilities: the output of `softmax`, in
    any spelling, including a softmax that is the last operation or layer of a model in the file. A
    `log_softmax` before the loss is a warning: the loss computes it again.

    ## Why is this bad?

    Cross entropy expects logits and applies `log_softmax` itself. Probabilities, which lie between 0 and 1,
    become a nearly uniform distribution: the loss cannot get close to zero, gradients are small, and the
    model learns slowly and poorly without any error.

    ## Example

    ```python
    loss = F.cross_entropy(F.softmax(logits, dim=1), target)
    ```

    ## Use instead

    ```python
    loss = F.cross_entropy(logits, target)
    ```

    ## Fix safety

    The fix removes the softmax from the input of the loss. It is unsafe, because it changes what the model
    learns. A softmax inside the model is removed there, in another file too, where the files of the project
    show that its output only goes to the loss, to `argmax` or to queries of its shape. There is no fix where
    other code may need the probabilities, or where the logits have been overwritten
    (`x = F.softmax(x, dim=1)`, if other code reads the result).

    ## References

    - [torch.nn.CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html)
    """
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    if not isinstance(name, cst.Name) or "ross" not in name.value:
        return
    found = given_to(module, call, _FUNCTION, _LAYER, _ENDINGS)
    if found is None:
        return
    twice = found.ending.name == "log_softmax"
    loss = name.value
    message = (
        f"`{loss}` applies `log_softmax` again to the output of `log_softmax`"
        if twice
        else f"`{loss}` expects logits but gets the output of `softmax`, so softmax is applied twice"
    )
    edits = without_ending(module, of_same_value(module, found, _FUNCTION, _ENDINGS))
    told = "Pass the logits to the loss"
    if edits is None:
        edits = logits_instead(module, found, _FUNCTION, _LAYER, {})
        told = f"Remove the `{found.ending.name}` from the model"
    yield Finding(
        call,
        message,
        severity=WARNING if twice else None,
        fix=unsafe(module, told, *edits, risk=_LEARNS) if edits is not None else None,
        remedy="Use `nll_loss`, or pass the logits" if twice else None,
        related=((found.ending.node, f"`{found.ending.name}`"),),
    )


_LEARNS = "the model learns differently, from gradients that the second softmax no longer flattens"

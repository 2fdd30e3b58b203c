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
    remedy="Give the logits to the loss",
)
def softmax_before_cross_entropy(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `nn.CrossEntropyLoss` and `F.cross_entropy` that are given probabilities: the output of `softmax`,
    however it is spelt, also where it is the last step or layer of a model of the file. A `log_softmax` in
    front of them is a warning: the loss computes it again.

    ## Why is this bad?

    Cross entropy takes logits and applies `log_softmax` itself. Of probabilities, which lie between 0 and 1,
    it makes a nearly uniform distribution: the loss cannot come near zero, gradients are small, and the model
    learns slowly and badly without any error.

    ## Example

    ```python
    loss = F.cross_entropy(F.softmax(logits, dim=1), target)
    ```

    ## Use instead

    ```python
    loss = F.cross_entropy(logits, target)
    ```

    ## Fix safety

    The fix takes the softmax out of what the loss is given. It is unsafe, since it changes what is learnt.
    A softmax that belongs to the model is taken out there, in another file too, where the files of the
    project show all that is done with its output: it goes to the loss, or is asked for its shape or `argmax`.
    No fix is offered where others may want the output as it is, or where the logits have another value by
    then (`x = F.softmax(x, dim=1)`, if something else reads the result).

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
        f"`{loss}` computes `log_softmax`, and what it is given has been through it already"
        if twice
        else f"`{loss}` takes logits and is given what `softmax` made of them"
    )
    edits = without_ending(module, of_same_value(module, found, _FUNCTION, _ENDINGS))
    told = "Give the logits to the loss"
    if edits is None:
        edits = logits_instead(module, found, _FUNCTION, _LAYER, {})
        told = f"Take the `{found.ending.name}` out of the model"
    yield Finding(
        call,
        message,
        severity=WARNING if twice else None,
        fix=unsafe(module, told, *edits) if edits is not None else None,
        related=((found.ending.node, f"`{found.ending.name}`"),),
    )

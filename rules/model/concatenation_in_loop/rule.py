"""TL411: a tensor that grows by concatenation in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.diagnostics import Frequency, Impact
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.frequency import frequency
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_words

from .growth import CONCATENATIONS, collected, grown


@rule(
    "TL411",
    "concatenation-in-loop",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: last_words(CONCATENATIONS)},
    mentions=("torch", "cat|hstack|vstack|dstack|column_stack|row_stack", "for |while "),
)
def concatenation_in_loop(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds tensors that a loop extends with `t = torch.cat([t, x])`, in any spelling, in variables, attributes
    and items, itself or through a method that it calls. The rule ignores loops that read the tensor, where a
    list does not help (token-by-token decoding, caches, sliding windows), and loops of a few iterations.

    ## Why is this bad?

    Every iteration copies everything collected so far, so the work grows with the square of the number of
    iterations. Each result is an allocation of a different size, and autograd keeps a node for every copy.

    ## Example

    ```python
    features = torch.empty(0, 512, device=device)
    for images in loader:
        features = torch.cat([features, model(images.to(device))])
    ```

    ## Use instead

    ```python
    features = []
    for images in loader:
        features.append(model(images.to(device)))
    features = torch.cat(features)
    ```

    ## Fix safety

    The fix collects the pieces in a new list and concatenates them after the loop. It is offered where the
    loop neither reads the tensor nor queries its size, where a single function holds it, and where no piece
    is a view of a tensor that is modified. It is unsafe: an exception in the loop leaves the tensor as it was
    before the loop, and pieces whose shapes do not match only fail at the end.

    ## References

    - [torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
    """
    growth = grown(module, call)
    if growth is None:
        return
    yield Finding(
        call,
        f"every iteration copies all of `{module.source(growth.target)}` to append to it; "
        f"call `{module.source(call.func)}` once after the loop",
        fix=collected(module, growth),
        remedy=f"Collect the pieces in a list, and call `{module.source(call.func)}` once after the loop",
        related=((growth.loops[0], "it grows in this loop"),),
        impact=_at_stake(module, call),
    )


def _at_stake(module: Module, call: cst.Call) -> Impact:
    """How much there is to gain: little beside a decoding step, which adds one element to a sequence."""
    return Impact.LOW if frequency(module, call) is Frequency.TOKEN else Impact.HIGH

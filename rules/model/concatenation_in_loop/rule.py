"""TL411: a tensor that grows by concatenation in a loop."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
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

    Finds tensors that a loop makes longer by `t = torch.cat([t, x])`, in any spelling, in variables,
    attributes and items. Loops that read what the tensor holds are left alone, since a list does not help
    there: decoding token by token, caches, windows that slide. So are loops of a few rounds.

    ## Why is this bad?

    Every round copies all that was there before: the work grows with the square of the number of rounds, each
    result is an allocation of another size, and autograd keeps a node for every copy.

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

    The fix collects the pieces in a list of its own and joins them after the loop. It is offered where the
    loop neither reads the tensor nor asks for its size, where one function holds it, and where no piece is a
    view of something that is written to. It is unsafe: an error in the loop leaves the tensor as it was
    before the loop, and pieces that do not fit together are found out only at the end.

    ## References

    - [torch.cat](https://docs.pytorch.org/docs/stable/generated/torch.cat.html)
    """
    growth = grown(module, call)
    if growth is None:
        return
    yield Finding(
        call,
        f"`{module.source(growth.target)}` is copied as a whole in every round to add to it; collect the "
        f"pieces in a list and call `{module.source(call.func)}` once after the loop",
        fix=collected(module, growth),
        remedy=f"Collect the pieces in a list, and call `{module.source(call.func)}` once after the loop",
        related=((growth.loops[0], "the loop that it grows in"),),
    )

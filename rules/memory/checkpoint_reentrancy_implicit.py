"""TL606: activation checkpointing that relies on the default of `use_reentrant`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import set_argument, unsafe
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.spellings import last_words

# Since which release each function takes ``use_reentrant``; read in the wheels of 1.10 to 2.15.
_SINCE = {
    "torch.utils.checkpoint.checkpoint": "1.11",
    "torch.utils.checkpoint.checkpoint_sequential": "2.0",
}


@rule(
    "TL606",
    "checkpoint-reentrancy-implicit",
    severity=WARNING,
    fix="unsafe",
    on=cst.Call,
    named={cst.Call: last_words(_SINCE)},
    mentions=("torch", "checkpoint", "utils.checkpoint|utils import"),
)
def checkpoint_reentrancy_implicit(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds calls of `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` without `use_reentrant`.
    Calls that may pass it in `**kwargs` are ignored.

    ## Why is this bad?

    There are two implementations, and the default is the older, reentrant one. In the backward pass it
    recomputes the whole function, while the other stops as soon as all saved activations are recomputed. It
    gives parameters no gradient unless an input requires one, and it supports neither `torch.autograd.grad`
    nor keyword arguments of the function. Since torch 2.1 (2.2 for `checkpoint_sequential`) each call without
    `use_reentrant` warns that a later release will raise an exception.

    ## Example

    ```python
    from torch.utils.checkpoint import checkpoint

    hidden = checkpoint(self.block, hidden, mask)
    ```

    ## Use instead

    ```python
    from torch.utils.checkpoint import checkpoint

    hidden = checkpoint(self.block, hidden, mask, use_reentrant=False)
    ```

    Pass `use_reentrant=True` to keep the current behavior.

    ## Fix safety

    Unsafe: gradients are the same, but hooks and side effects of the function may run a different number of
    times, parameters that received no gradient before may now receive one, and recomputation stops early, so
    that side effects at the end of the function may not be repeated. There is no fix if the project supports
    a release without the argument (1.10, or 1.13 for `checkpoint_sequential`).

    ## References

    - [torch.utils.checkpoint](https://docs.pytorch.org/docs/stable/checkpoint.html)
    """
    name = module.qualified(call.func) or ""
    since = _SINCE.get(name)
    if since is None or not module.target.admits(since):
        return
    passed = module.argument(call, "use_reentrant")
    if passed.unknown or (passed.given and passed.constant is not None):
        return
    edits = set_argument(module, call, "use_reentrant", "False") if module.target.at_least(since) else None
    yield Finding(
        call,
        f"`{name.rpartition('.')[2]}` without `use_reentrant` is deprecated and uses the slower reentrant "
        "variant",
        fix=unsafe(
            module,
            "Pass `use_reentrant=False`",
            edits,
            risk="hooks and side effects of the function may run another number of times",
        ),
        remedy=f"Pass `use_reentrant=False`, which requires torch {since}",
    )

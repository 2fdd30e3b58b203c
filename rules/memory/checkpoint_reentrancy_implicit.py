"""TL606: checkpointing that leaves open which of its two implementations is meant."""

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

    Finds calls of `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` that do not pass
    `use_reentrant`. Calls that may pass it in `**kwargs` are left alone.

    ## Why is this bad?

    There are two implementations, and without the argument the older one is taken: the reentrant one. It
    runs the whole function again in the backward pass, where the other stops at the last tensor that the
    backward needs. It gives the parameters of the function no gradient unless one of the inputs requires
    one, and it fails with `torch.autograd.grad` and with keyword arguments for the function. Since release
    2.1 (`checkpoint_sequential`: 2.2) each call warns that a later release will raise an exception instead.

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

    `use_reentrant=True` keeps what the call does now.

    ## Fix safety

    Unsafe: the gradients are the same, but hooks and side effects of the function may run another number of
    times, what it records may not be complete, and parameters that got no gradient may now get one. There is
    no fix where a release without the argument (1.10; for `checkpoint_sequential`: 1.13) may run the program.

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
        f"`{name.rpartition('.')[2]}` without `use_reentrant` takes the reentrant implementation, which runs "
        "all of the function again and which a later release will not choose by itself; "
        "pass `use_reentrant=False`",
        fix=unsafe(module, "Pass `use_reentrant=False`", edits),
        remedy=f"Pass `use_reentrant=False`, which needs torch {since}",
    )

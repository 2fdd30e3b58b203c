"""TL514: TorchDynamo called by the name that it had before `torch.compile`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.fixes import graded
from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.releasechecks import ReleaseChecks

from .dynamo import came_with_torch, compiled_instead, is_legacy


@rule(
    "TL514",
    "legacy-dynamo",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=cst.Call,
    mentions=("dynamo", "optimize"),
    named={cst.Call: ("optimize", "optimize_assert")},
    remedy="Compile the model or function with `torch.compile`",
)
def legacy_dynamo(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does

    Finds `torch._dynamo.optimize(…)`, `torch._dynamo.optimize_assert(…)`, and their equivalents in
    `torchdynamo`, the package that preceded them, if the program requires torch 2.0 or newer.

    ## Why is this bad?

    These are the entry points of the prototype. `torch.compile` replaced them in torch 2.0: it is public and
    supports the modes and options of the backend, while the private functions may change in any release. The
    `torchdynamo` package is no longer developed.

    ## Example

    ```python
    import torch._dynamo as dynamo

    model = dynamo.optimize("inductor", nopython=True)(model)
    ```

    ## Use instead

    ```python
    model = torch.compile(model, backend="inductor", fullgraph=True)
    ```

    ## Fix safety

    Safe: `torch.compile` calls the same function with the same backend. It is unsafe where the file asks the
    `torchdynamo` package for a backend other than `"inductor"`, which torch may not have. An import that
    becomes unused is removed. There is no fix for `with torch._dynamo.optimize(…):`, which compiles what is
    called inside the block, for arguments that `torch.compile` does not accept, and for calls that span
    several lines.

    ## References

    - [torch.compile](https://docs.pytorch.org/docs/stable/generated/torch.compile.html)
    - [TorchDynamo has moved](https://github.com/pytorch/torchdynamo)
    """
    if not is_legacy(module, call) or ReleaseChecks.of(module).over(call):
        return
    inside = came_with_torch(module, call)
    # Whoever has `torch._dynamo` has `torch.compile`.
    if not (inside or module.target.at_least("2.0")):
        return
    edits = compiled_instead(module, call)
    sure = inside or _asks_for_inductor(module)
    risk = None if sure else "torch may not have the backend that the `torchdynamo` package is asked for"
    yield Finding(
        call,
        f"`{module.source(call.func)}` is a prototype API that `torch.compile` replaced in torch 2.0",
        fix=graded(module, "Use `torch.compile`", edits, risk=risk),
    )


def _asks_for_inductor(module: Module) -> bool:
    """Return whether every legacy call of the file names the backend that torch has under this name, too."""
    calls = [call for call in module.tree.nodes(cst.Call) if is_legacy(module, call)]
    return all(not call.args or module.value(call.args[0].value).constant == "inductor" for call in calls)

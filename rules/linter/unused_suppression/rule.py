from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module
from torchlint.semantics.permissions import permissions

from .waits import never_waits


@rule(
    "TL002",
    "unused-suppression",
    severity=WARNING,
    fix="safe",
    measured=False,
    on=(cst.With, cst.FunctionDef),
    remedy="Remove the context manager",
)
def unused_suppression(node: cst.With | cst.FunctionDef, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds suppression comments, or single codes in them, that suppress nothing, and `enable` comments without
    a matching `disable`.

    Only rules that are enabled and finished checking the file count. Codes of other tools and a bare `# noqa`
    are ignored, since they may silence other tools.

    [Contexts in which the host may wait](../configuration.md#waits-that-are-allowed) are reported if nothing
    inside them can: no call of code that torchlint does not know, no copy, and no tensor that is read,
    compared or used as an index.

    ## Why is this bad?
    A suppression without a finding is left over from code that has changed. It would hide the next finding on
    that line.

    ## Example
    ```python
    total = loss.detach()  # noqa: TL202
    ```

    ## Use instead
    ```python
    total = loss.detach()
    ```

    ## Fix safety
    Safe: the fix removes the unused codes, and the whole comment if nothing else is in it. Codes of other
    tools, other directives and explanations in the comment stay. There is no fix for contexts.

    ## References
    - [Ruff: unused-noqa (RUF100)](https://docs.astral.sh/ruff/rules/unused-noqa/)
    """
    for context in permissions(module, node):
        if never_waits(module, node.body):
            remedy = f"Remove the {'context manager' if isinstance(node, cst.With) else 'decorator'}"
            message = f"nothing waits for the device inside `{_named(module, context)}`"
            yield Finding(context, message, remedy=remedy)


def _named(module: Module, context: cst.BaseExpression) -> str:
    return module.source(context.func if isinstance(context, cst.Call) else context)

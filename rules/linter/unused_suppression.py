from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module


@rule("TL002", "unused-suppression", severity=WARNING, fix="safe", measured=False, on=())
def unused_suppression(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds suppression comments, or single codes in them, that suppress nothing, and `enable` comments without
    a matching `disable`.

    Only rules that are enabled and finished checking the file count. Codes of other tools and a bare `# noqa`
    are ignored, since they may silence other tools.

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
    tools, other directives and explanations in the comment stay.

    ## References
    - [Ruff: unused-noqa (RUF100)](https://docs.astral.sh/ruff/rules/unused-noqa/)
    """
    yield from ()

from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module


@rule("TL002", "unused-suppression", severity=WARNING, fix="safe", measured=False, on=())
def unused_suppression(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds suppression comments, or single codes in them, that suppress nothing, and `enable` comments that
    end no `disable`.

    Only rules that are enabled and ran to their end are judged. Codes of other tools and a bare `# noqa` are
    never judged: who knows what else they silence.

    ## Why is this bad?
    A suppression without a finding is left over from code that has changed. It hides the next finding on that
    line, which nobody has decided to accept.

    ## Example
    ```python
    total = loss.detach()  # noqa: TL202
    ```

    ## Use instead
    ```python
    total = loss.detach()
    ```

    ## Fix safety
    The fix is safe: it removes the unused codes, and the comment if nothing else is in it. Codes of other
    tools, other directives and reasons given in words stay.

    ## References
    - [Ruff: unused-noqa (RUF100)](https://docs.astral.sh/ruff/rules/unused-noqa/)
    """
    yield from ()

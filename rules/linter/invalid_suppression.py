from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module


@rule("TL003", "invalid-suppression", severity=WARNING, fix="none", measured=False, on=())
def invalid_suppression(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds suppression comments that cannot be obeyed: a code or name that no rule has, a kind of suppression
    that does not exist, or a `# torchlint:` comment without a list of rules in brackets.

    In a `# noqa:` list, which other tools read too, only codes that begin with `TL` and near misses of rule
    names are judged.

    ## Why is this bad?
    The comment looks as if it silenced something, and does not. Where it was meant to, the finding is still
    reported; where the code was mistyped, it may hide a finding of another rule some day.

    ## Example
    ```python
    total += loss.item()  # torchlint: ignore[TL2O2]
    ```

    ## Use instead
    ```python
    total += loss.item()  # torchlint: ignore[TL202]
    ```

    ## Fix safety
    There is no fix; the message names the rule that is spelt most like what is written.

    ## References
    - [Ruff: invalid-rule-code (RUF102)](https://docs.astral.sh/ruff/rules/invalid-rule-code/)
    """
    yield from ()

from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module


@rule("TL003", "invalid-suppression", severity=WARNING, fix="none", measured=False, on=())
def invalid_suppression(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Finds suppression comments that have no effect: an unknown rule code or name, an unknown directive, or a
    `# torchlint:` comment without a list of rules in brackets.

    In a `# noqa:` list, which other tools read too, only codes that begin with `TL` and misspelled rule names
    are checked. `# noqa TL202`, without a colon, suppresses every rule, and is reported where it suppresses
    anything.

    With [`require-suppression-reason`](../configuration.md#suppression-comments), suppressions that give no
    reason behind their list of rules are reported as well, and so is a bare `# noqa` that suppresses
    something.

    ## Why is this bad?
    The comment looks as if it silences a finding, but does not. If the mistyped code is that of another rule,
    it may hide a finding of that rule later. Without a reason nobody can tell later whether a suppression is
    still needed.

    ## Example
    ```python
    total += loss.item()  # torchlint: ignore[TL2O2]
    ```

    ## Use instead
    ```python
    total += loss.item()  # torchlint: ignore[TL202]
    ```

    ## Fix safety
    There is no fix; the message suggests the rule with the most similar code or name.

    ## References
    - [Ruff: invalid-rule-code (RUF102)](https://docs.astral.sh/ruff/rules/invalid-rule-code/)
    """
    yield from ()

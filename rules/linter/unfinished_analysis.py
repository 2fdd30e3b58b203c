from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module


@rule("TL004", "unfinished-analysis", severity=NOTE, fix="none", on=())
def unfinished_analysis(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Says of a file which rules were not checked to their end, since that would take more steps than the file is
    worth: two million, and twenty for each of its characters, of which one rule may take half of what is left.
    Usual programs take about one for each character.

    Steps are counted, and no clock is asked: the same file gives the same result on every machine.

    ## Why is this bad?
    What those rules would find in the file is not reported, and no suppression comment for them is judged.
    Only machine-written files are known to come this far. The note does not fail a run, unless `fail-on` is
    `note`.

    ## Example
    A file with tens of thousands of statements in one loop, each of which uses what all others assign.

    ## Use instead
    Several functions, or files; or `exclude` for what no person wrote.

    ## Fix safety
    There is no fix.

    ## References
    - [Settings: exclude](../settings.md)
    """
    yield from ()

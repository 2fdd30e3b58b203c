from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module


@rule("TL004", "unfinished-analysis", severity=NOTE, fix="none", measured=False, on=())
def unfinished_analysis(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Says of a file which rules were not checked to their end, for one of two reasons. Either that would take
    more steps than are allowed, two million and three for each character of the file, of which one rule may
    take half of what is left; programs that people write take less than one for each character. Or the file
    has more than 270,000 names, numbers, strings and opening brackets, and is not parsed at all, since that
    would take too much memory.

    Steps are counted, and no clock is asked: the same file gives the same result on every machine.

    ## Why is this bad?
    What those rules would find in the file is not reported, and no suppression comment for them is judged.
    Only files that a program wrote are known to come this far. The note does not fail a run, unless
    `fail-on` is `note`.

    ## Example
    A file with tens of thousands of statements in one loop, each of which uses what all others assign.

    ## Use instead
    Several functions, or files; or `exclude` for what a program wrote.

    ## Fix safety
    There is no fix.

    ## References
    - [Configuration](../configuration.md)
    """
    yield from ()

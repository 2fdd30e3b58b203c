from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import NOTE, Finding, rule
from torchlint.semantics.module import Module


@rule("TL004", "unfinished-analysis", severity=NOTE, fix="none", measured=False, on=())
def unfinished_analysis(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Lists the rules that did not finish checking a file. There are two reasons. Either the analysis exceeds
    its limit of two million steps plus three for each character of the file, of which one rule may use at
    most half of what is left; ordinary programs need less than one step per character. Or the file has more
    than 270,000 names, numbers, strings and opening brackets, and is not parsed at all, because that would
    use too much memory.

    The limit counts steps and not time, so that the same file gives the same result on every machine.

    ## Why is this bad?
    Findings of those rules in the file are not reported, and suppression comments for them are not checked.
    Only generated files are known to reach the limit. The note does not fail a run unless `fail-on` is
    `note`.

    ## Example
    A file with tens of thousands of statements in one loop, each of which uses variables that all others
    assign.

    ## Use instead
    Split the code into several functions or files, or `exclude` generated files.

    ## Fix safety
    There is no fix.

    ## References
    - [Configuration](../configuration.md)
    """
    yield from ()

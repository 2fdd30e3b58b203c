from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module


@rule("TL001", "syntax-error", severity=ERROR, fix="none", measured=False, on=())
def syntax_error(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Reports files that torchlint cannot check: files with a syntax error, bytes that are invalid in the
    declared encoding, NUL bytes, missing or unreadable files, and files whose fixes could not be written
    because they are read-only or changed in the meantime.

    Syntax newer than the Python version that runs torchlint is not an error. Syntax that torchlint's own
    parser does not support yet is reported as such.

    ## Why is this bad?
    No other rule can check the file until it is repaired. Other files are checked as usual. The rule cannot
    be disabled or suppressed.

    ## Example
    ```python
    loss = criterion(model(images), "labels"
    ```

    ## Use instead
    ```python
    loss = criterion(model(images), "labels")
    ```

    ## Fix safety
    There is no fix.

    ## References
    - [Encoding declarations of Python](https://docs.python.org/3/reference/lexical_analysis.html)
    """
    yield from ()

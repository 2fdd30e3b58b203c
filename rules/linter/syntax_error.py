from __future__ import annotations

from collections.abc import Iterator

from torchlint.rule import ERROR, Finding, rule
from torchlint.semantics.module import Module


@rule("TL001", "syntax-error", severity=ERROR, fix="none", measured=False, on=())
def syntax_error(node: object, module: Module) -> Iterator[Finding]:
    """## What it does
    Reports files that torchlint cannot treat: programs with a syntax error, bytes that are not text in the
    encoding that the file declares, NUL bytes, files that are missing or may not be read, and files whose
    fixes could not be written because they are read-only or changed in the meantime.

    Syntax that is newer than the Python that runs torchlint is no error. Syntax that torchlint's own parser
    does not know yet is reported as that.

    ## Why is this bad?
    Nothing else can be said of such a file: what is wrong with it stays hidden until it is repaired. Other
    files are checked as usual. The rule cannot be switched off and no comment silences it.

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

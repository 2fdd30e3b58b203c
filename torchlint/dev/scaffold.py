"""Start a new rule: the file with its declaration and page, and the fixtures that hold it to its word."""

from __future__ import annotations

import re
from pathlib import Path

from torchlint.dev import ROOT
from torchlint.registry import catalogue

_RULE = '''"""{code}: {name}."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import WARNING, Finding, rule
from torchlint.semantics.module import Module


@rule(
    "{code}",
    "{name}",
    severity=WARNING,
    fix="none",
    on=cst.Call,
    mentions=("torch",),
    remedy="Call `torch.better`",
)
def {function}(call: cst.Call, module: Module) -> Iterator[Finding]:
    """
    ## What it does
    Finds calls of `torch.example`.

    ## Why is this bad?
    Say what it costs, and where the time or the memory goes.

    ## Example
    ```python
    torch.example(x)
    ```

    ## Use instead
    ```python
    torch.better(x)
    ```

    ## Fix safety
    There is no fix.

    ## References
    - Where the advice comes from
    """
    if module.qualified(call.func) == "torch.example":
        yield Finding(call, "`torch.example` does not exist")
'''

_BAD = """import torch

torch.example(1)  # expect: {code}
"""

_FOLLOWED = """import torch

torch.better(1)
"""

_GOOD = """import torch

torch.better(1)
"""


def new_rule(code: str, name: str, family: str, root: Path = ROOT) -> list[Path]:
    """Write the rule ``code`` and its fixtures below ``root``; returns the files made.

    The files pass the rule tests as they are, with a pattern that nobody writes: replace the body, the page
    and the fixtures.

    Raises:
        ValueError: the code or the name is malformed or taken, or the family is not a Python name.
    """
    if not re.fullmatch(r"TL[0-9]{3}", code):
        raise ValueError(f"`{code}` is not a code: TL and three digits")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"`{name}` is not a rule name: lower-case words joined by hyphens")
    if not family.isidentifier() or family != family.lower():
        raise ValueError(f"`{family}` is not the name of a folder under rules/")
    for rule in catalogue().values():
        if rule.code == code or rule.name == name:
            raise ValueError(f"{rule.code} ({rule.name}) exists already")
    function = name.replace("-", "_")
    package = root / "rules" / family
    fixtures = root / "fixtures" / f"{code}_{function}"
    files = {
        package / f"{function}.py": _RULE.format(code=code, name=name, function=function),
        fixtures / "bad.py": _BAD.format(code=code),
        fixtures / "bad.followed.py": _FOLLOWED,
        fixtures / "good.py": _GOOD.format(code=code),
    }
    if not (package / "__init__.py").exists():
        files[package / "__init__.py"] = f'"""{family.replace("_", " ").capitalize()}."""\n'
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return sorted(files)

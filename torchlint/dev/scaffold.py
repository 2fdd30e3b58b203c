"""Start a new rule: its module, its fixtures, and its line in the changelog."""

from __future__ import annotations

import re
from pathlib import Path

from torchlint.dev import ROOT, codes
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
    measured=False,
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

_FOLDER = '''"""`{name}` ({code}): the rule, and what only it asks of the model."""
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


def new_rule(code: str, name: str, family: str, root: Path = ROOT, *, folder: bool = False) -> list[Path]:
    """Write the rule ``code`` and its fixtures below ``root``; returns the files written.

    The files pass the rule tests as they are, with a pattern that nobody writes: replace the body, the page
    and the fixtures. With ``folder``, the rule is the ``rule.py`` of a folder of its own.

    Raises:
        ValueError: the code or the name is malformed or was ever taken, or the family is not a Python name.
    """
    if not re.fullmatch(r"TL[0-9]{3}", code):
        raise ValueError(f"`{code}` is not a code: TL and three digits")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"`{name}` is not a rule name: lower-case words joined by hyphens")
    if not family.isidentifier() or family != family.lower():
        raise ValueError(f"`{family}` is not the name of a folder under rules/")
    taken = {other: promise.name for other, promise in codes.frozen().items()}
    taken.update((rule.code, rule.name) for rule in catalogue().values())
    for other, its_name in taken.items():
        if other == code or its_name == name:
            raise ValueError(f"{other} ({its_name}) exists already")
    function = name.replace("-", "_")
    package = root / "rules" / family
    module = package / f"{function}.py"
    if folder:
        module = package / function / "rule.py"
    fixtures = root / "fixtures" / f"{code}_{function}"
    changelog = root / "CHANGELOG.md"
    files = {
        module: _RULE.format(code=code, name=name, function=function),
        fixtures / "bad.py": _BAD.format(code=code),
        fixtures / "bad.followed.py": _FOLLOWED,
        fixtures / "good.py": _GOOD,
        changelog: _with_line(changelog.read_text(encoding="utf-8"), f"- New rule `{name}` ({code})."),
    }
    if folder:
        files[module.with_name("__init__.py")] = _FOLDER.format(code=code, name=name)
    if not (package / "__init__.py").exists():
        files[package / "__init__.py"] = f'"""{family.replace("_", " ").capitalize()}."""\n'
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return sorted(files)


def _with_line(changelog: str, line: str) -> str:
    """Return a changelog with another line under "Added" of its unreleased version,
    which is begun if need be.
    """
    head, *versions = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    if not versions or "unreleased" not in versions[0].partition("\n")[0].lower():
        versions.insert(0, "## [Unreleased]\n\n")
    if "\n### Added\n" not in versions[0]:
        title, _, rest = versions[0].partition("\n\n")
        versions[0] = f"{title}\n\n### Added\n\n{rest}"
    before, added, rest = versions[0].partition("\n### Added\n\n")
    separator = "" if rest.startswith("- ") else "\n"
    versions[0] = f"{before}{added}{line}\n{separator}{rest}"
    return "".join([head, *versions])

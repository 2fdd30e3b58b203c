"""The frozen list of codes: what users were promised of every code that torchlint has had.

Lines are only ever added. What a rule says of itself and what the list says of its code must agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from torchlint import toml
from torchlint.dev import ROOT
from torchlint.registry import catalogue
from torchlint.rule import Rule

PATH = ROOT / "torchlint" / "dev" / "codes.toml"


class Promise(NamedTuple):
    """What stays as it is for as long as a code exists: suppressions, configs and CI jobs rely on it."""

    name: str
    severity: str
    fix: str

    @classmethod
    def of(cls, rule: Rule) -> Promise:
        """Return what a rule promises as it is declared now."""
        return cls(rule.name, rule.severity.value, rule.fix)


class BrokenPromiseError(Exception):
    """A rule has another name, severity or fix than its code has in the list, or is gone."""


def frozen() -> Mapping[str, Promise]:
    """Return the codes of the list."""
    return {code: Promise(**line) for code, line in toml.loads(_text()).items()}


def generate() -> Mapping[Path, str]:
    """Return the list with a line for each new rule.

    Raises:
        BrokenPromiseError: a line would have to be changed or removed.
    """
    promised = frozen()
    rules = {code: Promise.of(rule) for code, rule in catalogue().items()}
    broken = [_broken(code, line, rules.get(code)) for code, line in promised.items()]
    if any(broken):
        hint = f"A released code keeps its meaning; delete its line from {_name()} only if no release has it"
        raise BrokenPromiseError("\n".join([*filter(None, broken), hint]))
    lines = _text().splitlines()
    for code in sorted(rules.keys() - promised.keys()):
        line = ", ".join(f'{field} = "{value}"' for field, value in rules[code]._asdict().items())
        behind = (at for at, other in enumerate(lines) if re.match(r"[A-Z]+[0-9]+ =", other) and other > code)
        lines.insert(next(behind, len(lines)), f"{code} = {{ {line} }}")
    return {PATH: "\n".join(lines) + "\n"}


def _broken(code: str, promised: Promise, declared: Promise | None) -> str:
    """Return what a rule no longer keeps; empty if it keeps its promise."""
    if declared is None:
        return f"{code} ({promised.name}) is in {_name()}, but there is no such rule"
    if declared != promised:
        return f"{code} is {_told(promised)} in {_name()}, but {_told(declared)} in its rule"
    return ""


def _told(promise: Promise) -> str:
    return f"`{promise.name}` (severity {promise.severity}, fix {promise.fix})"


def _name() -> str:
    return PATH.relative_to(ROOT).as_posix() if PATH.is_relative_to(ROOT) else PATH.name


def _text() -> str:
    return PATH.read_text(encoding="utf-8")

"""The documentation pages of the rules, from their docstrings, and the table that lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torchlint import impact
from torchlint.dev import ROOT, measured
from torchlint.effects import Effect
from torchlint.registry import catalogue, families
from torchlint.render.page import ADVICE
from torchlint.rule import Rule

DIRECTORY = ROOT / "docs" / "rules"

_FIXES = {
    "safe": "A safe fix exists: `--fix` applies it.",
    "unsafe": "An unsafe fix exists: `--fix --unsafe-fixes` applies it.",
    "none": "There is no automatic fix.",
}


def generate() -> Mapping[Path, str]:
    """Return the text of every page under ``docs/rules/``."""
    cases = measured.load("bench")
    written = {
        path_of(rule): _page(rule, measured.of(cases, rule.code)) + measured.section(cases, rule.code)
        for rule in catalogue().values()
    }
    return {**written, DIRECTORY / "README.md": f"# Rules\n\n{table('')}"}


def orphans() -> Iterator[Path]:
    """Yield the pages of rules that no longer exist."""
    known = {path_of(rule) for rule in catalogue().values()} | {DIRECTORY / "README.md"}
    yield from sorted(path for path in DIRECTORY.glob("*.md") if path not in known)


def path_of(rule: Rule) -> Path:
    """Return where the page of a rule lies."""
    return DIRECTORY / f"{rule.code}.md"


def table(prefix: str) -> str:
    """Return all rules, one table a family; the links to the pages start with ``prefix``."""
    parts = []
    for family in families():
        rows = "".join(
            f"| [{rule.code}]({prefix}{rule.code}.md) | {rule.name} | {_severity(rule)} | {rule.fix} "
            f"| {_cell(rule.summary)} |\n"
            for rule in family.rules
        )
        parts.append(
            f"**{family.title}**\n\n| code | name | severity | fix | finds |\n|---|---|---|---|---|\n{rows}"
        )
    return "\n".join(parts)


def _page(rule: Rule, found: Sequence[Effect]) -> str:
    default = "Off by default: select it to use it." if rule.opt_in else "On by default."
    advice = f" {ADVICE}" if rule.advice else ""
    remedy = f"Manual fix: {rule.remedy}.\n\n" if rule.remedy is not None else ""
    return (
        f"# {rule.name} ({rule.code})\n\n"
        f"Severity: {rule.severity.value}. {default} {_FIXES[rule.fix]}\n\n"
        f"{impact.explained(rule, found)}{advice}\n\n{remedy}"
        f"{rule.page.strip()}\n"
    )


def _severity(rule: Rule) -> str:
    return f"{rule.severity.value}, opt-in" if rule.opt_in else rule.severity.value


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

"""The generated parts of docs/impact.md: the table of the impacts, and what each rule is worth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from torchlint import impact
from torchlint.dev import ROOT, measured
from torchlint.diagnostics import Frequency
from torchlint.impact import Worth
from torchlint.registry import catalogue
from torchlint.rule import Rule

PAGE = ROOT / "docs" / "impact.md"

_PART = re.compile(r"(<!-- begin (table|worth) -->\n).*?(<!-- end -->)", re.DOTALL)


def generate() -> Mapping[Path, str]:
    """Return the page with its parts as they should be."""
    parts = {"table": _table, "worth": _worth}
    text = PAGE.read_text(encoding="utf-8")
    return {PAGE: _PART.sub(lambda part: f"{part[1]}\n{parts[part[2]]()}\n{part[3]}", text)}


def _table() -> str:
    """Return the impact of warnings by worth and frequency."""
    heads = [*(often.told or "unknown" for often in Frequency), "lasting"]
    rows = [
        [worth.label, *(cells[often].label for often in (*Frequency, None))]
        for worth, cells in impact.TABLE.items()
    ]
    return _rows([["worth", *heads], ["---"] * (len(heads) + 1), *rows])


def _worth() -> str:
    """Return the rules that claim a gain, by what they are worth."""
    cases = measured.load("bench")
    found = {rule: measured.of(cases, rule.code) for rule in catalogue().values() if rule.measured}

    def row(rule: Rule) -> list[str]:
        marks = ["yes" if mark else "" for mark in (rule.lasting, rule.advice)]
        link = f"[{rule.code}](rules/{rule.code}.md)"
        return [link, rule.name, impact.gained(found[rule]).told or "–", *marks]

    parts = []
    for worth in reversed(Worth):
        rows = [row(rule) for rule in found if impact.judged(found[rule]) is worth]
        if rows:
            heads = ["code", "name", "gained in its benchmark", "lasting", "advice"]
            parts.append(f"**{worth.label.capitalize()}**\n\n{_rows([heads, ['---'] * len(heads), *rows])}")
    return "\n".join(parts)


def _rows(rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)

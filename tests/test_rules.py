"""Every fixture of every rule, and what all rules promise; see torchlint.testing for the promises."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from torchlint import registry
from torchlint.checker import check
from torchlint.options import LintSettings
from torchlint.rule import Rule
from torchlint.source import Source
from torchlint.testing import Case, cases, folder_problems, problems, rule_problems

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CASES = cases(FIXTURES)
FOLDERS = [list(folder) for _, folder in groupby(CASES, key=lambda case: case.path.parent)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.parent.name}/{case.path.stem}")
def test_fixture(case: Case) -> None:
    assert problems(case) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder[0].path.parent.name)
def test_fixtures_of_a_rule(folder: list[Case]) -> None:
    assert folder_problems(folder) == []


@pytest.mark.parametrize("rule", registry.catalogue().values(), ids=lambda rule: rule.code)
def test_page(rule: Rule) -> None:
    assert rule_problems(rule) == []


# Followed twins differ from these in a few lines; asking every rule about them too would only take longer.
SCREENED = sorted(path for path in FIXTURES.rglob("*.py") if not path.name.endswith(".followed.py"))


@pytest.mark.parametrize("path", SCREENED, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_the_screen_hides_no_finding(path: Path) -> None:
    rules = registry.catalogue()
    settings = LintSettings(rules=tuple(rules), fixable=frozenset(rules))
    source = Source.read(path)
    assert check(source, settings) == check(source, settings, screen=False)

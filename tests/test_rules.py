"""Every fixture of every rule, and what all rules promise; see torchlint.testing for the promises."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, product
from pathlib import Path
from typing import Any

import pytest

from torchlint import checker, reading, registry
from torchlint.checker import check
from torchlint.conversion import NotOutlinedError
from torchlint.fixer import Fixed, applicable, fix
from torchlint.options import LintSettings
from torchlint.rule import Rule
from torchlint.source import Source
from torchlint.testing import Case, cases, folder_problems, problems, rule_problems

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
CASES = cases(FIXTURES)
FOLDERS = [list(folder) for _, folder in groupby(CASES, key=lambda case: case.path.parent)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.parent.name}/{case.path.stem}")
def test_fixture(case: Case) -> None:
    found = problems(case)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder[0].path.parent.name)
def test_fixtures_of_a_rule(folder: list[Case]) -> None:
    found = folder_problems(folder)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rule", registry.catalogue().values(), ids=lambda rule: rule.code)
def test_page(rule: Rule) -> None:
    found = rule_problems(rule)
    assert not found, "\n".join(found)


# Followed twins differ from these in a few lines; asking every rule about them too would only take longer.
SCREENED = sorted(path for path in FIXTURES.rglob("*.py") if not path.name.endswith(".followed.py"))


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What rules fail with, whether or not the full tree has an answer after that."""
    found: list[Exception] = []
    begin = checker._RuleError.__init__

    def note(self: checker._RuleError, error: Exception, *told: Any) -> None:
        found.append(error)
        begin(self, error, *told)

    monkeypatch.setattr(checker._RuleError, "__init__", note)
    return found


@pytest.mark.parametrize("path", SCREENED, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_the_screen_hides_no_finding(path: Path, failures: list[Exception]) -> None:
    rules = registry.catalogue()
    settings = LintSettings(rules=tuple(rules), fixable=frozenset(rules))
    source = reading.read(path)
    assert check(source, settings) == check(source, settings, screen=False)
    # A rule that asks an outline for what it does not have costs a full parse of every such file.
    assert [error for error in failures if not isinstance(error, NotOutlinedError)] == []


STEMS = (
    *("require", "requires", "required", "requres", "requre", "reqries", "requries", "requiers"),
    *("requieres", "requirs", "reqires", "reqiures", "reuqires"),
)
TAILS = ("grad", "Grad", "gard", "grd", "gad", "gradd", "gradient")


@pytest.mark.parametrize("stem", STEMS)
def test_the_screen_lets_every_misspelt_attribute_through(stem: str) -> None:
    names = map("".join, product((stem,), ("", "_"), TAILS, ("", "s"), ("", "_")))
    assert sum(fires_as_screened(f"p.{name} = False") for name in names) > 50


def test_the_screen_lets_a_hidden_method_through() -> None:
    places = ("p.requires_grad_= 0", "p.requires_grad_  =0", "p.requires_grad_\t= 0", "(p.requires_grad_)=0")
    assert all(map(fires_as_screened, (*places, "p.requires_grad_\\\n= 0")))


def fires_as_screened(statement: str) -> bool:
    """Whether TL308 has something to say of a statement, which the screen must not keep from it."""
    text = f"import torch\np = torch.nn.Parameter(torch.ones(3))\n{statement}\n"
    fires = bool(check(Source(Path("a.py"), text), LintSettings(rules=("TL308",)), screen=False))
    assert registry.rules()["TL308"].may_fire(text) or not fires, statement
    return fires


AUTHORED = [path for path in SCREENED if not path.name.endswith(".fixed.py")]


@pytest.mark.parametrize("path", AUTHORED, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_as_many_fixes_are_made_as_are_announced(path: Path) -> None:
    """With all rules at once; what other fixes brought up or made needless is told apart."""
    rules = registry.catalogue()
    settings = LintSettings(rules=tuple(rules), fixable=frozenset(rules))
    source = reading.read(path)
    announced = [item for item in check(source, settings) if applicable(item, settings)]
    fixed = fix(source, settings) if announced else Fixed(source, Counter(), [])
    assert Counter(item.code for item in announced) == fixed.applied - fixed.later + fixed.settled
    assert all(rules[code].follows for code in fixed.later)

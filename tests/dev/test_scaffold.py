"""A new rule, as ``python -m torchlint.dev new-rule`` starts it, is sound before anybody edits it."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.dev import ROOT, codes, scaffold
from torchlint.options import LintSettings
from torchlint.rule import Rule
from torchlint.testing import cases, folder_problems, problems

CHANGELOG = """# Changelog

## [0.2.0] - unreleased

### Added

- What came before.

## [0.1.0] - 2026-01-01

### Added

- The beginning.
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but a changelog."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "modules"),
    [
        (False, ["example_pattern.py"]),
        (True, ["example_pattern/__init__.py", "example_pattern/rule.py"]),
    ],
)
def test_a_new_rule_is_sound(
    folder: bool, modules: list[str], checkout: Path, use_rules: Callable[..., LintSettings]
) -> None:
    created = scaffold.new_rule("TL999", "example-pattern", "new_family", checkout, folder=folder)
    assert [path.relative_to(checkout).as_posix() for path in created] == [
        "CHANGELOG.md",
        "fixtures/TL999_example_pattern/bad.followed.py",
        "fixtures/TL999_example_pattern/bad.py",
        "fixtures/TL999_example_pattern/good.py",
        "rules/new_family/__init__.py",
        *(f"rules/new_family/{name}" for name in modules),
    ]
    for path in created[1:]:
        ast.parse(path.read_text(encoding="utf-8"))
    spec = importlib.util.spec_from_file_location("example_pattern", created[-1])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rule = module.example_pattern
    assert isinstance(rule, Rule)
    assert (rule.code, rule.name, rule.summary) == (
        "TL999",
        "example-pattern",
        "Finds calls of `torch.example`.",
    )
    assert rule.remedy == "Call `torch.better`"
    use_rules(rule)
    fixtures = cases(checkout / "fixtures")
    assert [problem for case in fixtures for problem in problems(case)] == []
    assert folder_problems(fixtures) == []
    config = ROOT / "pyproject.toml"
    for command in (("check",), ("format", "--check")):
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", config, *created[3:]],
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("code", "name", "family", "reason"),
    [
        ("TL99", "example", "model", "`TL99` is not a code"),
        ("TL999", "Example", "model", "`Example` is not a rule name"),
        ("TL999", "example", "my-model", "`my-model` is not the name of a folder"),
        ("TL601", "example", "model", "TL601 (cache-emptied-in-loop) exists already"),
        ("TL999", "cache-emptied-in-loop", "model", "TL601 (cache-emptied-in-loop) exists already"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(
    code: str, name: str, family: str, reason: str, checkout: Path
) -> None:
    with pytest.raises(ValueError, match="^" + reason.replace("(", r"\(").replace(")", r"\)")):
        scaffold.new_rule(code, name, family, checkout)
    assert [path.name for path in checkout.iterdir()] == ["CHANGELOG.md"]
    assert (checkout / "CHANGELOG.md").read_text(encoding="utf-8") == CHANGELOG


def test_an_existing_family_keeps_its_docstring(checkout: Path) -> None:
    package = checkout / "rules" / "model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Kept."""\n', encoding="utf-8")
    scaffold.new_rule("TL999", "example-pattern", "model", checkout)
    assert (package / "__init__.py").read_text(encoding="utf-8") == '"""Kept."""\n'


def test_a_code_of_the_past_is_not_used_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codes, "frozen", lambda: {"TL999": codes.Promise("gone", "note", "none")})
    for code, name in (("TL999", "example-pattern"), ("TL998", "gone")):
        with pytest.raises(ValueError, match=r"^TL999 \(gone\) exists already$"):
            scaffold.new_rule(code, name, "model", checkout)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("## 2 - unreleased\n\n### Added\n\n- Old.\n", "## 2 - unreleased\n\n### Added\n\nNEW- Old.\n"),
        (
            "## 2 - unreleased\n\n### Fixed\n\n- Old.\n",
            "## 2 - unreleased\n\n### Added\n\nNEW\n### Fixed\n\n- Old.\n",
        ),
        (
            "## 1 - 2026-01-01\n\n### Added\n\n- Old.\n",
            "## [Unreleased]\n\n### Added\n\nNEW\n## 1 - 2026-01-01\n\n### Added\n\n- Old.\n",
        ),
    ],
)
def test_the_changelog_of_what_is_not_released_has_its_line(before: str, after: str, checkout: Path) -> None:
    changelog = checkout / "CHANGELOG.md"
    changelog.write_text("# Changelog\n\n" + before, encoding="utf-8")
    scaffold.new_rule("TL999", "example-pattern", "model", checkout)
    line = "- New rule `example-pattern` (TL999).\n"
    assert changelog.read_text(encoding="utf-8") == "# Changelog\n\n" + after.replace("NEW", line)

"""A new rule, as ``python -m torchlint.dev new-rule`` starts it, is sound before anybody edits it."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.dev import ROOT, scaffold
from torchlint.options import LintSettings
from torchlint.rule import Rule
from torchlint.testing import cases, folder_problems, problems


def test_a_new_rule_is_sound(tmp_path: Path, use_rules: Callable[..., LintSettings]) -> None:
    created = scaffold.new_rule("TL999", "example-pattern", "new_family", tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in created] == [
        "fixtures/TL999_example_pattern/bad.followed.py",
        "fixtures/TL999_example_pattern/bad.py",
        "fixtures/TL999_example_pattern/good.py",
        "rules/new_family/__init__.py",
        "rules/new_family/example_pattern.py",
    ]
    for path in created:
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
    fixtures = cases(tmp_path / "fixtures")
    assert [problem for case in fixtures for problem in problems(case)] == []
    assert folder_problems(fixtures) == []
    config = ROOT / "pyproject.toml"
    for command in (("check",), ("format", "--check")):
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", config, *created[2:]],
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
    code: str, name: str, family: str, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="^" + reason.replace("(", r"\(").replace(")", r"\)")):
        scaffold.new_rule(code, name, family, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_family_keeps_its_docstring(tmp_path: Path) -> None:
    package = tmp_path / "rules" / "model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Kept."""\n', encoding="utf-8")
    scaffold.new_rule("TL999", "example-pattern", "model", tmp_path)
    assert (package / "__init__.py").read_text(encoding="utf-8") == '"""Kept."""\n'

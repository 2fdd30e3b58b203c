"""What editors may say in their settings, and what they are told if it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchlint import registry
from torchlint.config import ConfigError
from torchlint.server.preferences import Preferences


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, Preferences()),
        ({}, Preferences()),
        ([], Preferences()),
        ({"settings": {"fixAll": False}}, Preferences(fix_all=False)),
        ({"torchlint": {"lint": {"run": "onSave"}}}, Preferences(on_save=True)),
        (
            {"select": ["TL2"], "extendSelect": ["TL311"], "ignore": []},
            Preferences(options={"select": ["TL2"], "extend-select": ["TL311"], "ignore": []}),
        ),
        ({"configuration": "a.toml"}, Preferences("a.toml")),
        ({"configuration": {"ignore": ["TL2"]}}, Preferences({"ignore": ["TL2"]})),
    ],
)
def test_settings_are_read(given: object, expected: Preferences) -> None:
    assert Preferences.read(given) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["TL2"], "must be a table"),
        ({"selct": []}, "unknown key `selct` in the editor's settings; did you mean `select`?"),
        ({"lint": {"run": "always"}}, "`lint.run` in the editor's settings must be"),
        ({"lint": "onSave"}, "`lint.run` in the editor's settings must be"),
        ({"configuration": 3}, "must be a path or a table"),
    ],
)
def test_wrong_settings_are_named(given: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Preferences.read(given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"configuration": {"selct": ["TL2"]}}, "unknown key `selct`; did you mean `select`?"),
        ({"select": "TL2"}, "invalid value for `select`"),
        ({"configuration": "none.toml"}, "none.toml, which is not a file"),
        ({"select": ["TL999"]}, "TL999"),
    ],
)
def test_wrong_values_are_named(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Preferences.read(given).resolver(registry.catalogue(), tmp_path).lint(tmp_path / "a.py")
    assert message in str(caught.value)


def test_the_editor_wins_over_config_files(tmp_path: Path) -> None:
    (tmp_path / "torchlint.toml").write_text('select = ["TL1"]\nworkers = 7\n')
    resolver = Preferences(options={"select": ["TL202"]}).resolver(registry.catalogue(), tmp_path)
    lint = resolver.lint(tmp_path / "a.py")
    assert (lint.rules, lint.workers) == (("TL202",), 7)
    (tmp_path / "other.toml").write_text("workers = 9\n")
    resolver = Preferences("other.toml").resolver(registry.catalogue(), tmp_path)
    assert resolver.lint(tmp_path / "a.py").workers == 9

"""The extension for VS Code, as far as its files tell; `make vscode` tests it in a real one."""

from __future__ import annotations

import json
import re
from typing import Any

from packaging.version import Version

from torchlint import __version__
from torchlint.dev import ROOT
from torchlint.options import settings
from torchlint.server.preferences import _KNOWN, _OPTIONS, Preferences

FOLDER = ROOT / "editors" / "vscode"
MANIFEST: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
PROPERTIES: dict[str, Any] = MANIFEST["contributes"]["configuration"]["properties"]
OWN = {"path", "interpreter", "trace.server", "verify.arguments"}
"""Settings that the server is not told of."""


def sources() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in (FOLDER / "src").glob("*.ts"))


def test_it_has_the_version_of_torchlint() -> None:
    assert MANIFEST["version"] == Version(__version__).base_version


def test_its_settings_are_those_of_the_server() -> None:
    offered = {name.removeprefix("torchlint.").partition(".")[0] for name in PROPERTIES}
    own = {name.partition(".")[0] for name in OWN}
    assert offered - own == set(_KNOWN)
    sent = re.search(r"const PREFERENCES = \[(.*?)\]", sources(), re.DOTALL)
    assert sent is not None
    assert set(re.findall(r'"(\w+)"', sent[1])) == set(_KNOWN)


def test_what_nobody_sets_is_left_to_config_files() -> None:
    given = {name.removeprefix("torchlint."): each["default"] for name, each in PROPERTIES.items()}
    assert all(given[name] is None for name in (*_OPTIONS, "configuration"))
    assert Preferences.read({"fixAll": given["fixAll"], "lint": {"run": given["lint.run"]}}) == Preferences()


def test_its_impacts_are_those_of_the_option() -> None:
    assert set(PROPERTIES["torchlint.impact"]["enum"]) == {*settings()["impact"].choices, None}


def test_every_command_is_registered() -> None:
    offered = {each["command"] for each in MANIFEST["contributes"]["commands"]}
    assert set(re.findall(r'registerCommand\("([\w.]+)"', sources())) == offered


def test_the_lock_file_names_no_registry() -> None:
    locked = json.loads((FOLDER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert len(locked) > 1
    assert [name for name, each in locked.items() if "resolved" in each] == []


def test_the_last_run_in_vs_code_passed_all_tests() -> None:
    suite = (FOLDER / "test" / "suite.ts").read_text(encoding="utf-8")
    results = json.loads((FOLDER / "test" / "results.json").read_text(encoding="utf-8"))
    tests = re.findall(r'^  "(.+)": async', suite, re.MULTILINE)
    assert results["outcomes"] == dict.fromkeys(tests, "passed")

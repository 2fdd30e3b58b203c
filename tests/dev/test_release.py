"""What a release changes in the files, and what it refuses; the building is `make release` itself."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from torchlint import __version__
from torchlint.dev import ROOT, release
from torchlint.dev.release import ReleaseError, epoch, main, prepare

DAY = date(2026, 12, 1)
CHANGELOG = """\
# Changelog

## [0.2.0] - unreleased

### Added

- Something.

## [0.1.0] - 2026-11-02

- The first one.
"""
EXTENSION = """\
{
  "name": "torchlint",
  "version": "0.1.0",
  "node_modules/a": { "version": "0.1.0" }
}
"""
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files that a release is about."""
    (tmp_path / "torchlint").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "templates").mkdir()
    (tmp_path / "editors" / "vscode").mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "torchlint" / "__init__.py").write_text('"""It."""\n\n__version__ = "0.1.0"\n')
    (tmp_path / "README.md").write_text("    rev: v0.1.0\npip install git+URL@v0.1.0\ntorch 0.1.0\n")
    for name in ("package.json", "package-lock.json"):
        (tmp_path / "editors" / "vscode" / name).write_text(EXTENSION)
    (tmp_path / "docs" / "a.md").write_text(
        "uses: OWNER/torchlint@v0.1.0\nuses: b@v4\nTORCHLINT_REF: v0.1.0\n"
    )
    return tmp_path


def written(checkout: Path, version: str) -> dict[str, str]:
    made = prepare(version, DAY, checkout)
    return {path.relative_to(checkout).as_posix(): text for path, text in made.items()}


def test_version_day_and_tags_are_written(checkout: Path) -> None:
    made = written(checkout, "0.2.0")
    assert "## [0.2.0] - 2026-12-01\n\n### Added" in made["CHANGELOG.md"]
    assert made["torchlint/__init__.py"].endswith('\n__version__ = "0.2.0"\n')
    assert made["README.md"] == "    rev: v0.2.0\npip install git+URL@v0.2.0\ntorch 0.1.0\n"
    assert made["docs/a.md"] == "uses: OWNER/torchlint@v0.2.0\nuses: b@v4\nTORCHLINT_REF: v0.2.0\n"


def test_the_extension_has_the_version_of_the_release(checkout: Path) -> None:
    made = written(checkout, "0.2.0")
    for name in ("package.json", "package-lock.json"):
        assert made[f"editors/vscode/{name}"] == EXTENSION.replace("0.1.0", "0.2.0", 1)


def test_what_was_prepared_stays(checkout: Path) -> None:
    for name, text in written(checkout, "0.2.0").items():
        (checkout / name).write_text(text)
    assert prepare("0.2.0", date(2027, 1, 1), checkout) == {}
    assert epoch("0.2.0", checkout) == 1_796_083_200
    with pytest.raises(ReleaseError, match="at its top"):
        prepare("0.3.0", DAY, checkout)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("latest", "`latest` is not a version"),
        ("v0.2.0", "use 0.2.0"),
        ("0.2.0+local", "use 0.2.0"),
        ("0.1.0", "0.1.0 is no newer than 0.1.0"),
        ("0.0.9", "0.0.9 is no newer than 0.1.0"),
    ],
)
def test_a_version_that_cannot_be_is_refused(version: str, reason: str, checkout: Path) -> None:
    with pytest.raises(ReleaseError, match=re.escape(reason)):
        prepare(version, DAY, checkout)


def test_a_release_has_something_to_say(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace("- Something.", ""))
    with pytest.raises(ReleaseError, match="is empty"):
        prepare("0.2.0", DAY, checkout)


def test_what_is_not_dated_is_not_built(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("99.0.0", check=True) == 1
    assert "CHANGELOG.md" in capsys.readouterr().err


def test_each_python_is_tried_once() -> None:
    found = [release._version_of(path) for path in release.pythons()]
    assert found == sorted(set(found), key=lambda version: version or (0, 0))
    assert all(version is not None and version >= (3, 10) for version in found)


def test_no_page_tells_to_install_a_bare_name() -> None:
    docs, templates = ROOT / "docs", ROOT / "templates"
    for page in [ROOT / "README.md", *docs.glob("*.md"), *templates.iterdir()]:
        for line in page.read_text(encoding="utf-8").splitlines():
            _, install, what = line.partition("#")[0].partition("pip install")
            assert not install or "torchlint" not in what or "git+" in what, f"{page.name}: {line}"


def test_the_tags_in_the_docs_are_of_this_version() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"(?:@v|rev: v)(\d+\.\d+\.\d+)", readme)) == {__version__}


def test_the_workflow_pins_what_it_runs_and_grants_little() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    workflow: dict[str, Any] = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert [job.get("permissions") for job in workflow["jobs"].values()] == [
        {"contents": "read"},
        {"id-token": "write"},
    ]
    used = re.findall(r"uses: (\S+)", text)
    assert used and all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name) for name in used)
    # An expression in a script would run what is in it.
    assert "secrets." not in text
    assert not any("${{" in step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"])

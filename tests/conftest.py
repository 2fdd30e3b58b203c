"""What tests in several folders share: the files of the project, and a copy of it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType, ModuleType

import pytest
from click.testing import CliRunner, Result

from torchlint import cli, registry
from torchlint.commands import build
from torchlint.options import LintSettings
from torchlint.rule import Rule

ROOT = Path(__file__).resolve().parents[1]
# No test may be told what another run has found, and none may leave anything with the user.
os.environ["TORCHLINT_NO_CACHE"] = "1"


@pytest.fixture(scope="session")
def project_files() -> list[Path]:
    """What is part of the project: tracked files, and new ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.fixture(scope="session")
def project_copy(project_files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the project and nothing that a build or a run has left there."""
    copy = tmp_path_factory.mktemp("project")
    for path in project_files:
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return copy


def lint(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    """Run the command line in this process; no part of it may raise anything."""
    command = build(cli._COMMANDS, cli._DEFAULT)
    result = CliRunner().invoke(command, [*map(str, arguments)], input=stdin, prog_name="torchlint")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def install(site: Path, name: str, rules: str) -> Path:
    """Make a folder say that a package is installed there whose rules are in this module; where it does."""
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[torchlint.rules]\nzz = {rules}\n")
    return metadata


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for runs of programs; its path leaves room for those of sockets."""
    with tempfile.TemporaryDirectory(prefix="torchlint-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class Git:
    """A git repository of a test, with no configuration but its own."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def __call__(self, *arguments: str) -> str:
        """Run git; what it prints."""
        ended = subprocess.run(
            ["git", *arguments], cwd=self.top, capture_output=True, text=True, encoding="utf-8", check=False
        )
        assert not ended.returncode, ended.stderr
        return ended.stdout.strip()

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the working tree."""
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def commit(self, **files: str) -> str:
        """Commit everything, with these files (``a`` is ``a.py``) written first; the name of the commit."""
        for name, text in files.items():
            self.write(f"{name}.py", text)
        self("add", "--all")
        self("commit", "--quiet", "--message", "a commit")
        return self("rev-parse", "HEAD")


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """An empty repository, whose branch is called ``main``."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "somebody",
        "GIT_AUTHOR_EMAIL": "somebody@example.org",
        "GIT_COMMITTER_NAME": "somebody",
        "GIT_COMMITTER_EMAIL": "somebody@example.org",
    }.items():
        monkeypatch.setenv(name, value)
    top = tmp_path / "repository"
    top.mkdir()
    made = Git(Path(os.path.realpath(top)))
    made("init", "--quiet", "--initial-branch=main")
    return made


@pytest.fixture
def use_rules(monkeypatch: pytest.MonkeyPatch) -> Callable[..., LintSettings]:
    """Makes the rules given, and those of the linter itself, all that exist; returns settings with all on."""

    def use(*rules: Rule) -> LintSettings:
        own = [rule for code, rule in registry.rules().items() if code.startswith("TL00")]
        found = MappingProxyType({rule.code: rule for rule in (*own, *rules)})
        monkeypatch.setattr(registry, "rules", lambda: found)
        monkeypatch.setattr(registry, "catalogue", lambda: found)
        return LintSettings(rules=tuple(sorted(found)), fixable=frozenset(found), unsafe_fixes=True)

    return use


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    """``tests/verify/synthetic.py``, which makes results of measurements."""
    path = ROOT / "tests" / "verify" / "synthetic.py"
    spec = importlib.util.spec_from_file_location("torchlint_synthetic", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

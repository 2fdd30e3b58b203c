"""The hooks, run by a real pre-commit in a real git repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

UNFIXABLE = """\
import torch


def train(model, loader, optimizer):
    for step, batch in enumerate(loader):
        x, y = (tensor.to("cuda", non_blocking=True) for tensor in batch)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print("loss", step, loss)
"""
FIXABLE = """\
import torch


def train(model, loader, optimizer):
    for batch in loader:
        noise = torch.zeros(8, 8).to("cuda")
        loss = model(batch.to("cuda", non_blocking=True), noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
"""
CONFIGURED = """\
import yaml
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def train(model):
    with open("train.yaml") as file:
        workers = yaml.safe_load(file)["workers"]
    for images, labels in DataLoader(ImageFolder("data"), num_workers=workers, pin_memory=True):
        model(images.to("cuda", non_blocking=True))
"""
FIXED = FIXABLE.replace('torch.zeros(8, 8).to("cuda")', 'torch.zeros(8, 8, device="cuda")')


def as_notebook(program: str) -> str:
    """The program as the one cell of a notebook."""
    cell = {"cell_type": "code", "source": program.splitlines(keepends=True), "outputs": []}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, indent=1)


CONFIG = """\
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: {hook}
"""


class Repository:
    """A git repository, with an environment in which nothing of the user's own set-up counts."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "TORCHLINT_"))
        }
        self.environment = {
            **kept,
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
            "PRE_COMMIT_HOME": str(home),
            "PRE_COMMIT_COLOR": "never",
        }
        self.git("init", "--quiet", "--initial-branch", "main")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository; output and errors come back as one text."""
        return subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )

    def git(self, *arguments: str) -> str:
        """Run git, which must succeed."""
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()

    def commit(self, **files: str) -> subprocess.CompletedProcess[str]:
        """Write files, named by keyword with ``_`` for the dot, and try to commit them."""
        for name, text in files.items():
            (self.directory / name.replace("_", ".")).write_text(text, encoding="utf-8")
        self.git("add", "--all")
        return self.run("git", "commit", "--quiet", "--message", "change")

    @property
    def commits(self) -> int:
        """How many commits there are."""
        return int(self.git("rev-list", "--count", "--all"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps its environments; both hooks share the one of this project."""
    return tmp_path_factory.mktemp("pre-commit")


@pytest.fixture(scope="module")
def hooks(project_copy: Path, home: Path) -> tuple[Path, str]:
    """This project as a hook repository: where it is, and the revision to use."""
    repository = Repository(project_copy, home)
    assert repository.commit().returncode == 0
    return project_copy, repository.git("rev-parse", "HEAD")


@pytest.fixture
def user(request: pytest.FixtureRequest, hooks: tuple[Path, str], home: Path, tmp_path: Path) -> Repository:
    """A user's repository with one hook of this project installed in it."""
    repository = Repository(tmp_path / "user", home)
    config = CONFIG.format(repository=hooks[0], revision=hooks[1], hook=request.param)
    assert repository.commit(**{"_pre-commit-config_yaml": config}).returncode == 0
    installed = repository.run(sys.executable, "-m", "pre_commit", "install", "--install-hooks")
    assert installed.returncode == 0, installed.stdout
    return repository


@pytest.mark.parametrize("user", ["torchlint"], indirect=True)
def test_a_finding_blocks_the_commit(user: Repository, home: Path) -> None:
    blocked = user.commit(train_py=UNFIXABLE)
    assert blocked.returncode == 1
    assert "TL204" in blocked.stdout and "train.py:11:" in blocked.stdout
    assert user.commits == 1
    assert (user.directory / "train.py").read_text(encoding="utf-8") == UNFIXABLE
    # The base install that pre-commit made has no torch.
    assert list(home.glob("repo*/py_env-*/**/site-packages/torchlint-*.dist-info"))
    assert not list(home.glob("repo*/py_env-*/**/site-packages/torch"))

    passed = user.commit(train_py=UNFIXABLE.replace('print("loss", step, loss)', "pass"))
    assert passed.returncode == 0, passed.stdout
    assert user.commits == 2


@pytest.mark.parametrize("user", ["torchlint"], indirect=True)
def test_a_finding_in_a_configuration_file_blocks_the_commit(user: Repository) -> None:
    assert user.commit(train_py=CONFIGURED, train_yaml="workers: 4\n").returncode == 0
    blocked = user.commit(train_yaml="workers: 0\n", unread_yaml="workers: 0\n")
    assert blocked.returncode == 1
    assert "TL101" in blocked.stdout and "unread" not in blocked.stdout


@pytest.mark.parametrize(("hook", "args", "fixed"), [(0, [], False), (0, ["--fix"], True), (1, [], True)])
@pytest.mark.parametrize("key", ["fix", "fix-only"])
def test_the_hook_that_only_looks_heeds_no_config_that_fixes(
    tmp_path: Path, hook: int, args: list[str], fixed: bool, key: str
) -> None:
    told = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8").splitlines()
    name, *entry = [line.split()[1:] for line in told if line.strip().startswith("entry:")][hook]
    (tmp_path / "torchlint.toml").write_text(f"{key} = true\n")
    (tmp_path / "train.py").write_text(FIXABLE, encoding="utf-8")
    environment = {**os.environ, "TORCHLINT_NO_CACHE": "1"}
    command = [sys.executable, "-m", name, *entry, *args, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == (0 if fixed and hook == 0 else 1)
    assert ((tmp_path / "train.py").read_text(encoding="utf-8") == FIXED) is fixed


@pytest.mark.parametrize("user", ["torchlint-fix"], indirect=True)
def test_the_fixing_hook_fixes_and_blocks_once(user: Repository) -> None:
    blocked = user.commit(train_py=FIXABLE, train_ipynb=as_notebook(FIXABLE))
    assert blocked.returncode == 1
    assert "files were modified by this hook" in blocked.stdout
    assert (user.directory / "train.py").read_text(encoding="utf-8") == FIXED
    assert (user.directory / "train.ipynb").read_text(encoding="utf-8") == as_notebook(FIXED)
    assert user.commits == 1

    passed = user.commit()
    assert passed.returncode == 0, passed.stdout
    assert user.commits == 2
    assert user.git("show", "HEAD:train.py") == FIXED.strip()


@pytest.mark.parametrize("user", ["torchlint", "torchlint-fix"], indirect=True)
def test_a_commit_without_python_passes(user: Repository) -> None:
    passed = user.commit(notes_md="no Python here\n")
    assert passed.returncode == 0, passed.stdout
    assert "Skipped" in passed.stdout
    assert user.commits == 2


@pytest.mark.parametrize("user", ["torchlint"], indirect=True)
def test_excluded_files_stay_excluded_when_pre_commit_names_them(user: Repository) -> None:
    config = '[tool.torchlint]\nextend-exclude = ["train.py"]\n'
    passed = user.commit(pyproject_toml=config, train_py=UNFIXABLE)
    assert passed.returncode == 0, passed.stdout

"""Versions of torchlint in virtual environments of their own: commits, working trees, wheels, releases."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion
from packaging.version import Version as Release

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Version:
    """What was asked for, what it is (a commit, or a name), the interpreter that has it, and how it is run.

    ``options`` are given to its ``check`` command.
    """

    asked: str
    name: str
    python: Path
    options: tuple[str, ...] = ()


def prepare(asked: str, folder: Path) -> Version:
    """Install what ``asked`` names, a folder, a wheel, a commit or a release, in a folder below ``folder``.

    What a commit is never changes, so that its environment is kept and used again.

    Raises:
        ValueError: it names nothing.
        RuntimeError: it could not be installed.
    """
    path = Path(asked)
    if path.is_dir():
        digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
        with tempfile.TemporaryDirectory() as scratch:
            python = _installed(str(_copied(path, Path(scratch))), folder / f"tree-{digest}")
        return Version(asked, described(path), python)
    if path.suffix == ".whl":
        if not path.is_file():
            raise ValueError(f"no such wheel: {asked}")
        return Version(asked, path.name, _installed(str(path.resolve()), folder / path.stem))
    if commit := _commit(asked):
        home = folder / commit
        if not (home / "complete").exists():
            with tempfile.TemporaryDirectory() as scratch:
                _installed(str(_archived(commit, Path(scratch))), home)
            (home / "complete").touch()
        return Version(asked, commit[:7], _python(home))
    try:
        release = Release(asked)
    except InvalidVersion:
        raise ValueError(f"neither a folder, a wheel, a commit nor a release: {asked}") from None
    return Version(asked, f"torchlint {release}", _installed(f"torchlint=={release}", folder / str(release)))


def _commit(asked: str) -> str | None:
    found = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or None


def described(path: Path) -> str:
    """Return the commit of a working tree, with a word if it was changed since."""
    found = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--abbrev=7", "--dirty=, changed since"],
        cwd=path,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or path.resolve().name


def _archived(commit: str, target: Path) -> Path:
    """Return the files of a commit, without a trace in the repository."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(target, filter="data")
        else:
            archive.extractall(target)
    return target


def _copied(path: Path, target: Path) -> Path:
    """Return the files of a working tree but for the ignored ones: setuptools builds beside the sources."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=path,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        shutil.copytree(path, target, dirs_exist_ok=True)
        return target
    for name in filter(None, listed.stdout.split("\0")):
        if (path / name).is_file():  # a deleted file is listed until the deletion is committed
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path / name, target / name)
    return target


def _python(home: Path) -> Path:
    return home / ("Scripts" if os.name == "nt" else "bin") / "python"


def _installed(requirement: str, home: Path) -> Path:
    """Return the interpreter of a new environment with one requirement and what that needs."""
    shutil.rmtree(home, ignore_errors=True)
    for command in (
        [sys.executable, "-m", "venv", str(home)],
        [str(_python(home)), "-m", "pip", "install", "--quiet", requirement],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{requirement} could not be installed: {done.stderr.strip()[-500:]}")
    return _python(home)

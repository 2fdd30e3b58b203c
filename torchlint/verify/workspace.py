"""Copies of the user's project, in which programs run and may write what they like."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

LIMIT = 1 << 30
"""Bytes that a copy of the project's folder may have."""

# What no program reads, or what it makes again.
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", ".mypy_cache",
    ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "wandb", "mlruns", "lightning_logs",
)  # fmt: skip
_ROOT_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


class Workspace:
    """A scratch place for the runs of one script.

    ``links`` are paths within the project that are linked to instead of copied: data too large to copy,
    that the program must not write to.

    Raises:
        ValueError: the project is larger than ``limit`` bytes, with the folders that make it so.
    """

    def __init__(self, script: Path, *, links: Sequence[str] = (), limit: int = LIMIT) -> None:
        script = script.resolve()
        self.project = root_of(script)
        self.relative = PurePosixPath(script.relative_to(self.project).as_posix())
        self._links = [self._inside(link) for link in links]
        self._check_size(limit)
        self.folder = Path(tempfile.mkdtemp(prefix="torchlint-verify-"))
        self._numbers = itertools.count(1)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def copy(self, texts: Mapping[PurePosixPath, bytes]) -> Path:
        """A new copy of the project with the contents of some files replaced; returns its folder.

        The folder above it belongs to the copy too: for the program's output and temporary files.
        """
        folder = self.folder / f"run{next(self._numbers)}" / self.project.name
        shutil.copytree(self.project, folder, ignore=self._ignore)
        for link in self._links:
            place = folder / link
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(self.project / link)
        for path, content in texts.items():
            # Never through a link into the user's own folder.
            (folder / path).unlink(missing_ok=True)
            (folder / path).write_bytes(content)
        return folder

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ignore(self, folder: str, names: list[str]) -> set[str]:
        place = Path(folder)
        linked = {name for name in names if (place / name).relative_to(self.project) in self._links}
        special = {name for name in names if not _ordinary(place / name)}
        return linked | special | set(_LEFT_OUT(folder, names))

    def _inside(self, link: str) -> Path:
        place = Path(link).absolute()
        if not place.is_relative_to(self.project) or not place.exists():
            raise ValueError(f"`{link}` is nothing inside of {self.project}")
        return place.relative_to(self.project)

    def _check_size(self, limit: int) -> None:
        sizes: dict[str, int] = {}
        seen: set[str] = set()
        # What lies behind links is copied too, so that no program writes through one.
        for folder, folders, names in os.walk(self.project, followlinks=True):
            real = os.path.realpath(folder)
            if real in seen:
                raise ValueError(f"{folder} leads back to a folder above it; `--link PATH` leaves it out")
            seen.add(real)
            left_out = self._ignore(folder, [*folders, *names])
            folders[:] = [name for name in folders if name not in left_out]
            parts = Path(folder).relative_to(self.project).parts
            for name in set(names) - left_out:
                top = parts[0] if parts else name
                sizes[top] = sizes.get(top, 0) + (Path(folder) / name).stat().st_size
        total = sum(sizes.values())
        if total > limit:
            largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:3]
            named = ", ".join(f"{name} ({_megabytes(sizes[name])})" for name in largest)
            raise ValueError(
                f"{self.project} has {_megabytes(total)}, too much to copy for every run; the largest parts "
                f"are {named}. `--link PATH` links to a part that the program only reads"
            )


def root_of(script: Path) -> Path:
    """The project's folder: the closest one above that looks like a project, else the script's own.

    The user's home folder and those above it are never taken for a project.
    """
    above: Callable[[Path], bool] = lambda folder: folder == Path.home() or folder in Path.home().parents  # noqa: E731
    for folder in script.parents:
        if above(folder):
            break
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return folder
    return script.parent


def _ordinary(path: Path) -> bool:
    """Whether it is a file, a folder or a link to one: no socket, no pipe, no dangling link."""
    return path.is_file() or path.is_dir()


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MB"

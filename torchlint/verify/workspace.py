"""Copies of the user's project, in which programs run and may write what they like."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from torchlint.verify.worker.copies import FILE_SYSTEM

LIMIT = 1 << 30
"""Bytes that a copy of the project's folder may have."""

# What no program reads, or what it makes again.
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", ".mypy_cache",
    ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "wandb", "mlruns", "lightning_logs",
)  # fmt: skip
# What makes a repository, apart from its objects.
_HISTORY = ("HEAD", "config", "index", "packed-refs", "refs", "shallow")
_ROOT_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")


@dataclass(frozen=True)
class Copy:
    """What one run of a program has for itself."""

    project: Path
    """The copy of the project's folder."""
    scratch: Path
    """Everything of this run; the copy lies in it as deep as the project does in the file system."""


class Workspace:
    """Makes copies of the project of one script in ``folder``.

    ``links`` are paths that are linked to instead of copied: data too large to copy, or beside the project,
    that the program must not write to. ``root`` is a folder above the script that has to be in the copy.

    Raises:
        ValueError: the project is larger than ``limit`` bytes, with the folders that make it so.
    """

    def __init__(
        self,
        script: Path,
        folder: Path,
        *,
        links: Sequence[str] = (),
        limit: int = LIMIT,
        root: Path | None = None,
    ) -> None:
        script = script.resolve()
        self.project = root_of(script)
        if root is not None and not root.resolve().is_relative_to(self.project):
            self.project = root.resolve()
        self.relative = PurePosixPath(script.relative_to(self.project).as_posix())
        self._folder = folder
        self._links = [self._linked(link) for link in links]
        self._stamps: dict[str, tuple[int, int]] = {}
        self._check_size(limit)
        self._numbers = itertools.count(1)

    def copy(self, texts: Mapping[PurePosixPath, bytes]) -> Copy:
        """Return a new copy of the project with the contents of some files replaced."""
        scratch = self._folder / f"run{next(self._numbers)}"
        copy = Copy(_mirrored(self.project, scratch), scratch)
        shutil.copytree(self.project, copy.project, ignore=self._ignore, copy_function=_copied)
        for link in self._links:
            place = _mirrored(link, scratch)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(link)
        self._copy_history(scratch)
        for path, content in texts.items():
            # Never through a link into the user's own folder.
            (copy.project / path).unlink(missing_ok=True)
            (copy.project / path).write_bytes(content)
        return copy

    def _copy_history(self, scratch: Path) -> None:
        """Give the copy a repository of its own, since programs ask for their commit.

        It reads what was committed from the user's objects, and writes none of them.
        """
        above = (folder / ".git" for folder in (self.project, *self.project.parents))
        git = next((place for place in above if place.is_dir()), None)
        if git is None or git in self._links:
            return
        copy = _mirrored(git, scratch)
        (copy / "objects" / "info").mkdir(parents=True)
        (copy / "objects" / "info" / "alternates").write_text(f"{git / 'objects'}\n", encoding="utf-8")
        for name in _HISTORY:
            if (git / name).is_dir():
                shutil.copytree(git / name, copy / name)
            elif (git / name).exists():
                shutil.copy(git / name, copy / name)

    def touched(self) -> list[str]:
        """Return the files of the user's own folder that have changed or appeared, relative to it."""
        before, after = self._stamps, {}
        for file in self._files():
            with contextlib.suppress(OSError):
                after[file] = _stamp(self.project / file)
        return sorted(file for file in after if after[file] != before.get(file))

    def _ignore(self, folder: str, names: list[str]) -> set[str]:
        place = Path(folder)
        linked = {name for name in names if place / name in self._links}
        special = {name for name in names if not _ordinary(place / name) or place / name == self._folder}
        return linked | special | set(_LEFT_OUT(folder, names))

    def _linked(self, link: str) -> Path:
        # Without the links above it, as the project itself is; what it is called may be a link.
        place = Path.cwd() / link
        place = place.resolve() if place.name == ".." else place.parent.resolve() / place.name
        if not place.exists():
            raise ValueError(f"`{link}` to link to does not exist")
        if self.project == place or place in self.project.parents:
            raise ValueError(f"`{link}` contains the project itself, which must be copied")
        return place

    def _check_size(self, limit: int) -> None:
        sizes: dict[PurePosixPath, int] = {}
        for file in self._files():
            self._stamps[file] = size, _ = _stamp(self.project / file)
            for folder in (PurePosixPath(file), *PurePosixPath(file).parents):
                sizes[folder] = sizes.get(folder, 0) + size
        total = sizes.get(PurePosixPath(), 0)
        if total > limit:
            largest = _largest(sizes)
            named = ", ".join(f"{place} ({_megabytes(sizes[place])})" for place in largest)
            raise ValueError(
                f"{self.project} has {_megabytes(total)}, too much to copy for every run; the largest parts "
                f"are {named}. Use `--link {largest[0]}` to link to data that the program only reads"
            )

    def _files(self) -> Iterator[str]:
        """Yield the files that a copy gets, relative to the project."""
        real: dict[Path, Path] = {}
        # What lies behind links is copied too, so that no program writes through one.
        for folder, folders, names in os.walk(self.project, followlinks=True):
            place = Path(folder)
            real[place] = place.resolve()
            if any(real.get(above) == real[place] for above in place.parents):
                raise ValueError(f"{folder} links to a parent folder; `--link {folder}` skips it")
            left_out = self._ignore(folder, [*folders, *names])
            folders[:] = [name for name in folders if name not in left_out]
            relative = place.relative_to(self.project)
            yield from ((relative / name).as_posix() for name in names if name not in left_out)


def _copied(source: str, target: str) -> str:
    """Copy a file as `shutil` does; one that says to be empty is not read, since it may have no end."""
    if Path(source).stat().st_size:
        return str(shutil.copy2(source, target))
    Path(target).touch()
    shutil.copystat(source, target)
    return target


def root_of(script: Path) -> Path:
    """Return the project's folder: the closest one above that looks like a project, else the script's own.

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
    """Return whether it is a file, a folder or a link to one: no socket, no pipe, no dangling link."""
    return path.is_file() or path.is_dir()


def _largest(sizes: Mapping[PurePosixPath, int]) -> list[PurePosixPath]:
    """Return the three largest parts of a project; instead of a folder,
    the part that has nearly all its bytes.
    """
    inside: dict[PurePosixPath, list[PurePosixPath]] = {}
    for place in sizes:
        inside.setdefault(place.parent, []).append(place)

    def narrowed(place: PurePosixPath) -> PurePosixPath:
        parts = [part for part in inside.get(place, ()) if part != place]
        best = max(parts, key=sizes.__getitem__, default=place)
        folder = best in inside
        return narrowed(best) if folder and best != place and sizes[best] >= 0.9 * sizes[place] else place

    parts = [part for part in inside[PurePosixPath()] if part != PurePosixPath()]
    return [narrowed(part) for part in sorted(parts, key=sizes.__getitem__, reverse=True)[:3]]


def _mirrored(place: Path, scratch: Path) -> Path:
    """Return the place in a run's folder that stands for one of the file system."""
    return scratch / FILE_SYSTEM / place.relative_to(place.anchor)


def _stamp(path: Path) -> tuple[int, int]:
    """Return the size of a file in bytes, and what tells whether it was written to."""
    known = path.stat()
    return known.st_size, known.st_mtime_ns


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MB"

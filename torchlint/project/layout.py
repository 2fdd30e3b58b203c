"""Which files make up a project: found once, before any of them is read, and told to every process.

Every file is part of one project at most. Where one project lies within another, its files are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.files import TooManyError, files_below
from torchlint.options import AUTO, Options
from torchlint.project.roots import is_built, is_marked, is_root, root_of
from torchlint.source import most_bytes

if TYPE_CHECKING:
    from torchlint.project.index import Index

MOST_FOLDERS = 10_000
"""A project of more folders than these is not looked at: more likely it is somebody's home."""
MOST_FILES = 1_000
"""A project of more files than these is not looked at: to find who imports what would take too long."""
MOST_FOLDERS_UNMARKED = 200
"""The same for a folder in which nothing says that it is the root of a project."""


@dataclass(frozen=True)
class Layout:
    """Where a project lies, and its files in order."""

    root: Path
    files: tuple[Path, ...] = ()
    kind: str = AUTO
    """What the configuration says of who may import what the project exports."""

    @cached_property
    def members(self) -> frozenset[Path]:
        """The files, to look one up."""
        return frozenset(self.files)

    @cached_property
    def library(self) -> bool:
        """Whether others may import what the project exports, where nobody sees it."""
        return is_built(self.root) if self.kind == AUTO else self.kind == "library"

    @cached_property
    def ranks(self) -> dict[Path, int]:
        """The place of each file in the order of the files."""
        return {file: rank for rank, file in enumerate(self.files)}

    def index(self) -> Index:
        """The records of the files; none of them is read before it is asked for."""
        from torchlint.project.index import Index
        from torchlint.project.roots import source_folders

        return Index(source_folders(self.root), self.files, library=self.library)


class Layouts:
    """The layouts of the projects that files belong to, each found when it is first asked for.

    ``options_for`` gives the options of the files in a folder: what they exclude, and what is larger than
    they allow, is no part of a project.
    """

    def __init__(self, options_for: Callable[[Path], Options], *, respect_gitignore: bool = True) -> None:
        self._options_for = options_for
        self._respect_gitignore = respect_gitignore
        self._found: dict[Path, Layout] = {}
        self._roots: dict[Path, Path] = {}
        self._are_roots: dict[Path, bool] = {}
        self.given_up: list[Path] = []
        """The roots of projects that have too many folders or files to be looked at."""

    def of(self, file: Path) -> Layout | None:
        """The project that a file is one of the files of; None if its settings want it judged alone."""
        if not self._options_for(file.parent).project:
            return None
        layout = self.around(file)
        return layout if file in layout.members else None

    def around(self, file: Path) -> Layout:
        """The project that a file lies in, whether or not it is one of its files."""
        if file.parent not in self._roots:
            self._roots[file.parent] = root_of(file)
        root = self._roots[file.parent]
        if root not in self._found:
            self._found[root] = self._layout(root)
        return self._found[root]

    def _layout(self, root: Path) -> Layout:
        most = MOST_FOLDERS if is_marked(root) else MOST_FOLDERS_UNMARKED
        try:
            found = files_below(root, self._options_for, respect_gitignore=self._respect_gitignore, most=most)
        except TooManyError:
            self.given_up.append(root)
            return Layout(root)
        files = tuple(file for file in found if self._is_own(file, root))
        if len(files) > MOST_FILES:
            self.given_up.append(root)
            return Layout(root)
        return Layout(root, files, self._options_for(root).project_kind)

    def _is_own(self, file: Path, root: Path) -> bool:
        """Whether a file belongs to this project, and to no other one within it."""
        for folder in file.parents:
            if folder == root:
                break
            if self._is_root(folder):
                return False
        most = most_bytes(file, self._options_for(file.parent).max_file_size)
        try:
            return not most or file.stat().st_size <= most
        except OSError:
            return True

    def _is_root(self, folder: Path) -> bool:
        if folder not in self._are_roots:
            self._are_roots[folder] = is_root(folder)
        return self._are_roots[folder]

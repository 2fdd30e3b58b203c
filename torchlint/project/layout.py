"""Which files make up a project: found once, before any of them is read, and told to every process.

Every file is part of one project at most. Where one project lies within another, its files are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import ConfigError
from torchlint.documents import is_document
from torchlint.files import TooManyError, files_below
from torchlint.options import AUTO, Options
from torchlint.project.configs import named_by
from torchlint.project.roots import is_built, is_marked, is_root, roots_around, roots_of
from torchlint.source import is_notebook, most_bytes

if TYPE_CHECKING:
    from torchlint.project.index import Index
    from torchlint.project.records import Records

MOST_FOLDERS = 10_000
"""A project of more folders than these is not looked at: more likely it is somebody's home."""
MOST_FILES = 10_000
"""The same for files, which are all read to find who imports what."""
MOST_FOLDERS_UNMARKED = 200
"""The same for a folder in which nothing says that it is the root of a project."""


@dataclass(frozen=True)
class Layout:
    """Where a project lies, and its files in order."""

    root: Path
    files: tuple[Path, ...] = ()
    kind: str = AUTO
    """What the configuration says of who may import what the project exports."""
    src: tuple[str, ...] = ()
    """Where else the configuration wants imports to be looked up, relative to the root."""
    configs: Mapping[Path, tuple[Path, ...]] = field(default_factory=dict)
    """The configuration files that each of the files names."""
    notebooks: frozenset[Path] = frozenset()
    """Those of the files that are notebooks."""
    configurable: frozenset[Path] = frozenset()
    """The files of YAML and JSON that programs may name."""

    def with_texts(self, texts: Mapping[Path, str]) -> Layout:
        """Return the layout in which some files say something else than on the disk:
        what an editor has open.
        """
        if not texts or not self.configurable:
            return self
        programs = {path for path in texts if path in self.members and not is_document(path)}
        programs.update(file for file, named in self.configs.items() if not texts.keys().isdisjoint(named))

        def content(path: Path) -> bytes | None:
            return texts[path].encode("utf-8", "replace") if path in texts else None

        configs = {file: documents for file, documents in self.configs.items() if file not in programs}
        configs |= named_by(sorted(programs), self.root, self.configurable, content)
        return self if configs == self.configs else replace(self, configs=configs)

    @cached_property
    def documents(self) -> tuple[Path, ...]:
        """The configuration files, in order."""
        return tuple(sorted({path for named in self.configs.values() for path in named}, key=str))

    @cached_property
    def every(self) -> tuple[Path, ...]:
        """The files, and behind them the configuration files."""
        return (*self.files, *self.documents)

    @cached_property
    def members(self) -> frozenset[Path]:
        """All of them, to look one up."""
        return frozenset(self.every)

    @cached_property
    def library(self) -> bool:
        """Whether others may import what the project exports, where nobody sees it."""
        return is_built(self.root) if self.kind == AUTO else self.kind == "library"

    @cached_property
    def ranks(self) -> dict[Path, int]:
        """The place of each in their order."""
        return {file: rank for rank, file in enumerate(self.every)}

    def index(self, known: Records | None = None) -> Index:
        """Return the records of the files, those of earlier runs ``known``;
        none is read before it is asked for.
        """
        from torchlint.project.configs import Configs
        from torchlint.project.index import Index
        from torchlint.project.records import record
        from torchlint.project.roots import source_folders

        configs = Configs(self.root, self.configs)
        made = record if known is None else known.of
        return Index(
            source_folders(self.root, self.src),
            self.files,
            configs,
            notebooks=self.notebooks,
            library=self.library,
            record=made,
        )


class Layouts:
    """The layouts of the projects that files belong to, each found when it is first asked for.

    ``options_for`` gives the options of the files in a folder: what they exclude, and what is larger than
    they allow, is no part of a project. ``content`` gives the bytes of a file that count instead of those on
    the disk: what is staged.
    """

    def __init__(
        self,
        options_for: Callable[[Path], Options],
        *,
        respect_gitignore: bool = True,
        content: Callable[[Path], bytes | None] = lambda _: None,
    ) -> None:
        self._options_for = options_for
        self._respect_gitignore = respect_gitignore
        self._content = content
        self._found: dict[Path, Layout] = {}
        self._too_large: set[Path] = set()
        self._roots: dict[tuple[Path, bool], Path] = {}
        self._are_roots: dict[Path, bool] = {}
        self.given_up: list[Path] = []
        """The roots of projects that have too many folders or files to be looked at."""

    def of(self, file: Path, texts: Mapping[Path, str] | None = None) -> Layout | None:
        """Return the project that a file is one of the files of; None if its settings want it judged alone.

        ``texts`` count instead of what their files say on the disk.
        """
        if not self._options_for(file.parent).project:
            return None
        layout = self.around(file).with_texts(texts or {})
        return layout if file in layout.members else None

    def documents_below(self, folders: Iterable[Path], files: Iterable[Path]) -> tuple[Path, ...]:
        """Return the configuration files in some folders that the code of projects reads, in order.

        Those are the projects of the folders and of ``files``.
        """
        folders = tuple(folders)
        layouts = {id(layout): layout for file in files if (layout := self.of(file)) is not None}
        for folder in folders:
            if self._options_for(folder).project:
                layout = self._found[self._first_usable(roots_around(folder))]
                layouts[id(layout)] = layout
        documents = {path for layout in layouts.values() for path in layout.documents}
        return tuple(sorted(path for path in documents if any(folder in path.parents for folder in folders)))

    @property
    def found(self) -> tuple[Layout, ...]:
        """The projects that were asked for so far."""
        return tuple(self._found.values())

    def around(self, file: Path) -> Layout:
        """Return the project that a file lies in, whether or not it is one of its files."""
        key = file.parent, is_document(file)
        if key not in self._roots:
            roots = roots_around(file.parent) if is_document(file) else roots_of(file)
            self._roots[key] = self._first_usable(roots)
        return self._found[self._roots[key]]

    def _first_usable(self, roots: Sequence[Path]) -> Path:
        """Return the first of some roots whose project is not too large to be looked at, or else the last."""
        for root in roots:
            if root in self._too_large:
                continue
            layout = self._found.get(root) or self._layout(root)
            if layout is not None:
                self._found[root] = layout
                return root
            self._too_large.add(root)
        last = roots[-1]
        if last not in self._found:
            self.given_up.append(last)
            self._found[last] = Layout(last)
        return last

    def _layout(self, root: Path) -> Layout | None:
        """Return the layout of the project with a root; None if it has too many folders or files."""
        most = MOST_FOLDERS if is_marked(root) else MOST_FOLDERS_UNMARKED
        documents: set[Path] = set()
        try:
            found = files_below(
                root,
                lambda folder: self._options_in(folder, root),
                respect_gitignore=self._respect_gitignore,
                most=most,
                documents=documents,
            )
        except TooManyError:
            return None
        files = tuple(file for file in found if self._is_own(file, root))
        if len(files) > MOST_FILES:
            return None
        options = self._options_for(root)
        named = named_by(files, root, documents, self._content)
        notebooks = frozenset(filter(self._is_notebook, files))
        return Layout(root, files, options.project_kind, options.src, named, notebooks, frozenset(documents))

    def _options_in(self, folder: Path, root: Path) -> Options:
        """Return the options in a folder of the project with a root, or of another project within it,
        whose configuration need not be valid: its files are not asked for.
        """
        try:
            return self._options_for(folder)
        except ConfigError:
            if not self._is_another(folder, root):
                raise
            return self._options_for(root)

    def _is_another(self, folder: Path, root: Path) -> bool:
        """Return whether a folder below the root of a project belongs to another project within it."""
        for place in (folder, *folder.parents):
            if place == root:
                break
            if self._is_root(place):
                return True
        return False

    def _is_own(self, file: Path, root: Path) -> bool:
        """Return whether a file belongs to this project, and to no other one within it."""
        if self._is_another(file.parent, root):
            return False
        most = most_bytes(self._is_notebook(file), self._options_for(file.parent).max_file_size)
        try:
            return not most or file.stat().st_size <= most
        except OSError:
            return True

    def _is_notebook(self, file: Path) -> bool:
        return is_notebook(file, self._options_for(file.parent).extension)

    def _is_root(self, folder: Path) -> bool:
        if folder not in self._are_roots:
            self._are_roots[folder] = is_root(folder)
        return self._are_roots[folder]

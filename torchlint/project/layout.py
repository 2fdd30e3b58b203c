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
from torchlint.files import TooManyError, files_below, is_excluded, repository
from torchlint.options import AUTO, Options
from torchlint.project.configs import named_by
from torchlint.project.roots import (
    editable,
    environment_of,
    imported_names,
    is_built,
    is_root,
    is_whole,
    roots_around,
    roots_of,
)
from torchlint.source import SourceError, is_folder, is_notebook, most_bytes, read_bytes

if TYPE_CHECKING:
    from torchlint.project.index import Index
    from torchlint.project.records import Records

MOST_FOLDERS = 10_000
"""A project of more folders than these is not looked at: more likely it is somebody's home."""
MOST_FILES = 10_000
"""The same for files, which are all read to find who imports what."""
MOST_FOLDERS_UNMARKED = 200
"""The same for a folder in which nothing says that it is a package, or the root of a project."""


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
    installed: tuple[tuple[str, Path], ...] = ()
    """The packages and modules that are installed editable, and lie in the same repository."""
    lent: frozenset[Path] = frozenset()
    """Those of the files that belong to other projects, which are installed editable."""
    elsewhere: tuple[tuple[str, Path], ...] = ()
    """Those that are not looked at: they lie outside of the repository, are excluded, or too large."""

    def with_texts(self, texts: Mapping[Path, str]) -> Layout:
        """Return the layout in which some files say something else than on the disk:
        what an editor has open.
        """
        if not texts or not self.configurable:
            return self
        own = self.members - self.lent
        programs = {path for path in texts if path in own and not is_document(path)}
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
            source_folders(self.root, self.src, self.installed),
            self.files,
            configs,
            lent=self.lent,
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
        self._editable: dict[Path, dict[str, Path]] = {}
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
        most = MOST_FOLDERS if is_whole(root) else MOST_FOLDERS_UNMARKED
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
        kind, src = options.project_kind, options.src
        layout = Layout(root, files, kind, src, named, notebooks, frozenset(documents))
        return self._with_installed(layout)

    def _with_installed(self, layout: Layout) -> Layout:
        """Return the layout with what its files import from editable installations, and what that imports.

        Only what lies in the same repository is looked at: the findings in a file do not depend on which
        others are checked with it.
        """
        root, own = layout.root, layout.members
        top = repository(root) or root
        environment = environment_of(root, top)
        if environment not in self._editable:
            self._editable[environment] = editable(environment)
        if not self._editable[environment]:
            return layout
        folders = {up for folder in {file.parent for file in own} for up in (folder, *folder.parents)}
        elsewhere, remaining, installed = {}, {}, {}
        for name, place in self._editable[environment].items():
            inside = _as_below(place, top)
            if inside is None:
                elsewhere[name] = place
            elif inside in own or inside in folders:
                installed[name] = inside
            else:
                remaining[name] = inside
        files, new = dict.fromkeys(layout.files), layout.files
        while remaining and new:
            first = {name: name.partition(".")[0] for name in remaining}
            imported = self._imported(new, frozenset(first.values()))
            new = ()
            for name in [name for name in remaining if first[name] in imported]:
                place = remaining.pop(name)
                found = self._files_at(place, top, MOST_FILES - len(files))
                if found is None:
                    elsewhere[name] = place
                    continue
                installed[name] = place
                new += tuple(file for file in found if file not in files)
                files.update(dict.fromkeys(found))
        lent = frozenset(files) - own
        return replace(
            layout,
            files=tuple(files),
            notebooks=layout.notebooks | frozenset(filter(self._is_notebook, lent)),
            installed=tuple(sorted(installed.items())),
            lent=lent,
            elsewhere=tuple(sorted(elsewhere.items())),
        )

    def _files_at(self, place: Path, top: Path, most: int) -> tuple[Path, ...] | None:
        """Return the files of a package, or of a module that is a file, in a repository; None if they are
        excluded or ignored, more than ``most``, or in too many folders.
        """
        gitignore, folder = self._respect_gitignore, is_folder(place)
        if is_excluded(place, folder, self._options_for, gitignore, top, []):
            return None
        if not folder:
            return (place,)
        try:
            found = files_below(place, self._options_for, respect_gitignore=gitignore, most=MOST_FOLDERS)
        except TooManyError:
            return None
        own = tuple(file for file in found if self._is_own(file, place))
        return own if len(own) <= most else None

    def _imported(self, files: Iterable[Path], modules: frozenset[str]) -> frozenset[str]:
        """Return those of some top-level modules that files may import."""
        found: set[str] = set()
        for file in files:
            try:
                data = self._content(file)
                text = (read_bytes(file) if data is None else data).decode("utf-8", "replace")
            except SourceError:
                continue
            # Most texts have none of the words.
            if any(module in text for module in modules - found):
                found |= modules.intersection(imported_names(text))
        return frozenset(found)

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


def _as_below(place: Path, top: Path) -> Path | None:
    """Return a place as the files below ``top`` are spelled, whatever links lead there; None for another."""
    try:
        return top / place.resolve().relative_to(top.resolve())
    except (OSError, RuntimeError, ValueError):
        return None

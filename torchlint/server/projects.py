"""Which settings hold for an open text, and which project it is part of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from torchlint import config, registry, target
from torchlint.config import ConfigError, Resolver
from torchlint.documents import DOCUMENTS, is_document
from torchlint.files import absolute, discover
from torchlint.options import INCLUDED, LintSettings
from torchlint.project.layout import Layout, Layouts
from torchlint.scope import Advice, Scope
from torchlint.server.preferences import Preferences

# What a text that is no file yet counts as, in the first folder.
_UNNAMED = "untitled.py"


class Projects:
    """The settings of all folders, and the projects in them.

    ``complain`` is told what is wrong with a config file, once until that changes; the settings that held
    before go on to hold. ``configs`` and ``isolated`` are those of the command line; see `Resolver`.
    """

    def __init__(
        self, complain: Callable[[str], None], configs: Sequence[str] = (), *, isolated: bool = False
    ) -> None:
        self._complain = complain
        self._configs = tuple(configs)
        self._isolated = isolated
        self._preferences = Preferences()
        self._folders: list[Path] = []
        self._resolvers: dict[Path, Resolver] = {}
        self._known: dict[Path | None, LintSettings | None] = {}
        # What held for a text before the config files were read again.
        self._former: dict[Path | None, LintSettings | None] = {}
        self._layouts: dict[Path, Layouts] = {}
        self.generation = 0
        """Another number once something may have changed on the disk."""
        # What was found wrong since the settings were last read anew, and before that.
        self._wrong: set[str] = set()
        self._formerly_wrong: set[str] = set()

    @property
    def preferences(self) -> Preferences:
        """The editor's own settings."""
        return self._preferences

    def prefer(self, given: object) -> None:
        """Take over the editor's own settings; of wrong ones nothing."""
        try:
            self._preferences = Preferences.read(given)
        except ConfigError as error:
            self._tell(str(error))
        self.reload()

    def use(self, folders: Iterable[Path]) -> None:
        """Take over the folders that the editor has open."""
        self._folders = sorted(map(absolute, folders), key=lambda folder: len(folder.parts), reverse=True)
        self.reload()

    def reload(self) -> None:
        """Read all config files anew when they are next needed."""
        target.forget()
        self._former.update(self._known)
        self._known.clear()
        self._resolvers.clear()
        self.look_again()
        self._wrong, self._formerly_wrong = set(), self._wrong

    def look_again(self) -> None:
        """Find out anew which files projects have, and what is in them, when that is next needed."""
        self._layouts.clear()
        self.generation += 1

    def layout(self, file: Path, texts: Mapping[Path, str]) -> Layout | None:
        """Return the project that a file is one of the files of; None if it is to be judged alone.

        ``texts`` is what the editor has open of any file.
        """
        path = absolute(file)
        folder = self._folder(path)
        try:
            resolver = self._resolver(folder)
            if folder not in self._layouts:
                self._layouts[folder] = Layouts(
                    lambda place: resolver.settings(place).options,
                    respect_gitignore=resolver.settings(path.parent).options.respect_gitignore,
                )
            return self._layouts[folder].of(path, texts)
        except (ConfigError, registry.RegistryError) as error:
            self._tell(str(error))
            return None

    def concerns(self, file: Path) -> bool:
        """Return whether findings may be others once a file says something else:
        not if no program reads it.
        """
        if not is_document(file):
            return True
        layouts = (layout for layouts in self._layouts.values() for layout in layouts.found)
        return any(absolute(file) in layout.members for layout in layouts)

    def _folder(self, path: Path) -> Path:
        """Return the folder that the editor has open around a file; the file's own without one."""
        return next((folder for folder in self._folders if folder in path.parents), path.parent)

    def settings(self, file: Path | None) -> LintSettings | None:
        """Return what holds for a file, or for a text without one; None if it is not to be checked."""
        if file not in self._known:
            try:
                self._known[file] = self._settings(file)
            except (ConfigError, registry.RegistryError) as error:
                self._tell(str(error))
                self._known[file] = self._former.get(file)
        return self._known[file]

    def _settings(self, file: Path | None) -> LintSettings | None:
        if file is None:
            return self._resolver(self._first).lint(self._first / _UNNAMED)
        path = absolute(file)
        folder = self._folder(path)
        resolver = self._resolver(folder)
        chosen = resolver.settings(path.parent).options
        found = discover(
            (path,),
            lambda place: resolver.settings(place).options,
            respect_gitignore=chosen.respect_gitignore,
            force_exclude=True,
            # What is looked up elsewhere, in an environment for instance, is excluded wherever it is.
            root=folder if folder in self._folders else Path(path.anchor),
        )
        return resolver.lint(path) if found.files else None

    def scope(self, file: Path | None) -> Scope:
        """Return which findings of a file are shown and fixed: those of enough impact;
        advice only if wanted.
        """
        path = absolute(file if file is not None else self._first / _UNNAMED)
        try:
            chosen = self._resolver(self._folder(path)).settings(path.parent).options
        except (ConfigError, registry.RegistryError) as error:
            self._tell(str(error))
            return Scope()
        return Scope(impact=chosen.least, advice=Advice(chosen.advice))

    @property
    def _first(self) -> Path:
        """The folder that a text without a file counts as in."""
        return self._folders[-1] if self._folders else Path.cwd()

    def _resolver(self, folder: Path) -> Resolver:
        if folder not in self._resolvers:
            self._resolvers[folder] = self._preferences.resolver(
                registry.catalogue(), folder, self._configs, isolated=self._isolated
            )
        return self._resolvers[folder]

    def _tell(self, message: str) -> None:
        if message not in self._wrong | self._formerly_wrong:
            self._complain(message)
        self._wrong.add(message)


_SETTINGS = (*dict.fromkeys((*config.FILE_NAMES, *target.FILES)), *target.PATTERNS, ".gitignore", ".ignore")


def is_setting(file: Path) -> bool:
    """Return whether settings are from a file, and not only findings."""
    return any(file.match(pattern) for pattern in _SETTINGS)


def watched() -> Iterator[str]:
    """Yield globs of the files on which findings depend: those of projects,
    and those that settings are from.
    """
    yield from (f"**/{pattern}" for pattern in (*INCLUDED, *DOCUMENTS, *_SETTINGS))

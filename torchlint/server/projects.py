"""Which settings hold for an open text: those of its folder's config file, and the editor's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from torchlint import config, registry, target
from torchlint.config import ConfigError, Resolver
from torchlint.files import absolute, discover
from torchlint.options import LintSettings
from torchlint.server.preferences import Preferences

# What a text that is no file yet counts as, in the first folder.
_UNNAMED = "untitled.py"


class Projects:
    """The settings of all folders.

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
        # What was said to be wrong of each folder, and, under None, of the editor's settings.
        self._told: dict[Path | None, str] = {}

    @property
    def preferences(self) -> Preferences:
        """The editor's own settings."""
        return self._preferences

    def prefer(self, given: object) -> None:
        """Take over the editor's own settings; of wrong ones nothing."""
        try:
            self._preferences = Preferences.read(given)
            self._told.pop(None, None)
        except ConfigError as error:
            self._tell(None, str(error))
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

    def settings(self, file: Path | None) -> LintSettings | None:
        """What holds for a file, or for a text without one; None if it is not to be checked."""
        if file not in self._known:
            folder = self._folder(file)
            try:
                self._known[file] = self._settings(file, folder)
                self._told.pop(folder, None)
            except (ConfigError, registry.RegistryError) as error:
                self._tell(folder, str(error))
                self._known[file] = self._former.get(file)
        return self._known[file]

    def _settings(self, file: Path | None, folder: Path) -> LintSettings | None:
        resolver = self._resolver(folder)
        if file is None:
            return resolver.lint(folder / _UNNAMED)
        path = absolute(file)
        chosen = resolver.settings(path.parent).options
        found = discover(
            (path,),
            lambda place: resolver.settings(place).options,
            respect_gitignore=chosen.respect_gitignore,
            force_exclude=True,
        )
        return resolver.lint(path) if found.files else None

    def _folder(self, file: Path | None) -> Path:
        """The innermost open folder that holds a file; the file's own if there is none."""
        if file is None:
            return self._folders[-1] if self._folders else Path.cwd()
        path = absolute(file)
        return next((folder for folder in self._folders if folder in path.parents), path.parent)

    def _resolver(self, folder: Path) -> Resolver:
        if folder not in self._resolvers:
            self._resolvers[folder] = self._preferences.resolver(
                registry.catalogue(), folder, self._configs, isolated=self._isolated
            )
        return self._resolvers[folder]

    def _tell(self, folder: Path | None, message: str) -> None:
        if self._told.get(folder) != message:
            self._told[folder] = message
            self._complain(message)


def watched() -> Iterator[str]:
    """Globs of the files on which settings depend."""
    yield from (f"**/{name}" for name in dict.fromkeys((*config.FILE_NAMES, *target.FILES)))
    yield from ("**/requirements*.txt", "**/requirements/*.txt", "**/.gitignore", "**/.ignore")

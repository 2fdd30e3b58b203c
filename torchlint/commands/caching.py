"""What runs of ``check`` remember, and where: no failure of it is more than a word to the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchlint import registry
from torchlint.cache import Cache, open_store
from torchlint.commands.terminal import Terminal
from torchlint.files import repository
from torchlint.rule import Rule
from torchlint.store import Store, StoreError, default_directory


@dataclass
class Memory:
    """The stores of one run. ``store`` is what the command line names, else the user's own; None without."""

    terminal: Terminal
    directory: Path | None
    store: Store | None
    code: str = ""

    @classmethod
    def of(cls, terminal: Terminal, directory: Path | None, *, off: bool = False) -> Memory:
        """What is remembered in ``directory``, the user's own cache without one; nothing if it is ``off``."""
        memory = cls(terminal, None if off else directory or default_directory(), None)
        memory.store = memory._open(memory.directory, named=directory is not None)
        return memory

    def catalogue(self) -> Mapping[str, Rule]:
        """The catalogue of the rules."""
        if self.store is None:
            return registry.catalogue()
        found = registry.known(self.store)
        self.code = found.code
        return found.catalogue

    def results(self, directory: Path | None, project: Path) -> Cache | None:
        """The results of earlier runs in a project, from ``directory`` if the options name one."""
        store = self.store
        if self.directory is not None and directory not in (None, self.directory):
            store = self._open(directory)
        if store is None or not self.code:
            return None
        return Cache(store, repository(project) or project, self.code)

    def _open(self, directory: Path | None, *, named: bool = True) -> Store | None:
        if directory is None:
            return None
        try:
            return open_store(directory.absolute()) if named else Store(directory)
        except StoreError as error:
            self.terminal.warn(f"{error}; nothing is remembered")
            return None

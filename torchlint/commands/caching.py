"""What runs of ``check`` remember, and where: no failure of it is more than a word to the user."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint import registry
from torchlint.cache import Cache, open_store
from torchlint.commands.terminal import Terminal
from torchlint.config import Layer, Settings, user_config
from torchlint.files import repository
from torchlint.project.roots import is_marked
from torchlint.rule import Rule
from torchlint.store import Store, StoreError, default_directory, own_key


@dataclass
class Memory:
    """The stores of one run. ``store`` is what the command line names, else the user's own; None without.

    What a project's config names is a project's: what is remembered there counts if this machine wrote it,
    and it must lie where the config does, or below.
    """

    terminal: Terminal
    directory: Path | None
    store: Store | None
    code: str = ""

    @classmethod
    def of(cls, terminal: Terminal, directory: Path | None, *, off: bool = False) -> Memory:
        """Return what is remembered in ``directory``, the user's own cache without one;
        nothing if it is ``off``.
        """
        memory = cls(terminal, None if off else directory or default_directory(), None)
        memory.store = memory._open(memory.directory, named=directory is not None)
        return memory

    def catalogue(self) -> Mapping[str, Rule]:
        """Return the catalogue of the rules."""
        if self.store is None:
            return registry.catalogue()
        found = registry.known(self.store)
        self.code = found.code
        return found.catalogue

    def results(self, settings: Settings, directory: Path, files: Sequence[Path] = ()) -> Cache | None:
        """Return the results of earlier runs in a project, from the folder that its settings name.

        The project is around the working ``directory``, unless some of the files lie outside of it.
        """
        store, layer = self.store, settings.origin("cache_dir")
        if self.directory is not None and layer is not None and settings.options.cache_dir != self.directory:
            store = self._named_by(layer)
        if store is None or not self.code:
            return None
        around = _around(directory, files)
        marked = next(filter(is_marked, (around, *around.parents)), around)
        return Cache(store, repository(around) or marked, self.code)

    def _named_by(self, layer: Layer) -> Store | None:
        directory: Path = layer.values["cache_dir"]
        if not of_project(layer):
            return self._open(directory)
        if outside(layer):
            self.terminal.warn(f"{refusal(layer)}; it is ignored")
            return self.store
        own = default_directory()
        key = own_key(own.with_name("key")) if own is not None else b""
        if not key:
            self.terminal.warn("the user's cache folder is not writable; results are not cached")
            return None
        return self._open(directory, key=key)

    def _open(self, directory: Path | None, *, named: bool = True, key: bytes = b"") -> Store | None:
        if directory is None:
            return None
        try:
            return open_store(directory.absolute(), key) if named else Store(directory)
        except StoreError as error:
            self.terminal.warn(f"{error}; results are not cached")
            return None


def of_project(layer: Layer) -> bool:
    """Return whether a layer of settings is a project's, and not what the user says."""
    return layer.path is not None and layer.path != user_config()


def outside(layer: Layer) -> bool:
    """Return whether the cache folder that a config file names lies elsewhere, links followed,
    than below it.
    """
    assert layer.path is not None
    folder, directory = (os.path.realpath(path) for path in (layer.path.parent, layer.values["cache_dir"]))
    return Path(folder) not in Path(directory).parents


def refusal(layer: Layer) -> str:
    """Return why the cache folder that a config file names is not used."""
    return (
        f"`cache-dir` of {layer.path} names a folder that is not below it, which only "
        "`--cache-dir` and TORCHLINT_CACHE_DIR may"
    )


def _around(directory: Path, files: Sequence[Path]) -> Path:
    """Return the folder that runs on the same files have in common: of many checkouts, each has its own."""
    if all(file.is_relative_to(directory) for file in files):
        return directory
    try:
        return Path(os.path.commonpath([file.parent for file in files]))
    except ValueError:  # on Windows, files of several drives
        return directory

"""Which files of a project may be used by code that the project does not show."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from torchlint.project.faces import LOOKING
from torchlint.project.index import Index
from torchlint.project.records import STAR
from torchlint.project.roots import INIT, entry_points, is_in_package, is_test

_LOADERS = frozenset({"hydra", "pkgutil", "runpy", "pydoc", "stevedore", "pluggy", "fire"})
"""Modules by which programs find code under names that their own text need not have."""


class Exposure:
    """What others may use of the files of a project.

    What a library exports is for everybody who installs it. Of an application all users are files of the
    project, unless it loads code under names that it computes. Another project has files of its own that use
    what it lends to this one.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._looked_into: dict[Path, bool] = {}

    def is_open(self, file: Path, name: str) -> bool:
        """Return whether code out of sight may use a name of the top level of a file."""
        if file in self._index.lent:
            return True
        if self._loads_by_name or self._names_nowhere & {file.stem, file.parent.name}:
            return True
        if self._is_looked_into(file):
            return True
        if any(entry.rpartition(":")[2] == name for entry in self._entry_points):
            return True
        return self._index.library and self._is_exported(file, name)

    def _is_looked_into(self, file: Path) -> bool:
        """Return whether the project may ask for what a file has by a name that it computes."""
        if file not in self._looked_into:
            self._looked_into[file] = any(
                LOOKING.search(self._index.text(user)) and self._has_as_object(user, file)
                for user in self._index.users(file)
            )
        return self._looked_into[file]

    def _is_exported(self, file: Path, name: str) -> bool:
        """Return whether a library hands out a name:
        no part of its dotted path has an underscore in front.
        """
        root = self._index.folders.root
        packaged = is_in_package(file) or any(
            file.is_relative_to(folder) for folder in (root / "src", *self._index.folders.declared)
        )
        if not packaged or is_test(file, root):
            return False
        parts = [name, *file.relative_to(root).with_suffix("").parts] if root in file.parents else [name]
        return not any(part.startswith("_") and part != "__init__" for part in parts)

    @cached_property
    def _loads_by_name(self) -> bool:
        records = map(self._index.record, self._index.files)
        return any(
            own.loads_by_name or any(each.module.partition(".")[0] in _LOADERS for each in own.imports)
            for own in records
        )

    @cached_property
    def _names_nowhere(self) -> frozenset[str]:
        """The names of the modules that imports should find in the project and do not."""
        found: set[str] = set()
        for file in self._index.files:
            for link in self._index.links(file):
                parts = [*link.statement.module.split("."), link.statement.name or ""]
                if link.missing:
                    found.update(parts[self._found(file, link.statement.level, parts) :])
                elif not link.places:
                    found.add(parts[0])
        return frozenset(found - {STAR, ""})

    def _found(self, file: Path, level: int, parts: list[str]) -> int:
        """Return how many leading parts of an import are in the project: 1 of ``data.sets.coco``
        where there is a package ``data`` without ``sets``.
        """
        ends = range(len(parts) - 1, 0, -1)
        return next((e for e in ends if self._index.module(file, ".".join(parts[:e]), level) is not None), 0)

    @cached_property
    def _entry_points(self) -> frozenset[str]:
        return entry_points(self._index.folders.root)

    def users(self, file: Path, name: str) -> frozenset[Path]:
        """Return the other files that may use a name of the top level of a file, tests among them."""
        index = self._index
        naming = index.at_ranks(index.speaking_of(index.ranked(index.users(file)), name))
        return frozenset(user for user in naming if self._may_use(user, file, name))

    def _may_use(self, user: Path, file: Path, name: str) -> bool:
        for link in self._index.links(user):
            if link.statement.name in (name, STAR) and any(place.file == file for place in link.places):
                return True
        return self._has_as_object(user, file)

    def _has_as_object(self, user: Path, file: Path) -> bool:
        """Return whether a file has another one as an object, of which any attribute can be asked for."""
        return any(
            place.file in (file, file.parent, file.parent / INIT) and place.definition is None
            for link in self._index.links(user)
            for place in link.places
            if link.statement.name != STAR
        )

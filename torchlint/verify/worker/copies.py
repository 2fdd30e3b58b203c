"""Where things of the user's project are in the copy that a program runs in.

A project can be on the path of imports by its own place: through PYTHONPATH, or because it is installed as
editable. Its modules have to come from the copy all the same, since that has the fixes, and a program that
writes beside its modules must not write into the user's folder.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

FILE_SYSTEM = "files"
"""The folder in the scratch place of a run whose inside stands for the whole file system: a copy lies in it
where the project lies in the real one, so that relative paths out of the project stay within it."""


def copied(path: str, project: Path, copy: Path) -> str:
    """Return the place in ``copy`` of a path within ``project``, both absolute; any other path as it is.

    What the copy leaves out, such as a virtual environment, stays where it is.
    """
    if not Path(path).is_absolute():
        return path
    real = Path(path).resolve()
    if not real.is_relative_to(project):
        return path
    place = copy / real.relative_to(project)
    return str(place) if place.exists() or not real.exists() else path


class Imports:
    """Stands before all finders of modules, and leads what they find in the project to the copy."""

    def __init__(self, project: Path, copy: Path) -> None:
        self._project, self._copy = project, copy

    def install(self) -> None:
        """Lead all later imports to the copy."""
        sys.path[:] = [self._copied(entry) for entry in sys.path]
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find, from the copy if it has that."""
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return self._led(spec)
        return None

    def _led(self, spec: ModuleSpec) -> ModuleSpec:
        places = spec.submodule_search_locations
        inside = None if places is None else [self._copied(place) for place in places]
        if spec.has_location and spec.origin is not None and self._copied(spec.origin) != spec.origin:
            file = self._copied(spec.origin)
            made = importlib.util.spec_from_file_location(spec.name, file, submodule_search_locations=inside)
            if made is not None:
                self._let_children_find(made)
                return made
        elif inside is not None and spec.origin is None and inside != list(places or ()):
            spec.submodule_search_locations = inside
        return spec

    def _let_children_find(self, spec: ModuleSpec) -> None:
        """Let processes that multiprocessing spawns, which have no such finder, find it by ``sys.path``."""
        place = Path(spec.origin or "")
        if spec.submodule_search_locations is not None:
            place = place.parent
        if place.name.partition(".")[0] == spec.name and str(place.parent) not in sys.path:
            sys.path.append(str(place.parent))

    def _copied(self, path: str) -> str:
        return copied(path, self._project, self._copy)

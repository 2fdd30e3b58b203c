"""The files of a project as a graph: what each of them is, and which others it imports."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from torchlint.parsing import breaks
from torchlint.project.index import Index, Link
from torchlint.project.records import STAR, DefinitionKind, Record, Standing
from torchlint.project.roots import INIT, is_in_package, is_test

_CONFIGURING = frozenset({"setup.py", "conf.py", "noxfile.py", "hubconf.py", "tasks.py"})


class FileKind(str, enum.Enum):
    """What a file of a project is there for."""

    PROGRAM = "program"
    NOTEBOOK = "notebook"
    LIBRARY = "library"
    TEST = "test"
    CONFIG = "config"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Edge:
    """That a file imports another one, and which of its names; none where it imports all of it."""

    target: Path
    names: tuple[str, ...]
    standing: Standing


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An import that should lead to a file of the project and does not, as the file spells it."""

    statement: str
    row: int


@dataclass(frozen=True, slots=True)
class Node:
    """One file, its imports from the project, those that lead nowhere, and the libraries that it imports.

    ``reads`` are the configuration files that it names.
    """

    file: Path
    kind: FileKind
    imports: tuple[Edge, ...]
    unresolved: tuple[Unresolved, ...]
    libraries: tuple[str, ...]
    reads: tuple[Path, ...] = ()


def node(index: Index, file: Path) -> Node:
    """Return a file as a node of the graph."""
    links = index.links(file)
    edges: dict[Path, tuple[dict[str, None], Standing]] = {}
    for link in links:
        # What a star brings from further files is imported by the file that has it.
        for place in link.places[:1] if link.statement.name == STAR else link.places:
            if place.file == file:
                continue
            names, standing = edges.get(place.file, ({}, link.statement.standing))
            if place.definition is not None:
                names[place.definition.name] = None
            edges[place.file] = names, min(standing, link.statement.standing)
    return Node(
        file=file,
        kind=kind_of(index, file),
        imports=tuple(Edge(target, tuple(names), standing) for target, (names, standing) in edges.items()),
        unresolved=unresolved(index, file),
        libraries=tuple(
            sorted(
                {
                    link.statement.module.partition(".")[0]
                    for link in links
                    if not link.places and not link.missing
                }
            )
        ),
        reads=index.configs.named(file),
    )


def unresolved(index: Index, file: Path) -> tuple[Unresolved, ...]:
    """Return the imports of a file that should lead to a file of the project and do not, each once."""
    missing = (link for link in index.links(file) if link.missing)
    return tuple(dict.fromkeys(Unresolved(_spelt(link), link.statement.row) for link in missing))


def row_of_import(index: Index, file: Path, name: str) -> int:
    """Return the line in which a file first imports a module, or one within it,
    that is not of the project; 0 without one.
    """
    found = (link.statement for link in index.links(file) if not link.places)
    return next((each.row for each in found if f"{each.module}.".startswith(f"{name}.")), 0)


def kind_of(index: Index, file: Path) -> FileKind:
    """Return what a file is there for, as its name, its text and the files that import it show."""
    record = index.record(file)
    if not record.readable or breaks(index.text(file)):
        return FileKind.UNREADABLE
    if file in index.notebooks:
        return FileKind.NOTEBOOK
    if is_test(file, index.folders.root):
        return FileKind.TEST
    if file.name in _CONFIGURING or (
        file.name != INIT and _only_sets(record) and not any(link.places for link in index.links(file))
    ):
        return FileKind.CONFIG
    started = record.acts and not is_in_package(file) and not index.importers(file)
    return FileKind.PROGRAM if record.guards_main or started else FileKind.LIBRARY


def _only_sets(record: Record) -> bool:
    """Return whether a file does nothing but give names to values."""
    kinds = {made.kind for made in record.definitions}
    return kinds == {DefinitionKind.VARIABLE} and not record.acts and not record.guards_main


def _spelt(link: Link) -> str:
    statement = link.statement
    module = "." * statement.level + statement.module
    if statement.name is None:
        return f"import {module}" if statement.bound is not None else f'import_module("{module}")'
    return f"from {module} import {statement.name}"

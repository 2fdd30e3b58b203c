"""What libraries gave up of which the table of upgrades says nothing: read from their releases.

Two lists for each library: the public names that a release has and the next one that was looked at lacks,
and the names of which the newest one says that they are deprecated. Much of it nobody needs to be told of:
helpers that were public by accident, and modules that moved as a whole. They are for who extends the table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.libraries import Library
from torchlint.semantics.api.upgrades import UPGRADES
from torchlint.semantics.names import canonical

PACKAGES = ("torch", "torchvision", "torchaudio")
_OTHER_PEOPLES = re.compile(r"\b_|\.(test|testing|prototype|fx|onnx|_inductor)\b|setup")


def missing(libraries: Mapping[str, Library], package: str) -> dict[str, Any]:
    """The two lists for one library, whose releases are given oldest first."""
    gone: dict[str, list[str]] = {}
    before: set[str] | None = None
    known = {canonical(row.symbol) for row in UPGRADES}
    for release, library in libraries.items():
        now = set(public_names(library, package))
        if before is not None:
            lost = sorted(name for name in before - now if canonical(name) not in known)
            if lost:
                gone[release] = lost
        before = now
    newest = list(libraries.values())[-1:]
    said = sorted({name for library in newest for name in _given_up(library, package)})
    return {"gone": gone, "deprecated": [name for name in said if canonical(name) not in known]}


def public_names(library: Library, package: str) -> Iterator[str]:
    """The functions and classes of public modules, by the modules that define them or hand them on."""
    for module, tree in library.modules(package):
        if _OTHER_PEOPLES.search(module):
            continue
        handed_on = library.is_package(module)
        for name in _bound(tree.body, imports=handed_on):
            if not name.startswith("_"):
                yield f"{module}.{name}"


def _bound(body: Iterable[ast.stmt], *, imports: bool) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            yield statement.name
        elif imports and isinstance(statement, ast.ImportFrom) and statement.level:
            yield from (alias.asname or alias.name for alias in statement.names if alias.name != "*")


def _given_up(library: Library, package: str) -> Iterator[str]:
    """The functions and classes that are decorated as deprecated."""
    for module, tree in library.modules(package):
        if _OTHER_PEOPLES.search(module):
            continue
        for node in tree.body:
            for each in (node, *node.body) if isinstance(node, ast.ClassDef) else (node,):
                if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and not each.name.startswith("_"):
                    if any("deprecated" in ast.unparse(mark) for mark in each.decorator_list):
                        owner = f"{module}.{node.name}" if isinstance(node, ast.ClassDef) else module
                        yield owner if each is node and owner != module else f"{owner}.{each.name}"

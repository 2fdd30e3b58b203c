"""What the code of a file names: its identifiers, and what it imports.

Comments, docstrings and other text are no code: they name nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from torchlint.semantics.module import Module
from torchlint.semantics.remembered import remembered


@remembered
def identifiers(module: Module) -> frozenset[str]:
    """Return all names of variables, attributes, parameters, functions, classes and imports in the code."""
    return frozenset(name.value for name in module.tree.nodes(cst.Name))


def imports(module: Module, packages: Iterable[str]) -> bool:
    """Return whether the file imports one of these packages or modules, or something of them."""
    return any(is_below(dotted, packages) for dotted in imported(module))


@remembered
def imported(module: Module) -> frozenset[str]:
    """Return the full names of what the file imports, wherever it does."""
    found: set[str] = set(module.names.star_modules)
    for plain in module.tree.nodes(cst.Import):
        found.update(module.source(alias.name) for alias in plain.names)
    for statement in module.tree.nodes(cst.ImportFrom):
        if statement.relative or statement.module is None or isinstance(statement.names, cst.ImportStar):
            continue
        package = module.source(statement.module)
        found.update(f"{package}.{module.source(alias.name)}" for alias in statement.names)
    return frozenset(found)


def is_below(dotted: str, packages: Iterable[str]) -> bool:
    """Return whether a dotted name is one of these packages, or something of them."""
    return any(dotted == package or dotted.startswith(f"{package}.") for package in packages)

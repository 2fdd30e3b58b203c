"""Imports that edits leave without a use, and the further edits that take them out."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import libcst as cst

from torchlint import imports
from torchlint.diagnostics import Edit
from torchlint.fixes.imports import remove_imports
from torchlint.semantics.names import ScopeKind
from torchlint.semantics.remembered import remembered
from torchlint.semantics.upgrading import root_of
from torchlint.semantics.wholeprogram import used_elsewhere

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

ImportStatement = cst.Import | cst.ImportFrom

# Packages that programs of torch load anyway, and that do nothing else when they are.
_LOADED = frozenset({"torch", "numpy"})
# Registers operators when it is loaded: some other import of it has to stay.
_REGISTERING = frozenset({"torchvision", "torchaudio", "torchtext"})
# Parts of torch that ``import torch`` brings; others are attributes only once somebody imports them.
_PARTS = frozenset(
    {
        *("torch.nn", "torch.nn.functional", "torch.autograd", "torch.optim", "torch.cuda", "torch.utils"),
        *("torch.utils.data", "torch.distributed", "torch.multiprocessing", "torch.jit"),
    }
)
# Code that finds names by what it computes.
_BY_NAME = re.compile(
    r"(?<![\w.])(?:exec|eval|globals|locals|__import__)\s*\(|(?<![\w.])vars\s*\(\s*\)|\bsys\.modules\b"
)


def without_unused_imports(module: Module, edits: Sequence[Edit], *, safe: bool) -> tuple[Edit, ...]:
    """Return the edits that take out of import statements the names whose uses all go with ``edits``.

    With ``safe``, only names that no other file uses from this one. None at all where one of them
    would meet with an edit that is made anyway.
    """
    text = module.tree.text
    gone = imports.given_up(text, edits)
    if not gone or module.tree.matches(_BY_NAME):
        return ()
    found = _removable(module)
    spans = sorted((edit.span.start, edit.span.end) for edit in edits)
    names: dict[ImportStatement, list[cst.ImportAlias]] = {}
    for name in gone & found.keys():
        alias, uses = found[name]
        if not all(imports.covered(spans, use) for use in uses):
            continue
        if not safe or _is_private(module, name, alias) or not used_elsewhere(module, name):
            statement = module.tree.parent(alias)
            assert isinstance(statement, (cst.Import, cst.ImportFrom))
            names.setdefault(statement, []).append(alias)
    added: list[Edit] = []
    for statement, aliases in names.items():
        if not _leaves_block(module, statement, names, edits):
            continue
        if _spares_attributes(module, statement, aliases):
            added += remove_imports(module, statement, aliases) or ()
    clash = any(
        mine.span.start < theirs.span.end and theirs.span.start < mine.span.end
        for mine in added
        for theirs in edits
    )
    return () if clash else tuple(added)


@remembered
def _removable(module: Module) -> dict[str, tuple[cst.ImportAlias, list[int]]]:
    """Return the imported names that may go,
    each with the import and the places of all its other occurrences.
    """
    tree = module.tree
    aliases: dict[str, list[cst.ImportAlias]] = {}
    for statement in _statements(module):
        if isinstance(statement.names, cst.ImportStar) or not _may_go(module, statement):
            continue
        for alias in statement.names:
            bound = _bound_name(alias)
            if bound is not None and _is_without_effect(module, statement, alias):
                aliases.setdefault(bound, []).append(alias)
    found: dict[str, tuple[cst.ImportAlias, list[int]]] = {}
    for name, places in imports.offsets(tree.text, aliases).items():
        alias = aliases[name][0]
        span = tree.span(alias)
        uses = [place for place in places if not span.start <= place < span.end]
        # ``from torch import nn`` and ``import torch.nn as nn`` have the name once, where they bind it.
        if len(aliases[name]) == 1 and len(places) == len(uses) + 1 and module.names.reads(name):
            found[name] = (alias, uses)
    return (
        found if tree.text.isascii() else {name: found[name] for name in found if _is_plain(tree.text, name)}
    )


def _is_plain(text: str, name: str) -> bool:
    """Return whether a name is spelt in one way only:
    the interpreter takes letters of other widths for the same.
    """
    return unicodedata.normalize("NFKC", text).count(name) == text.count(name)


def _bound_name(alias: cst.ImportAlias) -> str | None:
    """Return the name that an import binds;
    None for a re-export (``as`` the same name) and ``import a.b``.
    """
    if alias.asname is None:
        return alias.name.value if isinstance(alias.name, cst.Name) else None
    bound = alias.asname.name
    if not isinstance(bound, cst.Name):
        return None
    last = alias.name.attr if isinstance(alias.name, cst.Attribute) else alias.name
    same = isinstance(last, cst.Name) and last.value == bound.value
    return None if same and isinstance(alias.name, cst.Name) else bound.value


def _may_go(module: Module, statement: ImportStatement) -> bool:
    """Return whether nothing but uses speaks for an import: no condition around it, no comment beside it."""
    tree, line = module.tree, module.tree.statement(statement)
    if not isinstance(line, cst.SimpleStatementLine):
        return False
    around = tree.parent(line)
    while not isinstance(around, cst.Module):
        if isinstance(around, cst.If):
            test = around.test.attr if isinstance(around.test, cst.Attribute) else around.test
            if not (isinstance(test, cst.Name) and test.value == "TYPE_CHECKING"):
                return False
        elif not isinstance(around, (cst.IndentedBlock, cst.FunctionDef)):
            return False
        around = tree.parent(around)
    holder = tree.parent(line)
    if isinstance(holder, cst.IndentedBlock) and len(holder.body) == 1:
        return False
    span = tree.span(line)
    return tree.comment_behind(line) is None and "#" not in tree.text[span.start : span.end]


def _is_without_effect(module: Module, statement: ImportStatement, alias: cst.ImportAlias) -> bool:
    """Return whether the program would not miss that the import loads something."""
    if isinstance(statement, cst.ImportFrom):
        if statement.relative or statement.module is None:
            return False
        root = root_of(statement.module).value
    elif alias.asname is None:
        return False
    else:
        root = root_of(alias.name).value
    if root in _REGISTERING:
        return len(_statements_of(module).get(root, ())) > 1
    return root != "__future__" and (root in _LOADED or root in sys.stdlib_module_names)


@remembered
def _statements_of(module: Module) -> dict[str, list[ImportStatement]]:
    """Return the import statements by the package that they load."""
    found: dict[str, list[ImportStatement]] = {}
    for statement in _statements(module):
        if isinstance(statement, cst.ImportFrom):
            names = [] if statement.relative or statement.module is None else [statement.module]
        else:
            names = [alias.name for alias in statement.names]
        for root in {root_of(name).value for name in names}:
            found.setdefault(root, []).append(statement)
    return found


def _statements(module: Module) -> list[ImportStatement]:
    return [*module.tree.nodes(cst.Import), *module.tree.nodes(cst.ImportFrom)]


def _is_private(module: Module, name: str, alias: cst.ImportAlias) -> bool:
    """Return whether a name is the file's own affair: one of a function,
    or one with an underscore in front.
    """
    return name.startswith("_") or module.names.scope(alias).kind is ScopeKind.FUNCTION


def _leaves_block(
    module: Module,
    statement: ImportStatement,
    others: Collection[ImportStatement],
    edits: Sequence[Edit],
) -> bool:
    """Return whether a statement that does not go as well is left in the block of an import."""
    spans = sorted((edit.span.start, edit.span.end) for edit in edits if not edit.content.strip())
    line = module.tree.statement(statement)
    block = module.tree.parent(line)
    going = {module.tree.statement(other) for other in others}
    return not isinstance(block, cst.IndentedBlock) or any(
        other not in going and not imports.covered(spans, module.tree.span(other).start)
        for other in block.body
    )


def _spares_attributes(
    module: Module, statement: ImportStatement, aliases: Sequence[cst.ImportAlias]
) -> bool:
    """Return whether no comment belongs to the statement, and no other code needs the modules that it loads.

    ``torch.utils.checkpoint`` is an attribute only where somebody has imported it.
    """
    if len(aliases) == len(list(statement.names)):  # type: ignore[arg-type]
        above = module.tree.lines_above(module.tree.statement(statement))[:1]
        if above and above[0].startswith("#"):
            return False
    source = module.source
    for alias in aliases:
        dotted = source(alias.name)
        if isinstance(statement, cst.ImportFrom):
            assert statement.module is not None
            dotted = f"{source(statement.module)}.{dotted}"
        for loaded in _prefixes(dotted):
            last = loaded.rpartition(".")[2]
            if loaded not in _PARTS and re.search(
                rf"\.\s*{re.escape(last)}\b", _elsewhere(module, statement)
            ):
                return False
    return True


def _prefixes(dotted: str) -> list[str]:
    """Return ``torch.utils`` and ``torch.utils.checkpoint`` of the latter."""
    parts = dotted.split(".")
    return [".".join(parts[: count + 1]) for count in range(1, len(parts))]


def _elsewhere(module: Module, statement: ImportStatement) -> str:
    span = module.tree.span(statement)
    return module.tree.text[: span.start] + module.tree.text[span.end :]

"""Edits of import statements, and how a library name is spelt."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.diagnostics import Edit, Span
from torchlint.fixes.layout import Edits, end_of_line, first_decorator, insertion, newline_near, next_line
from torchlint.fixes.statements import insert_after, remove_statement
from torchlint.semantics.conventions import imports_torch
from torchlint.semantics.program import Program
from torchlint.semantics.upgrading import root_of
from torchlint.source import NEWLINE
from torchlint.syntax import SyntaxTree, alike

if TYPE_CHECKING:
    from torchlint.semantics.module import Module

_FUTURE, _STANDARD, _THIRD_PARTY, _LOCAL = range(4)


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a file can write a library name, and the edits (an import) that make it possible."""

    text: str
    edits: Edits


def spell(module: Module, qualified: str, at: cst.CSTNode) -> Spelling | None:
    """Return how to write a library name at a place, importing its root package if no import serves.

    None if the root package's own name means something else there, and of torch if the file imports
    nothing from it: whatever it calls torch's is not known to be.
    """
    text = module.names.spelling(qualified, at)
    if text is not None:
        return Spelling(text, ())
    root = qualified.partition(".")[0]
    if module.names.lookup(root, at) is not None or root in module.names.module_scope.bindings:
        return None
    if root == "torch" and not imports_torch(module.names):
        return None
    return Spelling(qualified, add_import(module, f"import {root}"))


def add_import(module: Module, code: str) -> Edits:
    """Make the import statement ``code`` part of the module, where a reader would look for it.

    Beside an import of the same package if the module has one at its top level, so that nothing new is
    loaded earlier than the author loads it; else after the imports at the head of the file, grouped by
    where they come from; else below the docstring and the ``__future__`` imports. No edit if the very same
    statement is there already.
    """
    tree = module.tree
    wanted = _import_statements(cst.parse_statement(code))[0]
    package = _package(wanted)
    body = list(tree.root.body)
    if any(alike(small, wanted) for line in body for small in _import_statements(line)):
        return ()
    same = [line for line in body if any(_package(small) == package for small in _import_statements(line))]
    if not same:
        return _add_import_to_head(tree, code)
    if isinstance(wanted, cst.Import):
        start = tree.span(same[0]).start
        return insertion(start, code + newline_near(tree, start))
    last = body.index(same[0])
    while last + 1 < len(body) and body[last + 1] in same:
        last += 1
    return _below(tree, body[last], code, blank_lines=0)


def insert_after_imports(module: Module, code: str, name: str) -> Edits | None:
    """Put ``code``, in which ``{}`` is the library name ``name``, below a program's imports."""
    end = Program.of(module).imports_end
    if end is None:
        return None
    last = max(module.tree.descendants(end), key=module.tree.order.__getitem__)
    spelling = spell(module, name, last)
    edits = insert_after(module, end, code.format(spelling.text)) if spelling is not None else None
    return (*edits, *spelling.edits) if spelling is not None and edits is not None else None


def remove_import(module: Module, alias: cst.CSTNode) -> Edits | None:
    """Drop one name from the import statement that brings it, or the statement if it brings nothing else.

    None if a comment would go with it.
    """
    tree = module.tree
    statement = tree.parent(alias)
    if not isinstance(statement, (cst.Import, cst.ImportFrom)):
        return None
    return remove_imports(module, statement, [alias])


def remove_imports(
    module: Module, statement: cst.Import | cst.ImportFrom, aliases: Collection[cst.CSTNode]
) -> Edits | None:
    """Drop some of the names that an import statement brings, or the statement if it brings no others.

    None if a comment would go with them.
    """
    tree = module.tree
    if isinstance(statement.names, cst.ImportStar):
        return None
    names = list(statement.names)
    kept = [index for index, name in enumerate(names) if not any(name is alias for alias in aliases)]
    if not kept:
        return remove_statement(module, statement)
    spans: list[Span] = []
    for index in range(kept[-1]):
        if index not in kept:
            spans.append(Span(tree.span(names[index]).start, tree.span(names[index + 1]).start))
    if kept[-1] < len(names) - 1:
        spans.append(Span(_name_end(tree, names[kept[-1]]), _name_end(tree, names[-1])))
    if any("#" in tree.text[span.start : span.end] for span in spans):
        return None
    return tuple(Edit(span, "") for span in _merged(spans))


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, those that touch made one."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].end == span.start:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return joined


def _name_end(tree: SyntaxTree, alias: cst.ImportAlias) -> int:
    """Return where an imported name ends, without the comma behind it."""
    return tree.span(alias.asname.name if alias.asname is not None else alias.name).end


def _add_import_to_head(tree: SyntaxTree, code: str) -> Edits:
    """Return an import of a package that the module does not import at its top level."""
    head: dict[int, cst.CSTNode] = {}
    header: cst.CSTNode | None = None
    for index, line in enumerate(tree.root.body):
        imports = _import_statements(line)
        if imports and _group(imports[0]) != _FUTURE:
            head[_group(imports[0])] = line
        elif imports or (index == 0 and _is_docstring(line)):
            header = line
        else:
            break
    if _THIRD_PARTY in head:
        return _below(tree, head[_THIRD_PARTY], code, blank_lines=0)
    above = head.get(_STANDARD, header)
    if above is not None:
        return _below(tree, above, code, blank_lines=1)
    if not tree.root.body:
        return insertion(len(tree.text), code + tree.root.default_newline)
    start = first_decorator(tree, tree.root.body[0])
    return insertion(start, code + newline_near(tree, start) * 2)


def _import_statements(line: cst.CSTNode) -> list[cst.Import | cst.ImportFrom]:
    """Return the imports on a line that holds nothing else."""
    if not isinstance(line, cst.SimpleStatementLine):
        return []
    imports = [small for small in line.body if isinstance(small, (cst.Import, cst.ImportFrom))]
    return imports if len(imports) == len(line.body) else []


def _group(statement: cst.Import | cst.ImportFrom) -> int:
    """Return where an import comes from, in the order in which the groups are written."""
    package = _package(statement)
    if package == "__future__":
        return _FUTURE
    if not package:
        return _LOCAL
    return _STANDARD if package in sys.stdlib_module_names else _THIRD_PARTY


def _package(statement: cst.Import | cst.ImportFrom) -> str:
    """Return the top-level package that an import statement loads; empty for a relative import."""
    if isinstance(statement, cst.Import):
        return root_of(statement.names[0].name).value
    return "" if statement.relative or statement.module is None else root_of(statement.module).value


def _is_docstring(line: cst.CSTNode) -> bool:
    return (
        isinstance(line, cst.SimpleStatementLine)
        and isinstance(line.body[0], cst.Expr)
        and isinstance(line.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _below(tree: SyntaxTree, line: cst.CSTNode, code: str, *, blank_lines: int) -> Edits:
    """Insert ``code`` as a line below the statement ``line``, apart from its neighbours by blank lines."""
    text = tree.text
    newline = newline_near(tree, tree.span(line).start)
    end = end_of_line(text, tree.span(line).end)
    follows = next_line(text, end)
    apart = follows == len(text) or NEWLINE.match(text, follows) is not None
    return insertion(end, newline * (1 + blank_lines) + code + ("" if apart else newline * blank_lines))

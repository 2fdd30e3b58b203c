"""Whether what a fix changes has run, from the lines that did."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from difflib import SequenceMatcher

_IMPORTS = (ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def reached(before: str, after: str, rows: Set[int]) -> bool:
    """Return whether any statement ran that is changed from ``before`` to ``after``.

    Imports that a fix adds run wherever it is made, so that they count for nothing, unless there is nothing
    else. A function has been reached once its body has.

    Args:
        before: the text of a file as its user has it.
        after: the text with the fix.
        rows: the lines of ``before`` that ran, from 1.
    """
    try:
        statements = _Statements(ast.parse(before))
    except (SyntaxError, ValueError):
        return True
    old, new = before.split("\n"), after.split("\n")
    touched: list[ast.stmt] = []
    for kind, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "insert":
            touched += statements.beside(start, new[first:last])
        elif kind != "equal":
            touched += [item for row in range(start + 1, end + 1) if (item := statements.at(row))]
    touched = [item for item in touched if not isinstance(item, _IMPORTS)]
    return not touched or any(_ran(item, rows) for item in touched)


class _Statements:
    """The statements of a file by line; a line that several share belongs to the innermost one."""

    def __init__(self, tree: ast.Module) -> None:
        self._by_row: dict[int, ast.stmt] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt):
                # Those inside come later, and take their lines over.
                for row in _head(node):
                    self._by_row[row] = node

    def at(self, row: int) -> ast.stmt | None:
        return self._by_row.get(row)

    def beside(self, row: int, lines: list[str]) -> Iterator[ast.stmt]:
        """Yield the statements that lines behind line ``row`` belong to: of their block,
        or what they decorate.
        """
        first = next((line for line in lines if line.strip()), "")
        if not first or first.lstrip().startswith(("import ", "from ", "#")):
            return
        around = [self.at(row + 1)] if first.lstrip().startswith("@") else [self.at(row), self.at(row + 1)]
        found = [item for item in around if item is not None]
        indent = len(first) - len(first.lstrip())
        yield from [item for item in found if item.col_offset == indent] or found


def _head(node: ast.stmt) -> range:
    """Return the lines of a statement without those of the block in it."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(item.lineno for item in decorators)])
    body: list[ast.stmt] = getattr(node, "body", [])
    last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
    return range(first, last + 1)


def _ran(node: ast.stmt, rows: Set[int]) -> bool:
    if isinstance(node, _FUNCTIONS):
        return not rows.isdisjoint(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
    return not rows.isdisjoint(_head(node))

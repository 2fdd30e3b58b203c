"""Makes a text that shows a problem small: statements are taken out as long as the problem stays."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable


def reduced(text: str, fails: Callable[[str], bool], seconds: float = 60) -> str:
    """Return ``text`` with as few lines as can be found in some seconds for which ``fails`` still holds."""
    end = time.monotonic() + seconds
    changed = True
    while changed:
        changed = False
        for start, stop in _blocks(text):
            if time.monotonic() > end:
                return text
            lines = _lines(text)
            candidate = "".join([*lines[:start], *lines[stop:]])
            if candidate != text and fails(candidate):
                text, changed = candidate, True
                break
    return text


def _lines(text: str) -> list[str]:
    return re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)


def _blocks(text: str) -> list[tuple[int, int]]:
    """Return ranges of lines that may go together, the longest first: statements,
    or lines if it is no program.
    """
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return [(number, number + 1) for number in range(len(_lines(text)))]
    found = {
        (node.lineno - 1 - len(getattr(node, "decorator_list", [])), node.end_lineno or node.lineno)
        for node in nodes
        if isinstance(node, ast.stmt)
    }
    return sorted(found, key=lambda block: block[0] - block[1])

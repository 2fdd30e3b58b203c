"""Patterns as in .gitignore, matched in time in proportion to pattern and path, whoever wrote them.

pathspec translates a pattern to a regular expression in which every wildcard may take more or less than at
first, so that ``a*a*a*a*b`` takes time without end on a long name. But the first place at which what stands
between two wildcards fits is as good as any later one. The expressions are rewritten to keep to it.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable
from typing import Any

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern

MOST_PATTERNS = 10_000
"""How many lines an ignore file may have: each takes a ten-thousandth of a second to be read."""

# No system has a path that is longer.
_LONGEST = 4_096
# Class of the patterns of this release of pathspec, which has changed its name.
_Translation = type(GitIgnoreSpec.from_lines(["a"]).patterns[0])
# What this module writes is for the expressions of the standard library, whatever else is installed.
_BACKEND: dict[str, Any] = (
    {"backend": "simple"} if "backend" in inspect.signature(GitIgnoreSpec).parameters else {}
)

# What pathspec's expressions are made of. What was a letter of the pattern is escaped if it means something.
_ANY_FOLDERS, _ANY_FOLDERS_AMID, _ANY = "(?:.+/)?", "(?:/.+)?/", "[^/]*"
_TOKEN = re.compile(
    rf"""(?P<amid>{re.escape(_ANY_FOLDERS_AMID)}) | (?P<any>{re.escape(_ANY)}) | (?P<end>\(\?.*|\$)
    | (?P<one>\[\^?\]?[^]]*\]\+?) | (?P<slash>/) | (?P<letter>\\.|[^\\()\[\]])""",
    re.VERBOSE | re.DOTALL,
)


def spec(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return what the lines of an ignore file match. A line that is no pattern matches nothing, as in git."""
    patterns: list[Any] = [pattern for pattern in map(_pattern, lines) if pattern is not None]
    return GitIgnoreSpec(patterns, **_BACKEND)


def is_pattern(line: str) -> bool:
    """Return whether a line of an ignore file is a pattern, and no comment, blank or malformed."""
    return _pattern(line) is not None


def _pattern(line: str) -> RegexPattern | None:
    if len(line) > _LONGEST:
        return None
    try:
        expression, include = _Translation.pattern_to_regex(line)
        if expression is None or include is None:
            return None
        with warnings.catch_warnings():
            # `[[:alpha:]]` may mean something else in Python one day.
            warnings.simplefilter("ignore", FutureWarning)
            return RegexPattern(re.compile(in_proportion(expression), re.DOTALL), include)
    except (ValueError, re.error):
        return None


def in_proportion(expression: str) -> str:
    """Return an expression of pathspec that matches the same paths, and names the same folder,
    without trying again.

    One with no more than one wildcard is left as it is, and so is one of a shape that is not known.
    """
    head = "^" + _ANY_FOLDERS if expression.startswith("^" + _ANY_FOLDERS) else "^"
    amid, wildcards = expression.count(_ANY_FOLDERS_AMID), expression.count(_ANY)
    if not expression.startswith("^") or amid * (1 + len(head) // 2) + wildcards < 2:
        return expression
    tokens = _tokens(expression[len(head) :])
    if tokens is None:
        return expression
    atoms = _Atoms()
    runs: list[list[tuple[str, str]]] = [[]]
    for kind, text in tokens:
        if kind == "amid":
            runs.append([])
        else:
            runs[-1].append((kind, text))
    *earlier, last = [_run(run, atoms) for run in runs]
    parts = ["^"]
    anywhere = head != "^"
    for run in earlier:
        parts += [atoms.first(f"(?:[^/]+/)*?{run}(?=/)") if anywhere else run, "/"]
        anywhere = True
    # Of the folders that fit, the innermost counts.
    parts += ["(?:[^/]+/)*" if anywhere else "", last]
    return "".join(parts)


class _Atoms:
    """Parts of an expression that match in one way only, which Python 3.10 has no brackets for."""

    def __init__(self) -> None:
        self._count = 0

    def first(self, expression: str) -> str:
        """Return an expression that takes the first way in which this one matches, and no other."""
        self._count += 1
        return f"(?=(?P<a{self._count}>{expression}))(?P=a{self._count})"


def _tokens(expression: str) -> list[tuple[str, str]] | None:
    """Return the parts of an expression, each with its kind; None if it has others."""
    found, at = [], 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None or match.lastgroup is None:
            return None
        found.append((match.lastgroup, match[0]))
        at = match.end()
    return found


def _run(tokens: list[tuple[str, str]], atoms: _Atoms) -> str:
    """Return the expression for names one below the other."""
    parts: list[str] = []
    begun: list[str] | None = None
    for kind, text in tokens:
        if kind == "any":
            if begun:
                parts.append(atoms.first("[^/]*?" + "".join(begun)))
            begun = []
            continue
        if kind in ("slash", "end") and begun is not None:
            # What stands before the end of a name fits in one place at most.
            parts += ["[^/]*", *begun]
            begun = None
        # A slash is none of the characters of a class, not even of `[!a]`.
        text = f"(?!/){text}" if kind == "one" and not text.startswith("[^/]") else text
        (parts if begun is None else begun).append(text)
    return "".join(parts if begun is None else [*parts, "[^/]*", *begun])

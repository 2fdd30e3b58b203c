"""Names for findings that stay the same while a file is edited: what trackers and baselines compare.

A fingerprint is made of the rule, the path, the code of the statement and the number of the finding among its
equals. The row is no part of it, nor is what a formatter changes: spaces, line breaks, quotes, parentheses
and trailing commas, and comments. So a finding that only moves, or is formatted, keeps its name.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from torchlint.diagnostics import Diagnostic
from torchlint.documents import is_document
from torchlint.magics import TOKEN

_NEWLINE = re.compile(r"[\r\n]")
_STRING = re.compile(r"""([a-zA-Z]*)('{3}|"{3}|'|")(.*)\2""", re.DOTALL)
_ESCAPED_QUOTE = re.compile(r"""\\['"]""")


def fingerprints(
    diagnostics: Sequence[Diagnostic], text: Callable[[Path], str | None], root: Path
) -> list[str]:
    """Return the fingerprint of each diagnostic, 64 hexadecimal digits, in the order given.

    ``text`` is the decoded text of a file, None if it cannot be read. Paths count relative to ``root``,
    with slashes on every system; a file outside of it counts by its whole path. No two diagnostics of
    one call have the same fingerprint; of equal ones the later has the higher number.
    """
    met: Counter[tuple[str, str, str]] = Counter()
    found = []
    for diagnostic in diagnostics:
        name = relative(diagnostic.path, root)
        content = text(diagnostic.path)
        line = "" if content is None else code(content, diagnostic.span.start, diagnostic.path)
        same = (diagnostic.code, name, line)
        parts = (*same, str(met[same]))
        met[same] += 1
        found.append(hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest())
    return found


def relative(path: Path, root: Path) -> str:
    """Return ``path`` below ``root`` with slashes; as it is, with slashes, if it does not lie below it."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def code(text: str, offset: int, path: Path) -> str:
    """Return what stands at ``offset``, written as no formatter would: the statement, or its header,
    without layout.

    A configuration file has no statements: there it is the line, with its spaces as one.
    """
    if is_document(path):
        return " ".join(_line(text, offset).split())
    return " ".join(_words(text, *_statement(text, offset)))


@lru_cache(maxsize=2)
def _starts(text: str) -> list[int]:
    """Return where the statements of a program begin:
    behind each line break that is in no brackets or string.
    """
    starts, depth = [0], 0
    for token in TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "newline" and depth == 0:
            starts.append(token.end())
        elif kind == "open":
            depth += 1
        elif kind == "close":
            depth = max(depth - 1, 0)
    return starts


def _statement(text: str, offset: int) -> tuple[int, int]:
    """Return the beginning and end of the statement that holds the character at ``offset``."""
    starts = _starts(text)
    at = bisect_right(starts, offset) - 1
    return starts[at], starts[at + 1] if at + 1 < len(starts) else len(text)


def _words(text: str, start: int, end: int) -> Iterator[str]:
    """Yield the tokens of a statement that no formatter adds, takes out or writes in another way."""
    comma = False
    for token in TOKEN.finditer(text, start, end):
        kind, word = token.lastgroup, token[0]
        if kind in ("space", "comment", "newline"):
            continue
        # A comma in front of a closing bracket comes and goes with line breaks.
        if comma and kind != "close":
            yield ","
        comma = word == ","
        if kind == "string":
            yield _unquoted(word)
        elif kind == "word":
            yield word.lower() if word[0].isdigit() else word
        elif not comma and word not in "()":
            yield word


def _unquoted(literal: str) -> str:
    """Return a string with one sort of quotes and prefixes."""
    found = _STRING.fullmatch(literal)
    if found is None:
        return literal
    prefix, _, inside = found.groups()
    return f'{prefix.lower().replace("u", "")}"{_ESCAPED_QUOTE.sub(_plain_quote, inside)}"'


def _plain_quote(found: re.Match[str]) -> str:
    return found[0][-1]


def _line(text: str, offset: int) -> str:
    """Return the text of the line that holds the character at ``offset``."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    end = _NEWLINE.search(text, offset)
    return text[start : end.start() if end else len(text)]

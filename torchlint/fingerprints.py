"""Names for findings that stay the same while a file is edited: what trackers and baselines compare.

A fingerprint is made of the rule, the path, the text of the line and the number of the finding among its
equals. The row is no part of it, nor are spaces, so that a finding that only moves keeps its name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from torchlint.diagnostics import Diagnostic

_NEWLINE = re.compile(r"[\r\n]")


def fingerprints(
    diagnostics: Sequence[Diagnostic], text: Callable[[Path], str | None], root: Path
) -> list[str]:
    """The fingerprint of each diagnostic, 64 hexadecimal digits, in the order given.

    ``text`` is the decoded text of a file, None if it cannot be read. Paths count relative to ``root``,
    with slashes on every system; a file outside of it counts by its whole path. No two diagnostics of
    one call have the same fingerprint; of equal ones the later has the higher number.
    """
    met: Counter[tuple[str, str, str]] = Counter()
    found = []
    for diagnostic in diagnostics:
        name = relative(diagnostic.path, root)
        content = text(diagnostic.path)
        line = "" if content is None else " ".join(_line(content, diagnostic.span.start).split())
        same = (diagnostic.code, name, line)
        parts = (*same, str(met[same]))
        met[same] += 1
        found.append(hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest())
    return found


def relative(path: Path, root: Path) -> str:
    """``path`` below ``root`` with slashes; as it is, with slashes, if it does not lie below it."""
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _line(text: str, offset: int) -> str:
    """The text of the line that holds the character at ``offset``."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    end = _NEWLINE.search(text, offset)
    return text[start : end.start() if end else len(text)]

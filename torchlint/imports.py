"""Names in the text of a file, and what edits leave of them; told without parsing it.

An occurrence is a whole word that no dot stands before, in code, strings and comments alike: what is only
mentioned may be meant (``__all__``, annotations in quotes, code that is commented out).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence

from torchlint.diagnostics import Edit

_NAME = re.compile(r"(?<![.\w])[^\W\d]\w*")
_STATEMENT = re.compile(
    r"(?:^|(?<=[\r;:]))[ \t\f]*(?:from\b[^#\r\n;]*?\b)?import\b(?:[ \t]*\([^()]*\)|(?:\\\r?\n|[^\r\n])*)",
    re.MULTILINE,
)


def words(text: str) -> set[str]:
    """Return the names that occur in a text."""
    return set(_NAME.findall(text))


def offsets(text: str, names: Collection[str]) -> dict[str, list[int]]:
    """Return where each of some names occurs."""
    found: dict[str, list[int]] = {name: [] for name in names}
    for match in _NAME.finditer(text):
        if match[0] in found:
            found[match[0]].append(match.start())
    return found


def written(edits: Iterable[Edit]) -> set[str]:
    """Return the names that edits write."""
    return set().union(*(words(edit.content) for edit in edits))


def given_up(text: str, edits: Sequence[Edit]) -> set[str]:
    """Return the names in what edits replace that they do not write again."""
    gone: set[str] = set().union(*(words(text[edit.span.start : edit.span.end]) for edit in edits))
    return gone - written(edits) if gone else gone


def in_statements(text: str) -> list[tuple[int, int]]:
    """Return where import statements may stand; strings that look like one are not told from them."""
    return [match.span() for match in _STATEMENT.finditer(text)]


def covered(places: Sequence[tuple[int, int]], offset: int) -> bool:
    """Return whether an offset lies in one of some sorted places."""
    at = bisect_right(places, (offset, len(places) and places[-1][1] + 1)) - 1
    return at >= 0 and places[at][0] <= offset < places[at][1]


def removed_by(text: str, changes: Sequence[Sequence[Edit]]) -> list[set[str]]:
    """Return for each change the imported names of which it leaves no occurrence, the import included."""
    statements = in_statements(text)
    gone: list[set[str]] = []
    for edits in changes:
        touched = [
            text[statements[at][0] : statements[at][1]]
            for edit in edits
            if (at := bisect_left(statements, (edit.span.end, 0)) - 1) >= 0
            and edit.span.start < statements[at][1]
        ]
        gone.append(given_up(text, edits) & words(" ".join(touched)) if touched else set())
    names = set().union(*gone)
    places = offsets(text, names) if names else {}
    spans = [sorted((edit.span.start, edit.span.end) for edit in edits) for edits in changes]
    return [
        {name for name in theirs if all(covered(own, place) for place in places[name])}
        for theirs, own in zip(gone, spans, strict=True)
    ]


def last_uses(text: str, changes: Sequence[Sequence[Edit]]) -> set[int]:
    """Return which changes have to be made later, as together, but none alone, they leave an import unused.

    They are numbers of ``changes``, which are in the order of the text: for each such name the last change
    that takes a use out. Made on its own, it can take the import out too.
    """
    statements = in_statements(text)
    imported = words(" ".join(text[start:end] for start, end in statements))
    givers: dict[str, list[int]] = {}
    for number, edits in enumerate(changes):
        for name in given_up(text, edits) & imported:
            givers.setdefault(name, []).append(number)
    shared = {name for name, numbers in givers.items() if len(numbers) > 1}
    if not shared:
        return set()
    shared -= set().union(*(written(edits) for edits in changes))
    spans = sorted((edit.span.start, edit.span.end) for edits in changes for edit in edits)
    later: set[int] = set()
    for name, places in offsets(text, shared).items():
        left = [place for place in places if not covered(spans, place)]
        if left and all(covered(statements, place) for place in left):
            later.add(givers[name][-1])
    return later

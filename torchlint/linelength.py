"""The line length that a file keeps to, and fixes that keep to it as well.

An edit that makes a line too long breaks the brackets around what it writes, or within it: what they hold
goes on a line of its own, or each part of it does, as black writes it. Brackets that an earlier line opened
come first: if the line has several of their items, each gets a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchlint.diagnostics import Edit, Span
from torchlint.source import NEWLINE, apply, line_start

# What formatters and style guides cut at.
_USUAL = (79, 80, 88, 100, 119, 120)
# A file keeps to a length if it has enough lines, and some that nearly reach it.
_ENOUGH_LINES = 20
_NEARLY = 12
_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|#.*|[()\[\]{},]""")
_DIRECTIVE = re.compile(
    r"#\s*(?:type:|noqa|pragma|pylint|fmt|yapf|nosec|isort|pyright|mypy|ruff)", re.IGNORECASE
)
# Lines of these may begin in the string and still hold code.
_FORMATTED_OVER_LINES = re.compile(r"\b(?:[ft]r?|r[ft])(?:\"{3}|'{3})", re.IGNORECASE)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# Commas of these do not separate items.
_ONE_ITEM = re.compile(r"\b(?:for|lambda)\b|\"\"\"|'''")


def limit(text: str) -> int | None:
    """Return the usual length that all lines of a file keep to, with their comments;
    None if it shows none.
    """
    if _FORMATTED_OVER_LINES.search(text):
        return None
    lengths = [length for length in map(_length, NEWLINE.split(text)) if length]
    longest = max(lengths, default=0)
    most = next((usual for usual in _USUAL if longest <= usual), None)
    if most is None or len(lengths) < _ENOUGH_LINES or longest < most - _NEARLY:
        return None
    return most


def _code(line: str) -> str:
    """Return a line without the comment at its end."""
    comment = next((token.start() for token in _TOKEN.finditer(line) if token[0][0] == "#"), len(line))
    return line[:comment]


def _length(line: str) -> int:
    return len(line.rstrip().expandtabs(4))


def kept(text: str, edits: Sequence[Edit], most: int, indent: str) -> tuple[Edit, ...]:
    """Return the edits, with the lines broken that they make longer than ``most``.

    ``indent`` is one step of indentation. A line that no bracket lets break stays long.
    """
    lines: dict[int, list[Edit]] = {}
    for edit in edits:
        lines.setdefault(line_start(text, edit.span.start), []).append(edit)
    done: list[Edit] = []
    for start, own in lines.items():
        broken = _broken(text, start, own, most, indent)
        done += own if broken is None else [broken]
    return tuple(done)


def _broken(text: str, start: int, edits: Sequence[Edit], most: int, indent: str) -> Edit | None:
    """Return one edit in place of those of a line, if they make it too long and it can be broken."""
    ending = NEWLINE.search(text, start)
    end = ending.start() if ending else len(text)
    old = text[start:end]
    if any(edit.span.end > end or NEWLINE.search(edit.content) for edit in edits):
        return None
    new = apply(
        old, [Edit(Span(edit.span.start - start, edit.span.end - start), edit.content) for edit in edits]
    )
    same = any(not edit.content.strip() for edit in edits)
    if text[max(start - 3, 0) : start].rstrip("\r\n").endswith("\\"):
        return None
    if (
        same
        or _length(new) <= most
        or _length(_code(new)) <= most
        or _length(old) > most
        or new.rstrip().endswith("\\")
    ):
        return None
    lines = _items(text, start, end, new, most) or _split(new, _difference(old, new), most, indent)
    if lines is None:
        return None
    made = (ending.group() if ending else "\n").join(lines)
    first, last = _difference(old, made)
    return Edit(Span(start + first, start + len(old) - (len(made) - last)), made[first:last])


def _difference(old: str, new: str) -> tuple[int, int]:
    """Return where what is new begins and ends in ``new``."""
    first = _shared(old, new)
    return first, len(new) - _shared(old[first:][::-1], new[first:][::-1])


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _items(text: str, start: int, end: int, line: str, most: int) -> list[str] | None:
    """Return the items of brackets around the line, each as a line of its own;
    None if the line has only one of them, opens or closes brackets for other lines,
    or no earlier line is seen to open brackets.
    """
    pairs = _pairs(line)
    if not pairs or 2 * len(pairs) != sum(token[0] != "," for token in _tokens(line)):
        return None
    if _code(line) != line or _ONE_ITEM.search(line) or not _in_brackets(text, start, line):
        return None
    commas = [token.end() for token in _tokens(line) if token[0] == ","]
    commas = [at for at in commas if not any(first < at <= last for first, last, _ in pairs)]
    margin = line[: len(line) - len(line.lstrip())]
    parts = [line[at:to].strip() for at, to in zip([0, *commas], [*commas, len(line)], strict=True)]
    parts = [margin + part for part in parts if part]
    if len(parts) < 2:
        return None
    following = NEWLINE.match(text, end)
    if following and not parts[-1].endswith(",") and text[following.end() :].lstrip()[:1] in tuple(")]}"):
        parts[-1] += ","
    return parts if max(map(_length, parts)) <= most else None


def _in_brackets(text: str, start: int, line: str) -> bool:
    """Return whether the lines above are items like those of ``line``, below a line that opens brackets."""
    margin = len(line) - len(line.lstrip())
    while start > 0:
        end = start - (2 if text.endswith("\r\n", 0, start) else 1)
        start = line_start(text, end)
        above = _code(text[start:end]).rstrip()
        if _ONE_ITEM.search(above):
            return False
        indent = len(above) - len(above.lstrip())
        if above.endswith(tuple(_CLOSING)):
            return indent < margin
        if not above.endswith(",") or indent != margin:
            return False
    return False


def _split(line: str, changed: tuple[int, int], most: int, indent: str) -> list[str] | None:
    """Return the line broken at the outermost pair of brackets around or in what was changed that will do;
    None if none does.
    """
    if '"""' in line or "'''" in line or (found := _pairs(line)) is None or _DIRECTIVE.search(line):
        return None
    first, last = changed
    margin = line[: len(line) - len(line.lstrip())]
    for start, end, commas in (pair for pair in found if pair[0] < last and first <= pair[1]):
        body = line[start + 1 : end].strip()
        head, tail = line[: start + 1], margin + line[end:]
        if not body or max(_length(head), _length(_code(tail))) > most:
            continue
        if _length(margin + indent + body) <= most:
            return [head, margin + indent + body, tail]
        parts = [line[at:to].strip() for at, to in zip([start + 1, *commas], [*commas, end], strict=True)]
        parts = [margin + indent + part for part in parts if part]
        if len(parts) > 1 and not _ONE_ITEM.search(_outside(line, start, end, found)):
            parts[-1] += "" if parts[-1].endswith(",") else ","
            if max(map(_length, parts)) <= most:
                return [head, *parts, tail]
    return None


def _outside(line: str, start: int, end: int, found: Sequence[tuple[int, int, list[int]]]) -> str:
    """Return what a pair of brackets holds itself, without what brackets within it hold."""
    own, at = "", start + 1
    for first, last, _ in found:
        if at <= first and last < end:
            own, at = own + line[at:first] + " ", last + 1
    return own + line[at:end]


def _pairs(line: str) -> list[tuple[int, int, list[int]]] | None:
    """Return the pairs of brackets of a line, the outermost first,
    each with the places behind its own commas.

    None if the line closes brackets that it does not open, or is not made of pairs.
    """
    found: list[tuple[int, int, list[int]]] = []
    opened: list[tuple[int, str, list[int]]] = []
    for token in _tokens(line):
        at, sign = token.start(), token[0]
        if sign in _CLOSING:
            opened.append((at, _CLOSING[sign], []))
        elif sign == ",":
            if opened:
                opened[-1][2].append(at + 1)
        elif opened and opened[-1][1] == sign:
            start, _, commas = opened.pop()
            found.append((start, at, commas))
        elif opened:
            return None
    return sorted(found)


def _tokens(line: str) -> Iterator[re.Match[str]]:
    return (token for token in _TOKEN.finditer(line) if token[0][0] in "()[]{},")

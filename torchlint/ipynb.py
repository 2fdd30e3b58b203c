"""Where the cells of a notebook stand in its JSON, and how their sources are replaced there.

The JSON is never written anew: the string literals of lines that changed are exchanged, and every other
byte stays, the outputs, the order of the keys and the indentation among them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

from torchlint.diagnostics import Edit, Position, Span
from torchlint.source import NEWLINE, SourceError, apply

FORMATS = (3, 4)
# Where a string is split into lines: by every program, and by `str.splitlines`.
_LINE_ENDS = ("\n", *"\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MANY = 2_000
# What nobody has written: a cell takes a third of a millisecond, a key or a line a hundredth of that.
_MOST_CELLS, _MOST_STEPS = 10_000, 200_000
_SPACE = re.compile(r"[ \t\n\r]*")
# One character of a string as JSON spells it; a surrogate pair is one.
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL
)
_ESCAPED = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")
# Half of a pair, which UTF-8 cannot hold.
_SURROGATE = re.compile("[\ud800-\udfff]")
_PYTHON = re.compile(r"i?python[\d.]*", re.IGNORECASE)
_DECODER = json.JSONDecoder()


class _MalformedError(Exception):
    """What is wrong with a notebook, and the offset in its JSON."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a source: the characters that it stands for, and how JSON spells them, without quotes."""

    text: str
    raw: str


@dataclass(frozen=True)
class CodeCell:
    """The source of a code cell: ``number`` among all cells, from 1, and its value at ``[start, end)``.

    ``gaps`` are what stands around the literals of a list, brackets and commas included, and empty for a
    source that is one literal.
    """

    number: int
    start: int
    end: int
    literals: tuple[Piece, ...]
    gaps: tuple[str, ...]
    python: bool = True

    @cached_property
    def text(self) -> str:
        """The source as one text."""
        return "".join(literal.text for literal in self.literals)

    def place(self, offset: int) -> int:
        """Return where the JSON has a character of the source; behind the last one for its end."""
        at = self.start
        for number, literal in enumerate(self.literals):
            at += (len(self.gaps[number]) if self.gaps else 0) + 1
            if offset < len(literal.text) or number == len(self.literals) - 1:
                return at + _spelt(literal, offset)
            offset -= len(literal.text)
            at += len(literal.raw) + 1
        return at


def _alike(one: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _spelt(literal: Piece, offset: int) -> int:
    """Return how many characters JSON takes for the first ``offset`` ones of a literal."""
    if literal.text == literal.raw:
        return offset
    taken = 0
    for unit in _CHARACTER.findall(literal.raw):
        if offset <= 0:
            break
        offset -= len(_decoded(unit))
        taken += len(unit)
    return taken


@dataclass(frozen=True)
class Document:
    """The JSON of a notebook and its code cells in order; no cell is Python if the kernel is not."""

    json: str
    cells: tuple[CodeCell, ...]

    def with_sources(self, sources: Mapping[int, str]) -> str:
        """Return the JSON with other sources for the cells of these numbers."""
        return apply(self.json, self.changes(sources))

    def changes(self, sources: Mapping[int, str]) -> list[Edit]:
        """Return what other sources for the cells of these numbers change in the JSON:
        an edit for each cell.
        """
        edits = []
        for cell in self.cells:
            source = sources.get(cell.number, cell.text)
            if source != cell.text:
                old, new = self.json[cell.start : cell.end], self._value(cell, source)
                head = _alike(old, new)
                tail = _alike(old[head:][::-1], new[head:][::-1])
                span = Span(cell.start + head, cell.end - tail)
                edits.append(Edit(span, new[head : len(new) - tail]))
        return edits

    def _value(self, cell: CodeCell, source: str) -> str:
        spelling = _Spelling(self._escapes(cell))
        if not cell.gaps:
            pieces = spelling.pieces(_lines(cell.literals[0]), source)
            return f'"{"".join(piece.raw for piece in pieces)}"'
        pieces = spelling.pieces(cell.literals, source)
        if not pieces:
            return "[]"
        gaps = dict(zip(cell.literals, cell.gaps, strict=False))
        usual, first = self._comma(cell), cell.gaps[0]
        parts = []
        for number, piece in enumerate(pieces):
            gap = first if number == 0 else gaps.get(piece, usual)
            parts += [usual if number and gap == first else gap, f'"{piece.raw}"']
        return "".join([*parts, cell.gaps[-1]])

    def _comma(self, cell: CodeCell) -> str:
        """Return what stands between two lines of a list."""
        if len(cell.gaps) > 2:
            return cell.gaps[1]
        opening = cell.gaps[0][1:]
        if opening:
            return f",{opening}"
        return next((other.gaps[1] for other in self.cells if len(other.gaps) > 2), ", ")

    def _escapes(self, cell: CodeCell) -> bool:
        """Return whether characters beyond ASCII are spelt as escapes: in the cell if it tells,
        in the notebook.
        """
        for text in (self.json[cell.start : cell.end], self.json):
            if not text.isascii():
                return False
            if _ESCAPED.search(text):
                return True
        return False


class _Spelling:
    """Spells what is new in a source, and leaves the rest as it was spelt."""

    def __init__(self, escapes: bool) -> None:
        self._escapes = escapes

    def pieces(self, old: Sequence[Piece], source: str) -> list[Piece]:
        """Return the pieces of ``source``; those of ``old`` that it begins and ends with,
        or has between, stay.
        """
        head, at = 0, 0
        while head < len(old) and source.startswith(text := old[head].text, at):
            # What goes on in the source is not the same line, nor is what began earlier.
            if text[-1:] not in _LINE_ENDS and at + len(text) < len(source):
                break
            at += len(text)
            head += 1
        tail, end = len(old), len(source)
        while tail > head and source.endswith(text := old[tail - 1].text, at, end):
            begin = end - len(text)
            if begin > at and source[begin - 1] not in _LINE_ENDS:
                break
            end = begin
            tail -= 1
        between = list(old[head:tail])
        lines = _split(source[at:end], old)
        made: list[Piece] = []
        # Thousands of equal lines would be compared each with each.
        many = len(lines) > _MANY
        matcher = SequenceMatcher(None, [piece.text for piece in between], lines, autojunk=many)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                made += between[i1:i2]
                continue
            for number, line in enumerate(lines[j1:j2]):
                before = between[i1 + number] if i1 + number < i2 else Piece("", "")
                made.append(self._changed(before, line))
        return [*old[:head], *made, *old[tail:]]

    def _changed(self, piece: Piece, text: str) -> Piece:
        """Return ``text`` with the characters that it shares with ``piece`` at both ends spelt as there."""
        units = _CHARACTER.findall(piece.raw)
        shown = [_decoded(unit) for unit in units]
        head, at = 0, 0
        while head < len(units) and text.startswith(shown[head], at):
            at += len(shown[head])
            head += 1
        tail, end = len(units), len(text)
        while tail > head and text.endswith(shown[tail - 1], at, end):
            end -= len(shown[tail - 1])
            tail -= 1
        new = json.dumps(text[at:end], ensure_ascii=self._escapes)[1:-1]
        new = _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", new)
        return Piece(text, "".join([*units[:head], new, *units[tail:]]))


def _decoded(unit: str) -> str:
    return str(json.loads(f'"{unit}"', strict=False)) if unit.startswith("\\") else unit


def _lines(literal: Piece) -> list[Piece]:
    """Return the lines of a source that is one literal."""
    found: list[Piece] = []
    text, raw = "", ""
    for unit in _CHARACTER.findall(literal.raw):
        text, raw = text + _decoded(unit), raw + unit
        if text.endswith("\n"):
            found.append(Piece(text, raw))
            text, raw = "", ""
    return [*found, Piece(text, raw)] if raw else found


def _split(text: str, old: Sequence[Piece]) -> list[str]:
    """Return lines as the program that wrote ``old`` splits them: Python at more characters than others."""
    if any(piece.text[-1:] in _LINE_ENDS[1:] for piece in old):
        return text.splitlines(keepends=True)
    return _LINE.findall(text)


# --- reading ---------------------------------------------------------------------------------------------


def read(text: str) -> Document:
    """Return the notebook that is spelt ``text``.

    Raises:
        SourceError: it is no JSON, or no notebook of a format that is known; with the place.
    """
    try:
        return _Reader(text).document()
    except json.JSONDecodeError as error:
        raise SourceError(
            f"the notebook is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}",
            Position(error.lineno, error.colno),
        ) from error
    except _MalformedError as error:
        lines = NEWLINE.split(text[: error.at])
        raise SourceError(error.reason, Position(len(lines), len(lines[-1]) + 1)) from error
    except (RecursionError, MemoryError) as error:
        raise SourceError("the notebook is nested too deeply") from error
    except ValueError as error:  # a number of too many digits
        raise SourceError(f"the notebook is not valid JSON: {error}") from error


class _Reader:
    """Walks down to the sources of the cells; what lies beside the way is skipped by the JSON library."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._count = 0
        self._steps = 0

    def document(self) -> Document:
        """Return the whole notebook."""
        known: dict[str, Any] = {}
        worksheets: list[CodeCell] | None = None
        found: list[CodeCell] | None = None
        for key in self._members("a notebook must be an object"):
            if key == "cells":
                self._count, found = 0, self._cells()
            elif key == "worksheets":
                self._count, worksheets = 0, self._worksheets()
            else:
                known[key] = self._value()
        self._skip()
        if self._at < len(self._text):
            raise json.JSONDecodeError("Extra data", self._text, self._at)
        version = known.get("nbformat")
        if "nbformat" not in known:
            raise _MalformedError("not a notebook: it has no `nbformat`", 0)
        if version not in FORMATS or isinstance(version, bool):
            raise _MalformedError(f"notebook format {_short(version)} is not supported, only 3 and 4", 0)
        wanted = found if version == 4 else worksheets
        if wanted is None:
            name = "cells" if version == 4 else "worksheets"
            raise _MalformedError(f"not a notebook: it has no `{name}`", 0)
        return Document(self._text, tuple(wanted if _is_python(known.get("metadata")) else ()))

    def _worksheets(self) -> list[CodeCell]:
        cells: list[CodeCell] = []
        for _ in self._items("`worksheets` must be a list"):
            for key in self._members("a worksheet must be an object"):
                if key == "cells":
                    cells += self._cells()
                else:
                    self._value()
        return cells

    def _cells(self) -> list[CodeCell]:
        cells = []
        for _ in self._items("`cells` must be a list"):
            self._count += 1
            if self._count > _MOST_CELLS:
                raise _MalformedError(f"the notebook has more than {_MOST_CELLS} cells", self._at)
            cell = self._cell()
            if cell is not None:
                cells.append(cell)
        return cells

    def _cell(self) -> CodeCell | None:
        """Return one cell; None if it holds no code."""
        self._skip()
        start = self._at
        known: dict[str, Any] = {}
        place: tuple[int, int] | None = None
        for key in self._members("a cell must be an object"):
            begin, known[key] = self._at, self._value()
            if key in ("source", "input") and isinstance(known[key], (str, list)):
                place = begin, self._at
        kind = known.get("cell_type")
        if not isinstance(kind, str):
            raise _MalformedError(f"cell {self._count} has no `cell_type`", start)
        if kind != "code":
            return None
        if place is None:
            raise _MalformedError(f"cell {self._count} has no source", start)
        return self._source(place, _speaks_python(known))

    def _source(self, place: tuple[int, int], python: bool) -> CodeCell:
        """Return the source at ``place``, with its literals."""
        start, end = place
        behind, self._at = self._at, start
        literals: list[Piece] = []
        if self._text[start] == '"':
            literals.append(self._literal())
            gaps: tuple[str, ...] = ()
        else:
            cuts = [start]
            for _ in self._items("a source must be a list"):
                self._skip()
                cuts.append(self._at)
                literals.append(self._literal())
                cuts.append(self._at)
            cuts.append(end)
            gaps = tuple(self._text[cuts[i] : cuts[i + 1]] for i in range(0, len(cuts), 2))
        self._at = behind
        return CodeCell(self._count, start, end, tuple(literals), gaps, python)

    def _literal(self) -> Piece:
        start = self._at
        value = self._value()
        if not isinstance(value, str):
            raise _MalformedError(f"the source of cell {self._count} is not text", start)
        return Piece(value, self._text[start + 1 : self._at - 1])

    def _members(self, what: str) -> Iterator[str]:
        """Yield the keys of the object that comes next; whoever takes one reads its value before the next."""
        self._open("{", what)
        while not self._closes("}"):
            key_at = self._at
            key = self._value()
            if not isinstance(key, str):
                raise json.JSONDecodeError(
                    "Expecting property name enclosed in double quotes", self._text, key_at
                )
            self._skip()
            if self._text[self._at : self._at + 1] != ":":
                raise json.JSONDecodeError("Expecting ':' delimiter", self._text, self._at)
            self._at += 1
            self._skip()
            yield key
            self._comma("}")

    def _items(self, what: str) -> Iterator[None]:
        """Yield once for each item of the list that comes next, which is read before the next one."""
        self._open("[", what)
        while not self._closes("]"):
            yield
            self._comma("]")

    def _open(self, bracket: str, what: str) -> None:
        self._skip()
        if self._text[self._at : self._at + 1] != bracket:
            start = self._at
            self._value()
            raise _MalformedError(f"not a notebook: {what}", start)
        self._at += 1

    def _closes(self, bracket: str) -> bool:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _MalformedError(f"the notebook has more than {_MOST_STEPS} keys, cells and lines", self._at)
        self._skip()
        if self._text[self._at : self._at + 1] == bracket:
            self._at += 1
            return True
        return False

    def _comma(self, bracket: str) -> None:
        self._skip()
        here = self._text[self._at : self._at + 1]
        if here == ",":
            comma = self._at
            self._at += 1
            self._skip()
            if self._text[self._at : self._at + 1] == bracket:
                raise json.JSONDecodeError("Illegal trailing comma before end", self._text, comma)
        elif here != bracket:
            raise json.JSONDecodeError("Expecting ',' delimiter", self._text, self._at)

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _value(self) -> Any:
        self._skip()
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        return value


def _is_python(metadata: object) -> bool:
    """Return whether the kernel of a notebook runs Python, as far as its metadata tell."""
    for key, name in (("kernelspec", "language"), ("language_info", "name")):
        spec = metadata.get(key) if isinstance(metadata, dict) else None
        language = spec.get(name) if isinstance(spec, dict) else None
        if isinstance(language, str):
            return _PYTHON.fullmatch(language) is not None
    return True


def _speaks_python(cell: Mapping[str, Any]) -> bool:
    """Return whether a cell is in Python: editors and old notebooks note a language for each."""
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    languages = (cell.get("language"), editor.get("languageId") if isinstance(editor, dict) else None)
    return all(_PYTHON.fullmatch(item) for item in languages if isinstance(item, str))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 20 else text[:20] + "…"

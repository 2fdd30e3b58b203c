"""A notebook as one module: its code cells in order, with what only IPython understands masked.

``text`` is what Python sees of the cells, joined by newlines. Every place in it is a place in a cell, and
every edit of it an edit of one cell.
"""

from __future__ import annotations

import ast
import codecs
import re
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path

from torchlint import ipynb, magics
from torchlint.diagnostics import Edit, Fix, Position, Span
from torchlint.source import Part, Source, apply, dominant_newline, line_starts, undecodable

# IPython takes the indentation off a cell that begins with one; here a statement goes in front of it.
_LEAD = "if True:\n"
# Halves of surrogate pairs, and NUL: no text that is read from a file has them.
_UNREADABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Cell:
    """The code cell ``number``, counted from 1 over cells of all kinds, at ``[start, end)`` of the text.

    What stands before it from ``lead`` on belongs to no cell, and makes it parse.
    """

    number: int
    lead: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mask:
    """What the notebook has at ``start`` where the text has something else, of the same length."""

    start: int
    original: str

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.original)

    @property
    def heads_cell(self) -> bool:
        """Whether nothing may stand above it, since it is the first line of its cell by force."""
        return self.original.startswith("%%")


@dataclass(frozen=True)
class Notebook(Source):
    """The program of a notebook, with all that it takes to write its cells back.

    ``cells`` are those whose code is in ``text``, ``masks`` what is hidden of them. ``document`` is the JSON
    that they came from; None for cells that an editor holds.
    """

    cells: tuple[Cell, ...] = ()
    masks: tuple[Mask, ...] = ()
    document: ipynb.Document | None = None

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> Notebook:
        """Read the JSON of a notebook.

        Raises:
            SourceError: the bytes are no notebook.
        """
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[len(codecs.BOM_UTF8) :] if bom else data
        try:
            document = ipynb.read(body.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise undecodable(body, error, "utf-8") from error
        sources = [(cell.number, cell.text) for cell in document.cells if cell.python]
        return replace(cls.from_cells(sources, path), bom=bom, document=document)

    @classmethod
    def from_cells(cls, sources: Iterable[tuple[int, str]], path: Path) -> Notebook:
        """Return the notebook of these Python code cells, given as the number and the source of each,
        in order.
        """
        parts: list[str] = []
        cells: list[Cell] = []
        masks: list[Mask] = []
        at = 0
        for number, source in sources:
            masked = magics.mask(_UNREADABLE.sub("\ufffd", source))
            if masked is None:
                continue
            lead = _LEAD if masked.indented else ""
            start = at + len(lead)
            spans = sorted([*masked.spans, *_unreadable(source, masked.spans)])
            masks += [Mask(start + span.start, source[span.start : span.end]) for span in spans]
            cells.append(Cell(number, at, start, start + len(source)))
            parts += [lead, masked.text, "\n"]
            at = cells[-1].end + 1
        text = "".join(parts)
        return cls(path, text, newline=dominant_newline(text), cells=tuple(cells), masks=tuple(masks))

    @property
    def in_cells(self) -> bool:
        """True: every place is one in a cell."""
        return True

    # ------------------------------------------------------------------ places

    def cell_at(self, offset: int) -> Cell | None:
        """Return the cell that an offset lies in, its end included; None if there are no cells.

        What stands between two cells counts to the next.
        """
        index = bisect_right(self._leads, offset) - 1
        return self.cells[index] if index >= 0 else None

    @cached_property
    def _leads(self) -> tuple[int, ...]:
        return tuple(cell.lead for cell in self.cells)

    def locate(self, offset: int) -> Position:
        """Return the cell of a character offset, and the row and column in it."""
        cell = self.cell_at(offset)
        if cell is None:
            return self.position(offset)
        place, first = self.position(min(max(offset, cell.start), cell.end)), self.position(cell.start)
        return Position(place.row - first.row + 1, place.column, cell.number)

    @cached_property
    def _written(self) -> ipynb.Document | None:
        """The JSON with the cells as they are now; None for cells that an editor holds."""
        if self.document is None:
            return None
        sources = {part.cell: part.text for part in self.parts if part.cell is not None}
        changed = any(cell.text != sources.get(cell.number, cell.text) for cell in self.document.cells)
        return ipynb.read(self.document.with_sources(sources)) if changed else self.document

    @property
    def stored(self) -> str:
        """The JSON; the program for cells that an editor holds."""
        return self.text if self._written is None else self._written.json

    def in_file(self, offset: int) -> Position:
        """Return the row and column of a character in the JSON: where its line of the source stands there."""
        cell = self.cell_at(offset)
        if self._written is None or cell is None:
            return Position(1, 1)
        (coded,) = (each for each in self._written.cells if each.number == cell.number)
        place = coded.place(min(max(offset, cell.start), cell.end) - cell.start)
        row = bisect_right(self._rows, place)
        return Position(row, place - self._rows[row - 1] + 1)

    @cached_property
    def _rows(self) -> Sequence[int]:
        return line_starts(self.stored)

    def edits_in_file(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Return what edits of the program change in the JSON; nothing for cells that an editor holds."""
        if self._written is None:
            return ()
        made = self.with_text(apply(self.text, edits), edits)
        return self._written.changes({part.cell: part.text for part in made.parts if part.cell is not None})

    def part(self, cell: int | None) -> Part | None:
        """Return the cell of this number."""
        return self._parts.get(cell)

    @cached_property
    def _parts(self) -> dict[int | None, Part]:
        return {part.cell: part for part in self.parts}

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The cells, each as its author wrote it."""
        return tuple(
            Part(cell.number, cell.start, self._original(cell), self.text[cell.lead : cell.end])
            for cell in self.cells
        )

    def _original(self, cell: Cell) -> str:
        parts, at = [], cell.start
        for mask in self._masks_in(cell.start, cell.end):
            parts += [self.text[at : mask.start], mask.original]
            at = mask.end
        return "".join([*parts, self.text[at : cell.end]])

    def _masks_in(self, start: int, end: int) -> Sequence[Mask]:
        """Return the masks that share a character or a border with a range."""
        first = bisect_left(self.masks, start, key=lambda mask: mask.end)
        return self.masks[first : bisect_right(self.masks, end, first, key=lambda mask: mask.start)]

    def rows_of(self, lines: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return all lines of the cells whose source is on these of the JSON;
        what a cell printed does not count.
        """
        if self.document is None:
            return ((1, self.text.count("\n") + 1),)
        wanted, json = tuple(lines), self.document.json
        changed = set()
        for cell in self.document.cells:
            first = json.count("\n", 0, cell.start) + 1
            last = first + json.count("\n", cell.start, cell.end)
            if any(start <= last and first <= end for start, end in wanted):
                changed.add(cell.number)
        count = self.text.count
        return tuple(
            (count("\n", 0, cell.start) + 1, count("\n", 0, cell.end) + 1)
            for cell in self.cells
            if cell.number in changed
        )

    # ------------------------------------------------------------------ fixes

    def fitted(self, fix: Fix) -> Fix | None:
        """Return the fix with every edit inside one cell.

        None if it cannot be, if it touches what is masked, if it changes several cells that are no programs
        by themselves then, or if a cell would no longer show its result.
        """
        fitted = [self._fitted(edit) for edit in fix.own]
        edits = [edit for edit in fitted if edit]
        if len(edits) < len(fitted) or self._spoils(edits):
            return None
        return replace(fix, edits=(*edits, *(edit for edit in fix.edits if edit.path is not None)))

    def _spoils(self, edits: Iterable[Edit]) -> bool:
        """Return whether one of several cells can no longer be read by itself, or whether the expression that
        ends a cell, whose value is shown, becomes part of a statement.
        """
        by_cell = groupby(sorted(edits), key=lambda edit: self.cell_at(edit.span.start))
        changed = [(cell, list(group)) for cell, group in by_cell]
        for cell, group in changed:
            assert cell is not None
            changes = [
                Edit(Span(at.span.start - cell.lead, at.span.end - cell.lead), at.content) for at in group
            ]
            before = self._ending(cell)
            reached = 0 <= before.shown <= max(edit.span.end for edit in changes)
            if len(changed) == 1 and not reached:
                continue
            after = _ending(apply(self.text[cell.lead : cell.end], changes))
            if len(changed) > 1 and after.count < 0 <= before.count:
                return True
            if reached and after.shown < 0 and after.count >= before.count:
                return True
        return False

    def _ending(self, cell: Cell) -> _Ending:
        if cell.number not in self._endings:
            self._endings[cell.number] = _ending(self.text[cell.lead : cell.end])
        return self._endings[cell.number]

    @cached_property
    def _endings(self) -> dict[int, _Ending]:
        return {}

    def _fitted(self, edit: Edit) -> Edit | None:
        start, end, content = edit.span.start, edit.span.end, edit.content
        cell = self.cell_at(start)
        if cell is None or start < cell.start:
            return None
        if not content and end > cell.end and not self.text[cell.end : end].strip():
            end = cell.end + 1  # The empty lines behind it are another cell's.
        if end == cell.end + 1:
            # The last line of a cell goes with its newline, but the one behind a cell is not the cell's.
            end -= 1
            if content.endswith("\n"):
                content = content[:-1]
            elif not content and start > cell.start:
                start -= 2 if self.text.endswith("\r\n", cell.start, start) else 1
                if self.text[start] not in "\r\n":
                    return None
            elif content:
                return None
        if end > cell.end:
            return None
        if start == cell.end and content.startswith(("\r", "\n")):
            # What follows is another cell, from which no empty lines have to part what is added.
            content = content.rstrip("\r\n")
        whole = Edit(Span(start, end), content)
        return whole if all(self._spares(whole, mask) for mask in self._masks_in(start, end)) else None

    def _spares(self, edit: Edit, mask: Mask) -> bool:
        """Return whether an edit beside a masked line leaves it a line:
        lines may be put above or below it.
        """
        start, end = edit.span.start, edit.span.end
        if start == end == mask.start:
            return edit.content.endswith("\n") and self.position(start).column == 1 and not mask.heads_cell
        below = edit.content or self.text[end : end + 1] or "\n"
        return start == mask.end and self.text[start : start + 1] in ("", "\r", "\n") and below[0] in "\r\n"

    def with_text(self, text: str, edits: Iterable[Edit] = ()) -> Notebook:
        """Return the notebook whose text the edits, each inside of a cell, have made of this one's.

        Raises:
            ValueError: they do not make it.
        """
        made = sorted(set(edits))
        ends = [edit.span.end for edit in made]
        growth = [0, *accumulate(len(edit.content) - (edit.span.end - edit.span.start) for edit in made)]
        if len(text) - len(self.text) != growth[-1]:
            raise ValueError("the cells of a notebook cannot be told apart in another text")

        def moved(offset: int, *, inclusive: bool) -> int:
            """Return where a place is afterwards: behind what is inserted there, or before it."""
            return offset + growth[(bisect_right if inclusive else bisect_left)(ends, offset)]

        cells = [
            Cell(
                cell.number,
                moved(cell.lead, inclusive=False),
                moved(cell.start, inclusive=False),
                moved(cell.end, inclusive=True),
            )
            for cell in self.cells
        ]
        masks = [replace(mask, start=moved(mask.start, inclusive=True)) for mask in self.masks]
        return replace(self, text=text, cells=tuple(cells), masks=tuple(masks))

    def encode(self, text: str) -> bytes:
        """Return the JSON of the notebook with ``text`` for its own, which has to have the same cells.

        Raises:
            ValueError: its cells cannot be told apart, or there is no JSON to put them into.
        """
        return self.with_text(text).to_bytes()

    def to_bytes(self) -> bytes:
        """Return the JSON of the notebook, with the sources of changed cells exchanged.

        Raises:
            ValueError: the notebook was not read from JSON.
        """
        if self.document is None:
            raise ValueError("the cells of an editor have no JSON")
        sources = {part.cell: part.text for part in self.parts if part.cell is not None}
        data = self.document.with_sources(sources).encode("utf-8")
        return codecs.BOM_UTF8 + data if self.bom else data


@dataclass(frozen=True, slots=True)
class _Ending:
    """How many statements a cell has, or -1 if it is no program, and where the line of the last begins if its
    value is shown, or -1.
    """

    count: int
    shown: int


def _ending(code: str) -> _Ending:
    """Return how a cell ends, with what makes it parse in front of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Ending(-1, -1)
    if code.startswith(_LEAD) and len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None or last.end_col_offset is None:
        return _Ending(len(body), -1)
    source = Source(Path(), code)
    rest = source.line(last.end_lineno).encode("utf-8", "replace")[last.end_col_offset :]
    silent = rest.lstrip().startswith(b";")
    return _Ending(len(body), -1 if silent else source.line_starts[last.lineno - 1])


def _unreadable(source: str, masked: Sequence[Span]) -> Iterator[Span]:
    """Yield the characters of a cell that no program may hold, as far as they are not masked with a magic."""
    for found in _UNREADABLE.finditer(source):
        if not any(span.start <= found.start() < span.end for span in masked):
            yield Span(*found.span())

"""Scripts in cells, as VS Code, Spyder and jupytext have them: ``# %%`` above each, and magics in between.

Python reads no magics, so that they are masked as in a notebook. Places are those of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from torchlint import magics
from torchlint.diagnostics import Edit, Fix, Position
from torchlint.notebook import Cell, Mask, Notebook
from torchlint.source import Part, Source

_CELL = re.compile(r"^#[ \t]*(?:%%|In\[)", re.MULTILINE)
_SUSPECT = re.compile(r"^[ \t]*(?:[%!]|\w+[ \t]*=[ \t]*[%!](?!=))|\?[ \t]*$", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]+")


class Script(Notebook):
    """A script whose magics are masked in ``text``; it is written back with them."""

    @property
    def in_cells(self) -> bool:
        """False: the cells are not counted."""
        return False

    def locate(self, offset: int) -> Position:
        """Return the row and column in the file."""
        return self.position(offset)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The whole, as its author wrote it."""
        return (Part(None, 0, self._original(self.cells[0]), self.text),)

    @property
    def stored(self) -> str:
        """The text with its magics."""
        return self.parts[0].text

    def in_file(self, offset: int) -> Position:
        """Return the row and column in the file."""
        return self.position(offset)

    def edits_in_file(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Return the same: a mask is as long as what it hides."""
        return edits

    def rows_of(self, lines: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Return the same lines."""
        return tuple(lines)

    def fitted(self, fix: Fix) -> Fix | None:
        """Return the fix, unless it touches a magic."""
        spared = (
            self._spares(edit, mask)
            for edit in fix.own
            for mask in self._masks_in(edit.span.start, edit.span.end)
        )
        return fix if all(spared) else None

    def to_bytes(self) -> bytes:
        """Return the file, with its magics.

        Raises:
            SourceError: its encoding cannot hold the text.
        """
        plain = Source(self.path, self.stored, self.encoding, self.bom, self.newline)
        return plain.to_bytes()


def read(source: Source) -> Source:
    """Return the script, with magics masked if it has cells and is no Python; any other file as it is."""
    text = source.text
    if not (_CELL.search(text) and _SUSPECT.search(text)) or magics.parses(text):
        return source
    masks = list(_masks(text))
    filled, at = [], 0
    for start, hidden in masks:
        filled += [text[at:start], hidden]
        at = start + len(hidden)
    masked = "".join([*filled, text[at:]])
    found = tuple(Mask(start, text[start : start + len(hidden)]) for start, hidden in masks)
    return Script(
        source.path,
        masked,
        source.encoding,
        source.bom,
        source.newline,
        cells=(Cell(1, 0, 0, len(masked)),),
        masks=found,
    )


def _masks(text: str) -> Iterator[tuple[int, str]]:
    """Yield where something is hidden, and what stands there instead."""
    starts = [found.start() for found in _CELL.finditer(text)]
    for start, end in zip([0, *starts], [*starts, len(text)], strict=True):
        cell = text[start:end]
        masked = magics.mask(cell)
        if masked is None:
            # Another language, or no code: its lines become blank.
            for line in _LINE.finditer(cell):
                if not line[0].lstrip().startswith("#"):
                    yield start + line.start(), " " * len(line[0])
            continue
        for span in sorted(masked.spans):
            hidden = masked.text[span.start : span.end]
            # A comment below the line of a cell would be taken for prose.
            yield start + span.start, hidden.replace("#", " ")

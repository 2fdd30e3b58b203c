"""Texts that an editor has open, and places in them as the editor counts them.

Editors end lines at CR LF, LF and CR only and count columns in units of the encoding agreed on; torchlint
counts characters. pygls would also split lines at form feeds, which Python files do have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec, TextDocument, Workspace

from torchlint.diagnostics import Edit, Position, Span
from torchlint.source import Source


class Document(TextDocument):
    """An open text; its lines are those of the editor."""

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends."""
        return lines(Source(Path(), self.source))

    @property
    def file(self) -> Path | None:
        """The file that the text is of; None for one that is none yet (``untitled:``)."""
        return file_of(self.uri)


class Documents(Workspace):
    """The folders and texts that an editor has open."""

    @classmethod
    def of(cls, workspace: Workspace) -> Documents:
        """The folders of a workspace in which nothing is open yet."""
        return cls(
            workspace.root_uri,
            workspace._sync_kind,
            list(workspace.folders.values()),
            workspace.position_encoding,
        )

    def _create_text_document(
        self,
        doc_uri: str,
        source: str | None = None,
        version: int | None = None,
        language_id: str | None = None,
    ) -> Document:
        return Document(
            doc_uri,
            source,
            version,
            language_id,
            sync_kind=self._sync_kind,
            position_codec=self.position_codec,
        )


class Places:
    """Translates between places in a text and those that the editor names."""

    def __init__(self, source: Source, codec: PositionCodec) -> None:
        self.source = source
        self._codec = codec

    @cached_property
    def _lines(self) -> Sequence[str]:
        return lines(self.source)

    def to_editor(self, offset: int) -> types.Position:
        """The place of a character offset."""
        place = self.source.position(offset)
        return self.position(place)

    def position(self, place: Position) -> types.Position:
        """The place of a row and column."""
        before = self.source.line(place.row)[: place.column - 1]
        return types.Position(place.row - 1, self._codec.client_num_units(before))

    def range(self, span: Span) -> types.Range:
        """The range of a span."""
        return types.Range(self.to_editor(span.start), self.to_editor(span.end))

    def offset(self, place: types.Position) -> int:
        """The character offset of a place that the editor names; one beyond its line is that line's end."""
        line = self.source.line(place.line + 1)
        found = self._codec.position_from_client_units(
            [line], types.Position(0, min(place.character, self._codec.client_num_units(line)))
        )
        return self.source.offset(Position(place.line + 1, found.character + 1))

    def span(self, where: types.Range) -> Span:
        """The span of a range that the editor names."""
        return Span(self.offset(where.start), self.offset(where.end))

    def edits(self, edits: Iterable[Edit]) -> list[types.TextEdit]:
        """Edits as the editor makes them."""
        return [types.TextEdit(self.range(edit.span), edit.content) for edit in edits]


def lines(source: Source) -> Sequence[str]:
    """The lines of a text with their ends; a text that ends with a newline has no empty line behind it."""
    starts = (*source.line_starts, len(source.text))
    found = [source.text[start:end] for start, end in pairwise(starts)]
    return found[:-1] if found and not found[-1] else found


def file_of(uri: str) -> Path | None:
    """The path that a ``file:`` URI names; None for any other."""
    if not uri.startswith("file:"):
        return None
    path = to_fs_path(uri)
    return Path(path) if path else None

"""Texts that an editor has open, and places in them as the editor counts them.

Editors end lines at CR LF, LF and CR only and count columns in units of the encoding agreed on; torchlint
counts characters. pygls would also split lines at form feeds, which Python files do have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec, TextDocument, Workspace

from torchlint.diagnostics import Position, Span
from torchlint.documents import is_document
from torchlint.notebook import Notebook
from torchlint.source import Source

_LANGUAGE = "python"
_SUFFIXES = (".py", ".pyw")


class Document(TextDocument):
    """An open text; its lines are those of the editor."""

    @property
    def lines(self) -> Sequence[str]:
        """The lines with their ends."""
        return lines(Source(Path(), self.source))

    @property
    def program(self) -> Program:
        """The text as it is checked."""
        file = file_of(self.uri)
        source = Source.from_text(self.source, file or Path(self.filename or "untitled"))
        named = file is not None and (file.suffix in _SUFFIXES or is_document(file))
        texts: dict[int | None, Text] = {None: Text(self.uri, self.version)}
        return Program(self.uri, source, texts, file, named or self.language_id == _LANGUAGE)


class Documents(Workspace):
    """The folders and texts that an editor has open."""

    @classmethod
    def of(cls, workspace: Workspace) -> Documents:
        """Return the folders of a workspace in which nothing is open yet."""
        return cls(
            workspace.root_uri,
            workspace._sync_kind,
            list(workspace.folders.values()),
            workspace.position_encoding,
        )

    def programs(self) -> Iterator[Program]:
        """Yield everything that is open."""
        for notebook in self.notebook_documents.values():
            yield self._notebook(notebook)
        for uri, document in self.text_documents.items():
            if uri not in self._cell_in_notebook and isinstance(document, Document):
                yield document.program

    def program(self, uri: str) -> Program | None:
        """Return the open document with a URI, or the notebook that has it or is it."""
        notebook = self.get_notebook_document(notebook_uri=uri) or self.get_notebook_document(cell_uri=uri)
        if notebook is not None:
            return self._notebook(notebook)
        document = self.text_documents.get(unquote(uri))
        return document.program if isinstance(document, Document) else None

    def _notebook(self, notebook: types.NotebookDocument) -> Program:
        file = file_of(notebook.uri)
        texts: dict[int | None, Text] = {}
        sources = []
        for number, cell in enumerate(notebook.cells, 1):
            document = self.text_documents.get(unquote(cell.document))
            python = document is not None and document.language_id == _LANGUAGE
            if document is not None and python and cell.kind is types.NotebookCellKind.Code:
                texts[number] = Text(cell.document, document.version)
                sources.append((number, document.source))
        path = file or Path("untitled.ipynb")
        return Program(notebook.uri, Notebook.from_cells(sources, path), texts, file)

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


@dataclass(frozen=True)
class Text:
    """What the editor calls one text: a document, or a cell of a notebook."""

    uri: str
    version: int | None


@dataclass(frozen=True)
class Program:
    """What is checked as one: a document, or all Python cells of a notebook.

    ``texts`` has the document under None, or the cells by their number. ``file`` is None for what is no file
    yet. What is not ``supported`` is in a language that is not checked.
    """

    uri: str
    source: Source
    texts: Mapping[int | None, Text]
    file: Path | None
    supported: bool = True

    def cell_of(self, uri: str) -> int | None:
        """Return the number of the cell with this URI; None for the document itself."""
        return next((cell for cell, text in self.texts.items() if text.uri == uri), None)


class Places:
    """Translates between places in a program and those that the editor names.

    ``others`` are the programs that are open, by their files: places in them are known as well.
    """

    def __init__(
        self, program: Program, codec: PositionCodec, others: Mapping[Path, Program] | None = None
    ) -> None:
        self.program = program
        self._codec = codec
        self._others = others or {}
        self._parts: dict[int | None, tuple[int, Source]] = {}

    def _part(self, cell: int | None) -> tuple[int, Source]:
        """Return where a cell, or the whole text, begins in the program, and its text."""
        if cell not in self._parts:
            source = self.program.source
            part = source.part(cell)
            self._parts[cell] = (part.start, Source(source.path, part.text)) if part else (0, source)
        return self._parts[cell]

    def location(self, span: Span) -> types.Location:
        """Return the text and the range of a span; what reaches into another cell is cut off."""
        cell = self.program.source.locate(span.start).cell
        start, inside = self._part(cell)
        places = [inside.position(offset - start) for offset in (span.start, span.end)]
        return types.Location(
            self.program.texts[cell].uri, types.Range(*(self._position(inside, place) for place in places))
        )

    def at(self, place: Position) -> types.Location:
        """Return the text and the empty range of a row and column, of the program or of another file."""
        if place.path is not None:
            return self._elsewhere(place, place.path)
        _, inside = self._part(place.cell)
        there = self._position(inside, place)
        return types.Location(self.program.texts[place.cell].uri, types.Range(there, there))

    def _elsewhere(self, place: Position, file: Path) -> types.Location:
        other = self._others.get(file)
        if other is not None and place.cell in other.texts:
            return Places(other, self._codec).at(replace(place, path=None))
        # What an editor calls the cells of a notebook that is not open nobody knows.
        begin = (
            types.Position(place.row - 1, place.column - 1) if place.cell is None else types.Position(0, 0)
        )
        return types.Location(file.as_uri(), types.Range(begin, begin))

    def _position(self, inside: Source, place: Position) -> types.Position:
        before = inside.line(place.row)[: place.column - 1]
        return types.Position(place.row - 1, self._codec.client_num_units(before))

    def offset(self, uri: str, place: types.Position) -> int | None:
        """Return the character offset of a place in a text; one beyond its line is that line's end.

        None in a cell that is no part of the program, such as one in another language.
        """
        cell = self.program.cell_of(uri)
        if self.program.source.part(cell) is None:
            return None
        start, inside = self._part(cell)
        line = inside.line(place.line + 1)
        within = types.Position(0, min(place.character, self._codec.client_num_units(line)))
        found = self._codec.position_from_client_units([line], within)
        return start + inside.offset(Position(place.line + 1, found.character + 1))

    def span(self, uri: str, where: types.Range) -> Span | None:
        """Return the span of a range of a text; None where there is no offset."""
        start, end = self.offset(uri, where.start), self.offset(uri, where.end)
        return None if start is None or end is None else Span(start, end)


def lines(source: Source) -> Sequence[str]:
    """Return the lines of a text with their ends;
    a text that ends with a newline has no empty line behind it.
    """
    starts = (*source.line_starts, len(source.text))
    found = [source.text[start:end] for start, end in pairwise(starts)]
    return found[:-1] if found and not found[-1] else found


def file_of(uri: str) -> Path | None:
    """Return the path that a ``file:`` URI names; None for any other."""
    if not uri.startswith("file:"):
        return None
    path = to_fs_path(uri)
    return Path(path) if path else None

"""Configuration files as text: YAML and JSON, with the place of everything that stands in them.

PyYAML reads both and knows where each node begins and ends. JSON is YAML but for tabs between its tokens,
which are taken for spaces: a string of JSON holds none, so that every place stays the same. What the two read
differently, such as ``1e-3``, is no value that is asked for here.

The values are those of YAML 1.1, as PyYAML and OmegaConf load them. A node that has aliases is shared: who
edits it changes what stands there as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from torchlint.diagnostics import Edit, Span
from torchlint.source import Source, line_start

# Most projects have no such file.
if TYPE_CHECKING:
    import yaml

MOST_CHARACTERS = 100_000
"""Larger files are data: nobody writes as many settings, and PyYAML would take a second for them."""
_MOST_NODES = 20_000

_SUFFIXES = (".yaml", ".yml", ".json")
DOCUMENTS = tuple(f"*{suffix}" for suffix in _SUFFIXES)
"""Globs of the files that may be configurations of programs."""
_JSON = ".json"
_MERGE = "tag:yaml.org,2002:merge"
_CONSTRUCTED = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str"))
_LINE_END = re.compile(r"[\r\n\x85\u2028\u2029]")


class _Opaque:
    """The type of ``OPAQUE``."""

    def __repr__(self) -> str:
        return "OPAQUE"


OPAQUE: Final = _Opaque()
"""The value of a scalar with a tag of its own, or one that cannot be read."""


def is_document(path: Path) -> bool:
    """Return whether a file is YAML or JSON by its name."""
    return path.suffix.lower() in _SUFFIXES


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A number, text, truth value or null.

    ``key`` is the place of the key that it stands behind. It is ``editable`` if its value is all of its span,
    and stands in one line.
    """

    document: Document
    span: Span
    value: object
    key: Span | None = None
    shared: bool = False
    editable: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A mapping: its values by their keys, those of merge keys included.

    ``key`` is the place of the key that it stands behind, None at the top of a document. ``pairs`` are the
    places of its own keys and values. ``flow`` says that it stands in braces.
    """

    document: Document
    span: Span
    items: Mapping[str, Entry]
    key: Span | None = None
    shared: bool = False
    flow: bool = False
    pairs: tuple[tuple[Span, Span], ...] = ()

    @property
    def place(self) -> Span:
        """What stands for it when something is said of it: its key, or else the first of its own."""
        if self.key is not None:
            return self.key
        return self.pairs[0][0] if self.pairs else Span(self.span.start, self.span.start)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A sequence."""

    document: Document
    span: Span
    items: tuple[Entry, ...]
    key: Span | None = None


Entry: TypeAlias = "Scalar | Table | Row"


@dataclass(frozen=True, eq=False)
class Document:
    """A configuration file; ``root`` is None for one that is empty, or cannot be read as one document."""

    source: Source
    _kept: dict[int, Entry] = field(default_factory=dict, init=False, repr=False)

    @property
    def path(self) -> Path:
        """Its file."""
        return self.source.path

    @property
    def is_json(self) -> bool:
        """Whether it is JSON."""
        return self.path.suffix.lower() == _JSON

    def text_of(self, span: Span) -> str:
        """Return what stands at a place."""
        return self.source.text[span.start : span.end]

    @cached_property
    def root(self) -> Entry | None:
        """What the document holds."""
        text = self.source.text
        if len(text) > MOST_CHARACTERS:
            return None
        try:
            if self.is_json:
                json.loads(text)
                text = text.replace("\t", " ")
            return _read(self, text)
        except (ValueError, RecursionError):
            return None

    @cached_property
    def comments(self) -> tuple[Span, ...]:
        """The places of the comments."""
        if self.is_json or self.root is None:
            return ()
        return tuple(_comments(self.source.text))

    @cached_property
    def inner_rows(self) -> frozenset[int]:
        """The rows that end within a scalar, where no comment can stand."""
        if self.root is None:
            return frozenset()
        rows: set[int] = set()
        for start, end in _scalars(self.source.text) if not self.is_json else ():
            last = self.source.position(max(start, end - 1)).row
            rows.update(range(self.source.position(start).row, last))
            if self.source.text[start] in "|>":
                rows.add(last)
        return frozenset(rows)


# --- reading --------------------------------------------------------------------------------------------


def _read(document: Document, text: str) -> Entry | None:
    """Return the nodes of a text.

    Raises:
        ValueError: it is no YAML, several documents, or has too many nodes.
    """
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if node is None else _Reader(document, text).entry(node, None)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


class _Reader:
    """Makes entries of the nodes of PyYAML, each once."""

    def __init__(self, document: Document, text: str) -> None:
        import yaml

        self._document = document
        self._made: dict[int, Entry] = {}
        self._open: set[int] = set()
        self._constructor = yaml.constructor.SafeConstructor()
        self._aliased = _aliased(text) if "*" in text and "&" in text else frozenset()

    def entry(self, node: yaml.Node, key: Span | None, shared: bool = False) -> Entry:
        """Return what a node is; behind each of its aliases the same."""
        import yaml

        if id(node) in self._open:
            raise ValueError("a node holds itself")
        if id(node) in self._made:
            return self._made[id(node)]
        if len(self._made) > _MOST_NODES:
            raise ValueError("too many nodes")
        self._open.add(id(node))
        span = Span(node.start_mark.index, node.end_mark.index)
        shared = shared or node.start_mark.index in self._aliased
        made: Entry
        if isinstance(node, yaml.MappingNode):
            made = self._table(node, span, key, shared)
        elif isinstance(node, yaml.SequenceNode):
            items = tuple(self.entry(item, None, shared) for item in node.value)
            made = Row(self._document, span, items, key)
        else:
            text = self._document.source.text[span.start : span.end]
            # What begins with an anchor or a tag is more than its value.
            plain = text[:1] not in ("", "|", ">", "&", "!") and not _LINE_END.search(text)
            made = Scalar(self._document, span, self._value(node), key, shared, plain)
        self._open.remove(id(node))
        self._made[id(node)] = made
        return made

    def _table(self, node: yaml.MappingNode, span: Span, key: Span | None, shared: bool) -> Table:
        import yaml

        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        pairs = []
        for name, value in node.value:
            place = Span(name.start_mark.index, name.end_mark.index)
            if name.tag == _MERGE:
                for base in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    found = self.entry(base, None, shared)
                    if isinstance(found, Table):
                        merged = {**found.items, **merged}
                continue
            entry = self.entry(value, place, shared)
            pairs.append((place, Span(value.start_mark.index, value.end_mark.index)))
            if isinstance(name, yaml.ScalarNode):
                own[str(name.value)] = entry
        return Table(
            self._document, span, {**merged, **own}, key, shared, bool(node.flow_style), tuple(pairs)
        )

    def _value(self, node: yaml.ScalarNode) -> object:
        if node.tag not in _CONSTRUCTED:
            return OPAQUE
        try:
            value: object = self._constructor.construct_object(node)
        except Exception:
            return OPAQUE
        return value


def _aliased(text: str) -> frozenset[int]:
    """Return where the nodes begin that have an alias somewhere."""
    import yaml

    begins: dict[str, int] = {}
    found: set[int] = set()
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in begins:
                found.add(begins[event.anchor])
        elif isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            begins[event.anchor] = event.start_mark.index
    return frozenset(found)


def _scalars(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the scalars of a text begin and end."""
    import yaml

    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if isinstance(token, yaml.ScalarToken):
            yield token.start_mark.index, token.end_mark.index


def _comments(text: str) -> Iterator[Span]:
    """Yield the comments of a text of YAML:
    what follows a ``#`` that begins a word outside of all scalars.
    """
    at = 0
    for start, end in (*_scalars(text), (len(text), len(text))):
        while (sign := text.find("#", at, start)) >= 0:
            stop = _LINE_END.search(text, sign)
            at = stop.start() if stop else len(text)
            if sign == 0 or text[sign - 1] in " \t\r\n":
                yield Span(sign, at)
        at = max(at, end)


# --- edits ----------------------------------------------------------------------------------------------


def written(value: object) -> str:
    """Return a number, truth value, null or text as both YAML and JSON spell it."""
    return json.dumps(value)


def replaced(scalar: Scalar, value: object) -> Edit | None:
    """Return the edit that gives a scalar another value; None for one that is not editable."""
    return Edit(scalar.span, written(value)) if scalar.editable else None


def added(table: Table, key: str, value: object) -> Edit | None:
    """Return the edit that adds a key to a mapping in the style of its neighbours;
    None where none can be copied.
    """
    text = table.document.source.text
    if not table.pairs:
        return None
    name = f'"{key}"' if text[table.pairs[-1][0].start] == '"' else key
    last, content = table.pairs[-1]
    if table.flow:
        between = text[last.end : content.start]
        pair = f"{name}{between if between.strip(' ') == ':' else ': '}{written(value)}"
        indent = text[line_start(text, last.start) : last.start]
        if len(table.pairs) > 1 and not indent.strip():
            return Edit(Span(last.start, last.start), f"{pair},{_newline_before(text, last.start)}{indent}")
        return Edit(Span(content.end, content.end), f", {pair}")
    for place, content in reversed(table.pairs):
        begin = line_start(text, place.start)
        end = _line_end(text, place.end)
        if content.end <= end and not text[begin : place.start].strip(" -"):
            indent = " " * (place.start - begin)
            newline = _newline_after(text, end) or table.document.source.newline
            return Edit(Span(end, end), f"{newline}{indent}{name}: {written(value)}")
    return None


def _line_end(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)


def _newline_after(text: str, end: int) -> str:
    """Return the line break that stands at an offset; empty at the end of the text."""
    return "\r\n" if text.startswith("\r\n", end) else text[end : end + 1]


def _newline_before(text: str, at: int) -> str:
    """Return the line break in front of the line of an offset."""
    start = line_start(text, at)
    return "\r\n" if text[:start].endswith("\r\n") else text[start - 1 : start]

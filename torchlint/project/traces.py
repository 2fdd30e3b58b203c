"""What a result rests on beside its own file, so that a later run can tell whether it still holds.

That is the shape of the project (which files it has, and what their text says of imports) and the bytes of
those other files that were asked. Nothing is parsed: imports are found by their words, and rather too many
than too few lines are taken for some. Source: A. Mokhov, N. Mitchell, S. Peyton Jones, "Build Systems à la
Carte" (2018), on verifying traces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from torchlint.project.layout import Layout
from torchlint.source import SourceError, is_file, read_bytes

# What a record of a file has beside the names that it defines.
_IMPORT = re.compile(rb"import|\bsys\.modules\b|(?<![\w.])(?:exec|eval)[ \t]*\(")
# Codecs in which the words of Python have the bytes of ASCII, as in all others that programs are written in.
_PLAIN_CODEC = re.compile(rb"utf-?8|latin|iso-?8859|ascii|cp125|windows-125", re.IGNORECASE)
_COOKIE = re.compile(rb"coding[:=][ \t]*([-\w.]+)")
_COOKIE_BYTES = 400
_INIT = "__init__.py"
_METADATA = ("pyproject.toml", "setup.cfg", "setup.py")
_LARGEST_METADATA = 1_000_000


class Trace(NamedTuple):
    """The other files that a result rests on: their places in the order of the files, and a digest of all."""

    ranks: tuple[int, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of the bytes of a file: how many, their digest, and that of their imports."""

    size: int
    digest: bytes
    imports: bytes


class Contents:
    """The files of projects, each read once at most; ``given`` are bytes that count instead of the disk's."""

    def __init__(self, given: Mapping[Path, bytes] | None = None) -> None:
        self._given = dict(given or {})
        self._known: dict[Path, Content | None] = {}
        self._shapes: dict[Path, bytes] = {}

    def of(self, file: Path) -> Content | None:
        """What a file holds; None if it cannot be read."""
        if file not in self._known:
            try:
                data = self._given[file] if file in self._given else read_bytes(file)
                imports = sha256(b"\n".join(_about_imports(data))).digest()
                self._known[file] = Content(len(data), sha256(data).digest(), imports)
            except SourceError:
                self._known[file] = None
        return self._known[file]

    def salt(self, salt: bytes, layout: Layout, file: Path) -> bytes:
        """What the key of a file begins with in a project: its own place counts there, and the shape."""
        digest = sha256(salt + self.shape(layout))
        digest.update(_named(file))
        return digest.digest()

    def shape(self, layout: Layout) -> bytes:
        """A digest of which files a project has, and of what each says of imports."""
        if layout.root not in self._shapes:
            self._shapes[layout.root] = self._shape(layout)
        return self._shapes[layout.root]

    def _shape(self, layout: Layout) -> bytes:
        digest = sha256(_named(layout.root) + layout.kind.encode() + b"\0")
        for name in _METADATA:
            try:
                digest.update(read_bytes(layout.root / name, _LARGEST_METADATA))
            except SourceError:
                digest.update(b"\0")
        for file in layout.files:
            content = self.of(file)
            digest.update(b"\0" + _named(file))
            digest.update(b"\0" if content is None else content.imports)
        folders = {file.parent for file in layout.files}
        for folder in sorted(folders, key=str):
            # What a project leaves out may make its folder a package all the same.
            if folder / _INIT not in layout.members and is_file(folder / _INIT):
                digest.update(b"\0" + _named(folder))
        return digest.digest()

    def trace(self, layout: Layout, files: Iterable[Path]) -> Trace:
        """The trace of a result that rests on these files."""
        ranks = sorted(layout.ranks[file] for file in files if file in layout.ranks)
        return Trace(tuple(ranks), self._digest(layout, ranks))

    def holds(self, layout: Layout, trace: Trace) -> bool:
        """Whether all files of a trace, which is of a project of the same shape, are as they were."""
        return max(trace.ranks, default=0) < max(len(layout.files), 1) and (
            self._digest(layout, trace.ranks) == trace.digest
        )

    def _digest(self, layout: Layout, ranks: Sequence[int]) -> str:
        digest = sha256()
        for rank in ranks:
            content = self.of(layout.files[rank])
            digest.update(b"\0" if content is None else content.digest)
        return digest.hexdigest()[:40]


def _named(file: Path) -> bytes:
    return str(file).encode("utf-8", "surrogateescape") + b"\0"


def _about_imports(data: bytes) -> Iterator[bytes]:
    """The lines with the word ``import``, with all lines that may belong to the same statement."""
    cookie = _COOKIE.search(data, 0, _COOKIE_BYTES)
    if cookie is not None and not _PLAIN_CODEC.match(cookie[1]):
        yield data
        return
    done = 0
    for found in _IMPORT.finditer(data):
        if found.start() < done:
            continue
        start = data.rfind(b"\n", 0, found.start()) + 1
        while start > 0 and data[:start].endswith((b"\\\n", b"\\\r\n"), max(start - 3, 0)):
            start = data.rfind(b"\n", 0, start - 1) + 1
        done = _end(data, start)
        yield data[start:done]


def _end(data: bytes, start: int) -> int:
    """Where the statement ends that the line at ``start`` is part of, strings taken for code."""
    opened = 0
    at = start
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        line = data[at:end].partition(b"#")[0]
        opened += line.count(b"(") - line.count(b")")
        at = end
        if opened <= 0 and not line.rstrip(b"\r\n").endswith(b"\\"):
            break
    return at

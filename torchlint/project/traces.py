"""What a result rests on beside its own file, so that a later run can tell whether it still holds.

That is the shape of the project (which files it has, and what their text says of imports) and the bytes of
those other files that were asked; for a file of too large a program, also the names that all files have at
their top level, where imports lead to. Nothing is parsed: imports are found by their words, and rather too
many than too few lines are taken for some. Source: A. Mokhov, N. Mitchell, S. Peyton Jones, "Build Systems à
la Carte" (2018), on verifying traces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from torchlint.project.layout import Layout
from torchlint.project.roots import INIT, METADATA
from torchlint.source import SourceError, is_file, read_bytes

# What a record of a file has beside the names that it defines.
_IMPORT = re.compile(rb"import|\bsys\.modules\b|(?<![\w.])(?:exec|eval)[ \t]*\(")
# Codecs in which the words of Python have the bytes of ASCII, as in all others that programs are written in.
_PLAIN_CODEC = re.compile(rb"utf-?8|latin|iso-?8859|ascii|cp125|windows-125", re.IGNORECASE)
_COOKIE = re.compile(rb"coding[:=][ \t]*([-\w.]+)")
_COOKIE_BYTES = 400
_METADATA = (METADATA, "setup.cfg", "setup.py")
_LARGEST_METADATA = 1_000_000
_MARGIN = re.compile(rb"\n(?=[^\s#])")
_DEFINITION = re.compile(rb"(?:class|def|async[ \t]+def)\b[^\n]*")


class Consulted(NamedTuple):
    """The other files that a result may rest on; and whether it rests on the ``names`` of all."""

    files: frozenset[Path] = frozenset()
    names: bool = False


NOTHING = Consulted()


class Trace(NamedTuple):
    """The files that a result rests on, and a digest of all.

    If it rests on the names of all files, there are digests of the project and of these names as well.

    They are named by their places in the order of the files: where each run of neighbours begins, and how
    long it is, one after the other. In a large project a result may rest on most files.
    """

    runs: tuple[int, ...]
    digest: str
    whole: str = ""
    names: str = ""


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
        self._names: dict[Path, str] = {}
        self._digests: dict[tuple[Path, tuple[int, ...]], str | None] = {}
        self._runs: dict[tuple[Path, frozenset[Path]], tuple[int, ...]] = {}

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
        """A digest of which files a project has, and of what each says of imports and configurations."""
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
        for file, documents in sorted(layout.configs.items()):
            digest.update(b"\0" + b"".join(map(_named, (file, *documents))))
        folders = {file.parent for file in layout.files}
        for folder in sorted(folders, key=str):
            # What a project leaves out may make its folder a package all the same.
            if folder / INIT not in layout.members and is_file(folder / INIT):
                digest.update(b"\0" + _named(folder))
        return digest.digest()

    def trace(self, layout: Layout, consulted: Consulted) -> Trace:
        """The trace of a result that rests on what was consulted."""
        runs = self._runs_of(layout, consulted.files)
        digest = self._digest(layout, runs)
        assert digest is not None
        if consulted.names:
            return Trace(runs, digest, self._whole(layout), self._top_level(layout))
        return Trace(runs, digest)

    def _runs_of(self, layout: Layout, files: frozenset[Path]) -> tuple[int, ...]:
        key = layout.root, files
        if key not in self._runs:
            ranks = layout.ranks
            self._runs[key] = _runs(sorted(ranks[file] for file in files if file in ranks))
        return self._runs[key]

    def holds(self, layout: Layout, trace: Trace) -> bool:
        """Whether all files of a trace, which is of a project of the same shape, are as they were."""
        if self._digest(layout, trace.runs) != trace.digest:
            return False
        # Where no file has changed, none has other names.
        return trace.whole in ("", self._whole(layout)) or trace.names == self._top_level(layout)

    def _whole(self, layout: Layout) -> str:
        return self._digest(layout, (0, len(layout.files))) or ""

    def _top_level(self, layout: Layout) -> str:
        """A digest of all that stands at the left margin of the files, and below anything but definitions."""
        if layout.root not in self._names:
            digest = sha256()
            for file in layout.files:
                with suppress(SourceError):
                    for block in _MARGIN.split(
                        self._given[file] if file in self._given else read_bytes(file)
                    ):
                        defined = _DEFINITION.match(block)
                        digest.update(b"\0" + (defined[0] if defined else block))
                digest.update(b"\1")
            self._names[layout.root] = digest.hexdigest()[:40]
        return self._names[layout.root]

    def _digest(self, layout: Layout, runs: tuple[int, ...]) -> str | None:
        """The digest of the files that some runs name; None if these are none of this project."""
        key = layout.root, runs
        if key not in self._digests:
            self._digests[key] = self._work_out_digest(layout.every, runs)
        return self._digests[key]

    def _work_out_digest(self, files: Sequence[Path], runs: tuple[int, ...]) -> str | None:
        if len(runs) % 2:
            return None
        digest = sha256()
        for first, count in zip(runs[::2], runs[1::2], strict=True):
            if first + count > len(files):
                return None
            for file in files[first : first + count]:
                content = self.of(file)
                digest.update(b"\0" if content is None else content.digest)
        return digest.hexdigest()[:40]


def numbers(runs: Sequence[int]) -> Iterator[int]:
    """The numbers in some runs of neighbours, each told by its first and its length."""
    for first, count in zip(runs[::2], runs[1::2], strict=True):
        yield from range(first, first + count)


def _runs(ranks: Iterable[int]) -> tuple[int, ...]:
    """Numbers in ascending order as the first and the length of each run of neighbours."""
    runs: list[int] = []
    for rank in ranks:
        if runs and runs[-2] + runs[-1] == rank:
            runs[-1] += 1
        else:
            runs += rank, 1
    return tuple(runs)


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

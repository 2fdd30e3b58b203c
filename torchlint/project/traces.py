"""What a result rests on beside its own file, so that a later run can tell whether it still holds.

That is the shape of the project (which files it has, and where their imports lead) and the bytes of those
other files that were read for it. Source: A. Mokhov, N. Mitchell, S. Peyton Jones, "Build Systems à la Carte"
(2018), on verifying traces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchlint import reading
from torchlint.project.layout import Layout
from torchlint.project.roots import INIT, METADATA
from torchlint.source import SourceError, is_file, read_bytes

if TYPE_CHECKING:
    from torchlint.project.records import Records

_METADATA = (METADATA, "setup.cfg", "setup.py")
_LARGEST_METADATA = 1_000_000


class Trace(NamedTuple):
    """The files that a result rests on, and a digest of all.

    They are named by their places in the order of the files: where each run of neighbours begins, and how
    long it is, one after the other. In a large project a result may rest on most files.
    """

    runs: tuple[int, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of the bytes of a file: how many, and their digest."""

    size: int
    digest: bytes


class Contents:
    """The files of projects; ``given`` are bytes that count instead of the disk's.

    ``records`` are what their files tell of themselves.
    """

    def __init__(self, records: Callable[[], Records], given: Mapping[Path, bytes] | None = None) -> None:
        self._records = records
        self._given = dict(given or {})
        self._known: dict[Path, Content | None] = {}
        self._shapes: dict[Path, bytes] = {}
        self._digests: dict[tuple[Path, tuple[int, ...]], str | None] = {}
        self._runs: dict[tuple[Path, frozenset[Path]], tuple[int, ...]] = {}

    def of(self, file: Path) -> Content | None:
        """What a file holds; None if it cannot be read."""
        if file not in self._known:
            try:
                data = self._data(file)
                self._known[file] = Content(len(data), sha256(data).digest())
            except SourceError:
                self._known[file] = None
        return self._known[file]

    def _data(self, file: Path) -> bytes:
        return self._given[file] if file in self._given else read_bytes(file)

    def salt(self, salt: bytes, layout: Layout, file: Path) -> bytes:
        """What the key of a file begins with in a project: its own place counts there, and the shape."""
        digest = sha256(salt + self.shape(layout))
        digest.update(_named(file))
        return digest.digest()

    def shape(self, layout: Layout) -> bytes:
        """A digest of which files a project has, and of where the imports of each lead."""
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
        for file, leads in zip(layout.files, self._leading(layout), strict=True):
            digest.update(b"\0" + _named(file) + repr(leads).encode("utf-8", "surrogatepass"))
        for file, documents in sorted(layout.configs.items()):
            digest.update(b"\0" + b"".join(map(_named, (file, *documents))))
        folders = {file.parent for file in layout.files}
        for folder in sorted(folders, key=str):
            # What a project leaves out may make its folder a package all the same.
            if folder / INIT not in layout.members and is_file(folder / INIT):
                digest.update(b"\0" + _named(folder))
        return digest.digest()

    def _leading(self, layout: Layout) -> Iterator[object]:
        from torchlint.project.records import Record, leading

        records = self._records()
        found = [Record(readable=False)] * len(layout.files)
        for place, file in enumerate(layout.files):
            with suppress(SourceError):
                source = reading.from_bytes(self._data(file), file, notebook=file in layout.notebooks)
                found[place] = records.of(source)
        return leading(found)

    def trace(self, layout: Layout, consulted: frozenset[Path]) -> Trace:
        """The trace of a result that rests on the files that were consulted."""
        runs = self._runs_of(layout, consulted)
        digest = self._digest(layout, runs)
        assert digest is not None
        return Trace(runs, digest)

    def _runs_of(self, layout: Layout, files: frozenset[Path]) -> tuple[int, ...]:
        key = layout.root, files
        if key not in self._runs:
            ranks = layout.ranks
            self._runs[key] = _runs(sorted(ranks[file] for file in files if file in ranks))
        return self._runs[key]

    def holds(self, layout: Layout, trace: Trace) -> bool:
        """Whether all files of a trace, which is of a project of the same shape, are as they were."""
        return self._digest(layout, trace.runs) == trace.digest

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

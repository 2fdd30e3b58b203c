"""What a result depends on besides its own file, so that a later run can tell whether it still holds.

That is the shape of the project (which files it has, and where their imports lead) and those facets of other
files that were asked about. Source: A. Mokhov, N. Mitchell, S. Peyton Jones, "Build Systems à la Carte"
(2018), on verifying traces.

A trace names the files, and a snapshot: what each file of the project held. Where a file holds something else
by now, its faces are compared, that of the snapshot and the present one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from hashlib import sha256
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchlint import reading
from torchlint.documents import is_document
from torchlint.project.facets import Facet
from torchlint.project.layout import Layout
from torchlint.project.roots import INIT, SETTINGS
from torchlint.source import Source, SourceError, is_file, read_bytes

if TYPE_CHECKING:
    from torchlint.project.faces import Face
    from torchlint.project.records import Record, Records

_LARGEST_METADATA = 1_000_000


_MOST_SNAPSHOTS = 40
"""So many of the last runs are remembered in which something was found out."""


class Trace(NamedTuple):
    """The files that a result depends on, as a snapshot has them.

    They are named by their places in the order of the files, with the number of files for each facet on top:
    where each run of neighbours begins, and how long it is, one after the other. In a large project a result
    may depend on most files. ``asked`` are the words that were looked for, empty until all are known.
    """

    snapshot: str
    asked: str
    runs: tuple[int, ...]


@dataclass(frozen=True)
class Rests:
    """What a result depends on: of some files some facets, and the words and names that were asked for."""

    facets: Mapping[Facet, frozenset[Path]] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()

    @property
    def files(self) -> frozenset[Path]:
        """The files, whatever of them counts."""
        return frozenset[Path]().union(*self.facets.values())

    def joined(self, other: Rests) -> Rests:
        """Return what two results depend on together."""
        facets = {
            facet: self.facets.get(facet, frozenset()) | other.facets.get(facet, frozenset())
            for facet in {*self.facets, *other.facets}
        }
        return Rests(facets, self.asked | other.asked)


class Changes:
    """What some files held before, and what they hold now.

    ``asked`` is all that texts were asked for, and ``text`` gives that of a file that has not changed.
    """

    def __init__(
        self,
        changed: Iterable[tuple[Source, Source]],
        asked: Iterable[str],
        records: Records,
        text: Callable[[Path], str],
    ) -> None:
        self._asked = frozenset(asked)
        self._records = records
        self._text = text
        self._screened: dict[Path, int] = {}
        self._faces = {now.path: self._faces_of(before, now) for before, now in changed}
        self._known: dict[tuple[Path, Facet], bool] = {}

    def _faces_of(self, before: Source, now: Source) -> tuple[Face, Face] | None:
        """Return the faces of both texts; None if each facet of them counts as another."""
        if is_document(now.path):
            return None
        old, new = self._records.of(before), self._records.of(now)
        return (_face_of(before, old), _face_of(now, new)) if old.leads_as(new) else None

    def concern(self, file: Path, rests: Rests) -> bool:
        """Return whether what was found in a file may be something else now, apart from its own changes."""
        for facet, files in rests.facets.items():
            changed = [each for each in files & self._faces.keys() if each != file]
            changed = [each for each in changed if self._is_changed(each, facet)]
            if changed and (facet is not Facet.SCREEN or self._lets_more_through(changed, files)):
                return True
        return False

    def _lets_more_through(self, changed: Iterable[Path], files: Iterable[Path]) -> bool:
        """Return whether files that lend one their words have by now one that none of them had before."""
        faces = [self._faces[each] for each in changed]
        come = reduce(or_, (now.screened & ~before.screened for before, now in filter(None, faces)), 0)
        for each in files:
            if not come:
                break
            come &= ~self._had(each)
        return bool(come) or None in faces

    def _had(self, file: Path) -> int:
        """Return which words of the screen a file had before."""
        from torchlint.project.faces import screened

        if file not in self._screened:
            faces = self._faces.get(file)
            self._screened[file] = screened(self._text(file)) if faces is None else faces[0].screened
        return self._screened[file]

    def _is_changed(self, file: Path, facet: Facet) -> bool:
        key = file, facet
        if key not in self._known:
            faces = self._faces[file]
            self._known[key] = faces is None or not faces[0].as_asked(faces[1], facet, self._asked)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Content:
    """What is known of the bytes of a file: how many, and their digest."""

    size: int
    digest: bytes


class Contents:
    """The files of projects; ``given`` are bytes that count instead of the disk's.

    ``records`` are what their files tell of themselves, and ``memory`` is what earlier runs have kept.
    """

    def __init__(
        self,
        records: Callable[[], Records],
        given: Mapping[Path, bytes] | None = None,
        memory: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._records = records
        self._given = dict(given or {})
        self._memory = memory
        self._known: dict[Path, Content | None] = {}
        self._shapes: dict[Path, bytes] = {}
        self._layouts: dict[str, Layout] = {}
        self._snapshots: dict[Path, str] = {}
        self._changed: dict[tuple[Path, str], dict[int, tuple[str, str]] | None] = {}
        self._alike: dict[tuple[str, str, int, str], bool] = {}
        self._faces: dict[str, Face | None] = {}
        self._runs: dict[tuple[Path, Facet, frozenset[Path]], tuple[int, ...]] = {}
        self._asked: set[str] = set()

    def of(self, file: Path) -> Content | None:
        """Return what a file holds; None if it cannot be read."""
        if file not in self._known:
            try:
                self._read(file)
            except SourceError:
                self._known[file] = None
        return self._known[file]

    def _read(self, file: Path) -> bytes:
        """Return the bytes of a file, which are taken for what it holds.

        Raises:
            SourceError: it cannot be read.
        """
        data = self._data(file)
        if file not in self._known:
            self._known[file] = Content(len(data), sha256(data).digest())
        return data

    def _data(self, file: Path) -> bytes:
        return self._given[file] if file in self._given else read_bytes(file)

    def salt(self, salt: bytes, layout: Layout, file: Path) -> bytes:
        """Return what the key of a file begins with in a project: its own place counts there,
        and the shape.
        """
        digest = sha256(salt + self.shape(layout))
        digest.update(_named(file))
        return digest.digest()

    def shape(self, layout: Layout) -> bytes:
        """Return a digest of which files a project has, and of where the imports of each lead."""
        if layout.root not in self._shapes:
            self._shapes[layout.root] = self._shape(layout)
        return self._shapes[layout.root]

    def _shape(self, layout: Layout) -> bytes:
        settings = layout.kind, layout.src, layout.installed
        digest = sha256(_named(layout.root) + repr(settings).encode("utf-8", "surrogateescape") + b"\0")
        for name in SETTINGS:
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
                data = self._read(file)
                source = reading.from_bytes(data, file, notebook=file in layout.notebooks)
                found[place] = records.of(source)
        return leading(found)

    def snapshot(self, layout: Layout) -> str:
        """Return the name of what the files of a project hold."""
        if layout.root not in self._snapshots:
            name = sha256("".join(self._keys(layout)).encode()).hexdigest()[:20]
            self._snapshots[layout.root] = name
            self._layouts[name] = layout
        return self._snapshots[layout.root]

    def _keys(self, layout: Layout) -> list[str]:
        return [_key(self.of(file)) for file in layout.every]

    def trace(self, layout: Layout, rests: Rests) -> Trace:
        """Return the trace of a result."""
        self._asked |= rests.asked
        runs: list[int] = []
        for facet, files in rests.facets.items():
            runs += self._runs_of(layout, facet, files)
        return Trace(self.snapshot(layout), "", tuple(runs))

    def _runs_of(self, layout: Layout, facet: Facet, files: frozenset[Path]) -> tuple[int, ...]:
        key = layout.root, facet, files
        if key not in self._runs:
            ranks, first = layout.ranks, facet * len(layout.every)
            self._runs[key] = _runs(sorted(first + ranks[file] for file in files if file in ranks))
        return self._runs[key]

    def holds(self, layout: Layout, trace: Trace) -> Trace | None:
        """Return the trace of a result by what the files hold now, which are of a project of the same shape.

        None if anything is not as it was.
        """
        if trace.snapshot == self.snapshot(layout):
            return trace
        changed = self._since(layout, trace.snapshot)
        if changed is None or len(trace.runs) % 2:
            return None
        count = len(layout.every)
        screened: list[int] = []
        for number in numbers(trace.runs):
            facet, rank = divmod(number, count)
            if facet == Facet.SCREEN:
                screened.append(rank)
            elif rank in changed and not self._is_alike(*changed[rank], facet, trace.asked):
                return None
        if self._lets_more_through(screened, changed, trace):
            return None
        words = self._words(trace.asked)
        if words is None:
            return None
        self._asked.update(words)
        return Trace(self.snapshot(layout), "", trace.runs)

    def rests(self, layout: Layout, trace: Trace) -> Rests:
        """Return what a result depends on by its trace."""
        words, every = self._words(trace.asked), layout.every
        found: dict[Facet, set[Path]] = {}
        for number in numbers(trace.runs):
            facet, rank = divmod(number, len(every))
            found.setdefault(Facet.TEXT if words is None else Facet(facet), set()).add(every[rank])
        return Rests({facet: frozenset(files) for facet, files in found.items()}, frozenset(words or ()))

    def _since(self, layout: Layout, snapshot: str) -> dict[int, tuple[str, str]] | None:
        """Return the files that have changed since a snapshot, by their places:
        what they held and what they hold.

        None if it is not known.
        """
        key = layout.root, snapshot
        if key not in self._changed:
            before, now = self._kept("snapshots", snapshot), self._keys(layout)
            if isinstance(before, list) and len(before) == len(now):
                pairs = enumerate(zip(before, now, strict=True))
                self._changed[key] = {rank: (old, new) for rank, (old, new) in pairs if old != new}
                self._layouts[self.snapshot(layout)] = layout
            else:
                self._changed[key] = None
        return self._changed[key]

    def _is_alike(self, before: str, now: str, facet: int, asked: str) -> bool:
        """Return whether two texts of a file show the same where some words were asked for."""
        key = before, now, facet, asked
        if key not in self._alike:
            old, new, words = self._face(before), self._face(now), self._words(asked)
            if old is None or new is None or words is None or facet >= len(Facet):
                self._alike[key] = False
            else:
                self._alike[key] = old.as_asked(new, Facet(facet), words)
        return self._alike[key]

    def _lets_more_through(
        self, screened: Sequence[int], changed: Mapping[int, tuple[str, str]], trace: Trace
    ) -> bool:
        """Return whether files that lend one their words have by now one that none of them had before."""
        pairs = [changed[rank] for rank in screened if rank in changed]
        if all(self._is_alike(*pair, Facet.SCREEN, trace.asked) for pair in pairs):
            return False
        keys = self._kept("snapshots", trace.snapshot)
        faces = [self._face(keys[rank]) for rank in screened]
        had = reduce(or_, (face.screened for face in faces if face is not None), 0)
        present = [self._face(now) for _, now in pairs]
        return any(face is None or bool(face.screened & ~had) for face in present)

    def _words(self, asked: str) -> list[str] | None:
        words = self._kept("asked", asked)
        return words if isinstance(words, list) and all(type(word) is str for word in words) else None

    def _kept(self, kind: str, name: str) -> Any:
        """Return what earlier runs have kept under a name; None if there is no such thing."""
        kept = self._memory().get(kind)
        return kept.get(name) if isinstance(kept, dict) else None

    def _face(self, key: str) -> Face | None:
        """Return the face of a text that an earlier run has met, or this one; None if it is not known."""
        from torchlint.project.faces import Face

        if key not in self._faces:
            self._faces[key] = None
            with suppress(TypeError, ValueError):
                self._faces[key] = Face.restored(self._kept("faces", key))
            if self._faces[key] is None:
                self._make_faces()
        return self._faces.get(key)

    def _make_faces(self) -> None:
        """Make the faces of all files that belong to snapshots of this run and have none yet."""
        records, kept = self._records(), self._memory().get("faces", {})
        for layout in self._layouts.values():
            for file in layout.files:
                key = _key(self.of(file))
                if self._faces.get(key) is not None or key in kept:
                    continue
                try:
                    data = self._data(file)
                    if sha256(data).hexdigest().startswith(key):
                        source = reading.from_bytes(data, file, notebook=file in layout.notebooks)
                        self._faces[key] = _face_of(source, records.of(source))
                except SourceError:
                    continue

    def to_keep(self) -> tuple[str, dict[str, Any]]:
        """Return the name of what was asked, and all that is to be kept for later runs."""
        self._make_faces()
        memory = self._memory()
        words = sorted(self._asked)
        asked = sha256("\n".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:20]
        made = {name: self._keys(layout) for name, layout in self._layouts.items()}
        snapshots = _latest({**made, **memory.get("snapshots", {})}, made)
        used = {key for keys in snapshots.values() for key in keys}
        own = {key: face.stored() for key, face in self._faces.items() if face is not None}
        faces = {**memory.get("faces", {}), **own}
        return asked, {
            "snapshots": snapshots,
            "asked": _latest({asked: words, **memory.get("asked", {})}, {asked: words}),
            "faces": {key: face for key, face in faces.items() if key in used},
        }


def _face_of(source: Source, record: Record) -> Face:
    from torchlint.project.faces import Face

    return Face.of(source, [(each.name, int(each.kind)) for each in record.definitions])


def _latest(every: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of this run and the last ones before it, newest first."""
    return dict(list({**new, **every}.items())[:_MOST_SNAPSHOTS])


def _key(content: Content | None) -> str:
    return "" if content is None else content.digest.hex()[:16]


def numbers(runs: Sequence[int]) -> Iterator[int]:
    """Yield the numbers in some runs of neighbours, each told by its first and its length."""
    for first, count in zip(runs[::2], runs[1::2], strict=True):
        yield from range(first, first + count)


def _runs(ranks: Iterable[int]) -> tuple[int, ...]:
    """Return numbers in ascending order as the first and the length of each run of neighbours."""
    runs: list[int] = []
    for rank in ranks:
        if runs and runs[-2] + runs[-1] == rank:
            runs[-1] += 1
        else:
            runs += rank, 1
    return tuple(runs)


def _named(file: Path) -> bytes:
    return str(file).encode("utf-8", "surrogateescape") + b"\0"

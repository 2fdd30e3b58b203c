"""Which configuration files the code of a project reads, and what stands in them.

A file of YAML or JSON is one that code reads if the code names it: a text in a program ends with ``.yaml``,
``.yml`` or ``.json`` and leads to the file from the folder of the program or from one above it, where it may
be started, or ``hydra.main`` is told its folder and name. From there a defaults list of Hydra leads to
further files. What a file is called says nothing by itself. Whether and how a program uses what it names is
found out by the semantic model (`torchlint.semantics.configured`), which asks this module for the values.

Files are composed as far as that is plain: defaults lists, groups, packages and interpolations of keys
(`torchlint.project.composition`). Where a list has more to it (overrides, structured configurations), the
configuration is not known. A command line may ask for other values, so that all of them are defaults.

A configuration file is checked by way of the programs that name it: what their rules find at a place in it is
a finding of that file, whether it is asked for by name, with its folder, or staged for a commit, and none of
the program. A fix edits a value or adds a key in the style of its neighbours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from torchlint.source import Source, SourceError, read_bytes

# Few projects have such files.
if TYPE_CHECKING:
    from torchlint.documents import Document, Entry

_LARGEST_PROGRAM = 2_000_000
_MOST_NAMED = 100
_SIGNS = (b".yaml", b".yml", b".json", b"hydra")
_NAME = re.compile(r"""["']([^"'\r\n]{1,150}\.(?:ya?ml|json))["']""")
_FOLDER = re.compile(r"""["']([\w./\\ -]{1,80})["']""")
_HYDRA_FOLDER = re.compile(r"""config_path\s*=\s*["']([^"'\r\n]*)["']""")
_HYDRA_NAME = re.compile(r"""config_name\s*=\s*["']([^"'\r\n]+)["']""")
_HYDRA_MAIN = re.compile(r"""hydra\.main\(\s*["']([^"'\r\n]*)["']\s*,\s*["']([^"'\r\n]+)["']""")
_INTERPOLATION = re.compile(r"\$\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}")
_MOST_STEPS = 8
_YAML = ".yaml"


def named_by(
    files: Iterable[Path],
    root: Path,
    present: Set[Path],
    content: Callable[[Path], bytes | None] = lambda _: None,
) -> dict[Path, tuple[Path, ...]]:
    """Return the configuration files among those ``present`` that each program of a project names.

    Those that their defaults lists name are included. ``content`` gives the bytes of a file that count
    instead of those on the disk.
    """
    if not present:
        return {}
    there: _Present | None = None
    found: dict[Path, tuple[Path, ...]] = {}
    for file in files:
        try:
            given = content(file)
            data = read_bytes(file, _LARGEST_PROGRAM) if given is None else given
        except SourceError:
            continue
        if any(sign in data for sign in _SIGNS):
            there = there or _Present(root, present, content)
            documents = there.named(file, data.decode("utf-8", "replace"))
            if documents:
                found[file] = tuple(sorted(documents))
    return found


class _Present:
    """The configuration files that there are below a root, to look up what programs name."""

    def __init__(self, root: Path, files: Set[Path], content: Callable[[Path], bytes | None]) -> None:
        self._root, self._files, self._content = root, files, content
        self._names = {path.name for path in files}
        # The names that their folders have in programs: from any folder above them.
        parts = {path.parent.relative_to(root).parts for path in files}
        self._folders = {PurePosixPath(*each[start:]) for each in parts for start in range(len(each))}

    def named(self, file: Path, text: str) -> Set[Path]:
        """Return the files that the text of a program names."""
        spelt = (PurePosixPath(name.replace("\\", "/")) for name in dict.fromkeys(_NAME.findall(text)))
        names = [name for name in spelt if name.name in self._names]
        found = self._at(file, names)
        if len(found) < len(names):
            # The folder may be another text: ``Path("conf") / "train.yaml"``.
            folders = self._folders & {PurePosixPath(folder) for folder in _FOLDER.findall(text)}
            found |= self._at(file, (folder / name for folder in folders for name in names))
        if len(found) > _MOST_NAMED:
            found = set()
        for folder, name in _hydra(text) if "hydra" in text else ():
            from torchlint.project.composition import Composition

            composition = Composition(self._read, _plain(file.parent / folder))
            composition.table(name)
            found |= composition.visited
        return found

    def _at(self, file: Path, names: Iterable[PurePosixPath]) -> set[Path]:
        return {place for name in names for place in _places(file, name, self._root)} & self._files

    def _read(self, path: Path) -> Document | None:
        return _read(path, self._content(path)) if path in self._files else None


def _hydra(text: str) -> Iterator[tuple[str, str]]:
    yield from _HYDRA_MAIN.findall(text)
    for name in _HYDRA_NAME.findall(text):
        for folder in _HYDRA_FOLDER.findall(text) or [""]:
            yield folder, name


def _places(file: Path, name: PurePosixPath, root: Path) -> Iterator[Path]:
    """Yield where a name may lead that a program has: from its folder,
    or from one above it in the project.
    """
    if name.is_absolute():
        return
    for folder in file.parents:
        if not folder.is_relative_to(root):
            break
        yield _plain(folder / name)


def _plain(path: Path) -> Path:
    return Path(os.path.normpath(path))


def _read(path: Path, content: bytes | None = None) -> Document | None:
    from torchlint.documents import MOST_CHARACTERS, Document
    from torchlint.reading import from_bytes, read

    try:
        return Document(read(path, 4 * MOST_CHARACTERS) if content is None else from_bytes(content, path))
    except SourceError:
        return None


class Configs:
    """The configuration files of one project, each read when it is first asked for."""

    def __init__(self, root: Path, named: Mapping[Path, Sequence[Path]] | None = None) -> None:
        self._root = root
        self._named = {file: tuple(documents) for file, documents in (named or {}).items()}
        self.files = frozenset(path for documents in self._named.values() for path in documents)
        self._documents: dict[Path, Document | None] = {}
        self._composed: dict[Path, Entry | None] = {}

    def named(self, file: Path) -> tuple[Path, ...]:
        """Return the configuration files that a program names."""
        return self._named.get(file, ())

    def readers(self, path: Path) -> list[Path]:
        """Return the programs that name a configuration file."""
        return sorted(file for file, documents in self._named.items() if path in documents)

    def hold(self, source: Source) -> bool:
        """Take a text for that of its file; whether that is another than before."""
        from torchlint.documents import Document

        before = self.document(source.path)
        if before is not None and before.source.text == source.text:
            return False
        self._documents[source.path] = Document(source)
        self._composed.clear()
        return True

    def reread(self, path: Path) -> None:
        """Take for the text of a configuration file what the disk has by now."""
        self._documents.pop(path, None)
        self._composed.clear()

    def document(self, path: Path) -> Document | None:
        """Return a configuration file; None if it is not one of the project's, or cannot be read."""
        if path not in self._documents:
            self._documents[path] = _read(path) if path in self.files else None
        return self._documents[path]

    def find(self, file: Path, name: str, *, beside: bool) -> Path | None:
        """Return the file that a program names; ``beside`` if it begins at the folder of the program.

        None if there is none, or several that may be meant.
        """
        pure = PurePosixPath(name.replace("\\", "/"))
        places = [_plain(file.parent / pure)] if beside else _places(file, pure, self._root)
        found = [place for place in places if place in self.files]
        return found[0] if len(found) == 1 else None

    def composed(self, file: Path, folder: str, name: str) -> Path | None:
        """Return the primary configuration of ``hydra.main`` in a program; None if it is not known."""
        path = _plain(file.parent / folder / f"{name.removesuffix(_YAML)}{_YAML}")
        if path not in self._composed:
            from torchlint.project.composition import Composition

            self._composed[path] = Composition(self.document, _plain(file.parent / folder)).table(name)
        return path if self._composed[path] is not None else None

    def entry(
        self, path: Path, keys: Sequence[str | int], *, hydra: bool = False, resolved: bool = False
    ) -> Entry | None:
        """Return what stands behind some keys in a file; None if nothing does, or nothing that is plain.

        ``hydra`` asks for what its defaults list makes of it, ``resolved`` for what interpolations refer to.
        """
        root = self._composed.get(path) if hydra else self._root_of(path)
        return None if root is None else _entry(root, root, tuple(keys), resolved, _MOST_STEPS)

    def _root_of(self, path: Path) -> Entry | None:
        document = self.document(path)
        return None if document is None else document.root


def _entry(
    root: Entry, entry: Entry | None, keys: tuple[str | int, ...], resolved: bool, left: int
) -> Entry | None:
    from torchlint.documents import Row, Scalar, Table

    for key in (*keys, None):
        if isinstance(entry, Scalar) and resolved and isinstance(entry.value, str) and "${" in entry.value:
            refers = _INTERPOLATION.fullmatch(entry.value)
            if refers is None or not left:
                return None
            entry = _entry(root, root, tuple(refers[1].split(".")), resolved, left - 1)
            if isinstance(entry, (Scalar, Table)):
                entry = replace(entry, shared=True)
        if key is None:
            break
        match entry:
            case Table(items=items) if isinstance(key, str):
                entry = items.get(key)
            case Row(items=row) if isinstance(key, int) and -len(row) <= key < len(row):
                entry = row[key]
            case _:
                return None
    return entry

"""Which file of a project defines a name, and which files may use it.

Answers are computed when they are asked for: a file is read once it is needed, and the answer is the same
in whichever order the questions come.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import takewhile
from pathlib import Path

from torchlint.project.configs import Configs
from torchlint.project.faces import headers
from torchlint.project.facets import Facet
from torchlint.project.records import STAR, Definition, Import, Record, Standing, record
from torchlint.project.roots import INIT, SourceFolders, fails_on_warnings, is_test, module_at
from torchlint.reading import read
from torchlint.source import Source, SourceError
from torchlint.vocabulary import Identifiers

MOST_COMPANIONS = 100
"""What holds for a program as a whole is asked of programs of so many files; names lead anywhere."""

_LIBRARIES = frozenset(
    {
        *("torch", "torchvision", "torchaudio", "numpy", "lightning", "pytorch_lightning", "transformers"),
        *("accelerate", "diffusers", "timm", "deepspeed", "apex"),
    }
)
"""Libraries that findings are about; only their own files import them from a project."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a name of the project stands for: a definition in a file, or without one the file itself.

    ``file`` is a folder for a package without ``__init__.py``.
    """

    file: Path
    definition: Definition | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """An import, and the places that it leads to: none for a library, several for ``import *``.

    ``missing`` says that it should lead to a file of the project and does not.
    """

    statement: Import
    places: tuple[Place, ...]
    missing: bool = False


_Starred = tuple[list[Path], dict[str | None, list[int]]]


class Index:
    """The records of the files of one project, and where the names in them lead."""

    def __init__(
        self,
        folders: SourceFolders,
        files: Iterable[Path],
        configs: Configs | None = None,
        *,
        notebooks: Iterable[Path] = (),
        lent: Iterable[Path] = (),
        library: bool = False,
        record: Callable[[Source], Record] = record,
    ) -> None:
        self.folders = folders
        self.configs = configs or Configs(folders.root)
        self.library = library
        self._record = record
        self.files = frozenset(files)
        self.notebooks = frozenset(notebooks)
        self.lent = frozenset(lent)
        """Those of the files that belong to other projects, where they have users that nobody sees."""
        self._sources: dict[Path, Source] = {}
        self._texts: dict[Path, str] = {}
        self._records: dict[Path, Record] = {}
        self._modules: dict[str, Path | None] = {}
        self._from_folder: dict[Path, dict[tuple[str, int], Path | None]] = {}
        self._found_from: dict[tuple[Path, bool], dict[tuple[str, int], Path | None]] = {}
        self._seen_from: dict[tuple[Path, bool], tuple[Path, ...]] = {}
        self._links: dict[Path, tuple[Link, ...]] = {}
        self._reached: dict[tuple[bool, int], int] = {}
        self.shape = 0
        """Another number once names may lead elsewhere, since a text has other imports than before."""
        self._starring: dict[Path, _Starred] = {}
        self._names: dict[Path, frozenset[str] | None] = {}
        self._companions: dict[Path, int] = {}
        self._spoken: dict[str, list[int]] = {}
        """For each word the files that were asked for it, and those of them that have it, as `ranked`."""
        self._identifiers = Identifiers()
        self._identified = 0
        """The files whose identifiers are known, as `ranked`."""
        self._headers: dict[Path, str] = {}
        self.asked: set[str] = set()
        """The words that texts were asked for, and the names that files were."""

    @cached_property
    def ordered(self) -> list[Path]:
        """The files in order."""
        return sorted(self.files)

    @property
    def every(self) -> int:
        """All files, as `ranked`."""
        return (2 << len(self.ordered)) - 2

    @cached_property
    def _ranks(self) -> dict[Path, int]:
        return {file: rank for rank, file in enumerate(self.ordered, start=1)}

    def rank(self, file: Path) -> int:
        """Return the place of a file in the order of the project's files;
        0 for one that is not among them.
        """
        return self._ranks.get(file, 0)

    def source(self, file: Path) -> Source:
        """Return the text of a file.

        Raises:
            SourceError: it cannot be read.
        """
        if file in self._sources:
            return self._sources[file]
        return read(file, notebook=file in self.notebooks)

    def text(self, file: Path) -> str:
        """Return the text of a file; empty if it cannot be read."""
        if file not in self._texts:
            try:
                self._texts[file] = self.source(file).text
            except SourceError:
                self._texts[file] = ""
        return self._texts[file]

    def speaking_of(self, files: int, word: str) -> int:
        """Return those of some files, as `ranked`, whose text has a word, or whatever else, in it."""
        known = self._spoken.get(word)
        if known is None:
            known = self._spoken[word] = [0, 0]
            self.asked.add(word)
        new = files & ~known[0]
        if new:
            known[0] |= new
            for rank in ranks_in(new & ~self._identified):
                self._identifiers.add(self.text(self.ordered[rank - 1]), 1 << rank)
            self._identified |= new
            found, certain = self._identifiers.holding(word)
            found &= new
            if not certain:
                texts = ((rank, self.text(self.ordered[rank - 1])) for rank in ranks_in(found))
                found = sum(1 << rank for rank, text in texts if word in text)
            known[1] |= found
        return files & known[1]

    def headers(self, file: Path) -> str:
        """Return the classes in the text of a file, each as far as the colon behind its bases."""
        if file not in self._headers:
            self._headers[file] = "\n".join(headers(self.text(file)))
        return self._headers[file]

    def overlay(self, source: Source) -> bool:
        """Take a text for that of its file, from wherever it comes; whether that is another than before."""
        same = self.text(source.path) == source.text
        # Whatever becomes of the file on the disk.
        self._sources[source.path] = source
        if same:
            self._texts[source.path] = source.text
        else:
            self._replaced(source.path)
        return not same

    def reread(self, file: Path) -> None:
        """Take for the text of a file what the disk has by now."""
        self._sources.pop(file, None)
        self._replaced(file)

    def _replaced(self, file: Path) -> None:
        self._texts.pop(file, None)
        self._headers.pop(file, None)
        bit = 1 << self.rank(file)
        if self._identified & bit:
            self._identifiers.forget(bit)
        others = ~bit
        self._identified &= others
        for known in self._spoken.values():
            known[0] &= others
            known[1] &= others
        before = self._records.pop(file, None)
        if before is None or not before.leads_as(self.record(file)):
            self.shape += 1
            for links in (self._links, self._reached, self._companions, self._starring, self._names):
                links.clear()
            for name in ("_importers", "_steps", "patched", "unreadable"):
                vars(self).pop(name, None)

    def record(self, file: Path) -> Record:
        """Return what a file tells of itself; an unreadable record for one that cannot be read."""
        if file not in self._records:
            try:
                self._records[file] = self._record(self.source(file))
            except SourceError:
                self._records[file] = Record(readable=False)
        return self._records[file]

    def module(self, file: Path, name: str, level: int = 0) -> Path | None:
        """Return the file, or the folder of a package without one, that a module is for imports in ``file``.

        ``level`` is the number of leading dots. None for what is not of the project.
        """
        places = self._from_folder.get(file)
        if places is None:
            # The same for all modules of a folder.
            key_of = file.parent, file in self.notebooks
            places = self._from_folder[file] = self._found_from.setdefault(key_of, {})
        key = name, level
        if key not in places:
            places[key] = self._find_module(file, name, level)
        return places[key]

    def _find_module(self, file: Path, name: str, level: int) -> Path | None:
        if level:
            return self._at(file.parents[level - 1], name) if level <= len(file.parents) else None
        first = name.partition(".")[0]
        alone = file in self.notebooks
        key = file.parent, alone
        if key not in self._seen_from:
            self._seen_from[key] = tuple(self.folders.seen_from(file, alone=alone))
        for folder in self._seen_from[key]:
            if first in _LIBRARIES and folder / first not in file.parents:
                continue  # ``torch/`` beside a script is no more than a name, whatever Python makes of it
            # A folder that only has the name of a library holds no file of it.
            if (found := self._at(folder, name)) is not None:
                return found
        placed = (self._at(folder, rest) for folder, rest in self.folders.named(name))
        return next((found for found in placed if found is not None), None)

    def definition(self, file: Path, name: str) -> Place | None:
        """Return where a name of the top level of ``file`` is defined, through any number of imports.

        None if it comes from a library, or is not there at all.
        """
        return self._definition(file, name, set())

    def lookup(
        self, file: Path, name: str, visited: set[Path], *, by: Path | None = None
    ) -> Place | str | None:
        """Return what a file or package has under a name; for something of a library its dotted name.

        The files that were asked for it, perhaps ``by`` another, are added to ``visited``.
        """
        self.asked.add(name)
        part = self._own_part(by, file, name) if by is not None else None
        if part is not None:
            visited.update((file, part.file))
            return part
        asked: set[tuple[Path, str]] = set()
        place = self._definition(file, name, asked)
        also: set[tuple[Path, str]] = set()
        found = place if place is not None else self._library_name(file, name, also)
        visited.update(each for each, _ in (*asked, *also))
        for each in tuple(visited):
            # What a star brings has no such name as long as none of these has.
            self._follow_stars(each, visited)
        return found

    def _follow_stars(self, file: Path, visited: set[Path]) -> None:
        """Add the modules that star imports of a file lead to, and so on."""
        for module in self._starred_from(file)[0]:
            if module not in visited:
                visited.add(module)
                self._follow_stars(module, visited)

    def _library_name(self, file: Path, name: str, asked: set[tuple[Path, str]]) -> str | None:
        if (file, name) in asked or file not in self.files:
            return None
        asked.add((file, name))
        for each in reversed(self.record(file).imports):
            module = self.module(file, each.module, each.level)
            if each.name == STAR and module is not None:
                found = self._library_name(module, name, asked)
                if found is not None:
                    return found
            if each.bound != name or each.standing is Standing.LATER:
                continue
            if module is None:
                if each.level:
                    return None
                if each.name is None:
                    return each.module if each.bound != each.module.partition(".")[0] else each.bound
                return f"{each.module}.{each.name}"
            return self._library_name(module, each.name, asked) if each.name is not None else None
        return None

    def links(self, file: Path) -> tuple[Link, ...]:
        """Return the imports of a file and where they lead, in source order."""
        if file not in self._links:
            self._links[file] = tuple(self._link(file, each) for each in self.record(file).imports)
        return self._links[file]

    def importers(self, file: Path) -> frozenset[Path]:
        """Return the files of the project that import ``file``, or a name that it defines."""
        return self._importers.get(file, frozenset())

    def users(self, file: Path) -> frozenset[Path]:
        """Return the files that may name what ``file`` defines: its importers,
        and those of packages above it.
        """
        found = self.importers(file)
        handing = [user for user in found if user.name == INIT]
        return found.union(*map(self.importers, handing)) - {file}

    def is_connected(self, file: Path) -> bool:
        """Return whether a file imports another one, or another one has to do with it.

        A test that imports it has not, unless tests replace what they import with something else.
        """
        return bool(self._neighbours(file)) or bool(self.patched)

    @cached_property
    def patched(self) -> frozenset[str]:
        """The names that files of the project put something else in the place of, tests above all.

        Of ``mock.patch("package.module.Loader.read")`` these are the parts that are no module of the project,
        and of what is a library's the last part alone.
        """
        modules = {part for file in self.files for part in (file.stem, file.parent.name)}
        found: set[str] = set()
        for file in self.files:
            for dotted in self.record(file).patched:
                *parts, last = dotted.split(".")
                own = list(takewhile(modules.__contains__, parts))
                found.update((last, *parts[len(own) :]) if own else (last,))
        return frozenset(found)

    @cached_property
    def fails_on_warnings(self) -> bool:
        """Whether the tests of the project are configured to turn warnings into errors."""
        return fails_on_warnings(self.folders.root)

    def around(self, file: Path) -> tuple[Path, ...]:
        """Return the other files that may lend a file their words, in order.

        Those of its programs, or where these are too many those that it imports and that import it.
        """
        found = self.companions(file)
        if found:
            return found
        neighbours = self._neighbours(file)
        return self.at_ranks(neighbours) if neighbours.bit_count() <= MOST_COMPANIONS else ()

    def _neighbours(self, file: Path) -> int:
        rank = self.rank(file)
        return self._steps[True][rank] | self._steps[False][rank] if rank else 0

    def companions(self, file: Path) -> tuple[Path, ...]:
        """Return the other files that may run in one process with ``file``, in order.

        That is what imports it, and what that imports; tests are left out. None of them if the program has
        more than `MOST_COMPANIONS` files: it is a library, of which each program uses a part.
        """
        return self.at_ranks(self.program(file))

    def program(self, file: Path) -> int:
        """Return the `companions` of a file as `ranked`."""
        if file not in self._companions:
            rank = self.rank(file)
            self._companions[file] = self._program(rank) & ~(1 << rank) if rank else 0
        return self._companions[file]

    def ranked(self, files: Iterable[Path], facet: Facet = Facet.CODE) -> int:
        """Return a set of files as a number that has the bit of each file's rank: unions of those are fast.

        Those of each facet have bits of their own.
        """
        found = 0
        for file in files:
            found |= 1 << self.rank(file)
        return self.under(facet, found)

    def under(self, facet: Facet, ranks: int) -> int:
        """Return files that were `ranked` under the first facet as ranked under another."""
        return (ranks & ~1) << facet * (len(self.ordered) + 1)

    def facet(self, ranks: int, facet: Facet) -> int:
        """Return the files that were `ranked` under a facet, as ranked under the first."""
        stride = len(self.ordered) + 1
        return ranks >> facet * stride & (1 << stride) - 1

    def at_ranks(self, ranks: int) -> tuple[Path, ...]:
        """Return the files that were `ranked`, in order."""
        return tuple(self.ordered[each - 1] for each in ranks_in(ranks))

    @cached_property
    def unreadable(self) -> frozenset[Path]:
        """The files that are no programs, and might import anything once they are."""
        return frozenset(file for file in self.files if not self.record(file).readable)

    def _program(self, rank: int) -> int:
        """Return the files of the programs that a file is part of; none if there are too many."""
        found = 0
        for above in ranks_in(self._reach(rank, up=True)):
            if not found >> above & 1:
                found |= self._reach(above, up=False)
            if found.bit_count() > MOST_COMPANIONS:
                return 0
        return found

    def imported(self, files: int) -> int:
        """Return the files that some files import, or names of them, both as `ranked`."""
        found = 0
        for rank in ranks_in(files):
            found |= self._steps[False][rank]
        return found

    def _reach(self, rank: int, *, up: bool) -> int:
        """Return the files that import a file, or with ``up`` False those that it imports, and so on,
        and itself.

        Sets of files are numbers here, with the bit of each rank: unlike sets of paths, they are joined fast
        enough to do so for every file of a large project.
        """
        known = self._reached.get((up, rank))
        if known is not None:
            return known
        found, waiting = 1 << rank, 1 << rank
        while waiting:
            new = 0
            for each in ranks_in(waiting):
                known = self._reached.get((up, each))
                if known is not None:
                    found |= known
                else:
                    new |= self._steps[up][each]
            waiting = new & ~found
            found |= waiting
        self._reached[up, rank] = found
        return found

    @cached_property
    def _steps(self) -> dict[bool, list[int]]:
        """For each file those that it imports (False), and those, tests left out, that import it (True)."""
        imports = [0] * (len(self.ordered) + 1)
        importers = list(imports)
        for rank, file in enumerate(self.ordered, start=1):
            test = is_test(file, self.folders.root)
            for link in self.links(file):
                for place in link.places:
                    to = self.rank(place.file)
                    if to and to != rank:
                        imports[rank] |= 1 << to
                        importers[to] |= 0 if test else 1 << rank
        return {False: imports, True: importers}

    @cached_property
    def _importers(self) -> dict[Path, frozenset[Path]]:
        found: dict[Path, set[Path]] = {}
        for file in self.files:
            for link in self.links(file):
                for place in link.places:
                    if place.file != file:
                        found.setdefault(place.file, set()).add(file)
        return {file: frozenset(users) for file, users in found.items()}

    # ------------------------------------------------------------------ modules

    def _at(self, folder: Path, name: str) -> Path | None:
        place = f"{folder}{os.sep}{name.replace('.', os.sep)}" if name else str(folder)
        if place not in self._modules:
            # Most names are those of libraries: to look among the files takes less than to ask the disk.
            mine = self._members
            among = (f"{place}{os.sep}{INIT}", f"{place}.py" if name else "", place)
            found = module_at(folder, name) if any(each in mine for each in among) else None
            self._modules[place] = found if found is not None and str(found) in mine else None
        return self._modules[place]

    @cached_property
    def _members(self) -> frozenset[str]:
        """The files of the project, and the folders with one in them, or in a folder below."""
        tops = [self.folders.root, *(place for _, place in self.folders.packages)]
        inner = {file.parent for file in self.files}
        every = {up for folder in inner for up in (folder, *folder.parents)}
        folders = {folder for folder in every if any(map(folder.is_relative_to, tops))}
        return frozenset(map(str, self.files | folders))

    # ------------------------------------------------------------------ names

    def _link(self, file: Path, each: Import) -> Link:
        module = self.module(file, each.module, each.level)
        if module is None:
            return Link(each, (), missing=each.level > 0 or self._is_own(file, each.module))
        if each.name is None:
            return Link(each, (Place(module),))
        if each.name == STAR:
            return Link(each, (Place(module), *self._starred(module)))
        place = self._own_part(file, module, each.name) or self.definition(module, each.name)
        missing = place is None and not self._may_hold(module, each.name, set())
        return Link(each, (Place(module) if place is None else place,), missing)

    def _is_own(self, file: Path, name: str) -> bool:
        """Return whether the first part of a dotted name is a package of the project."""
        first, _, rest = name.partition(".")
        return bool(rest) and self.module(file, first) is not None

    def _definition(self, file: Path, name: str, asked: set[tuple[Path, str]]) -> Place | None:
        if (file, name) in asked:
            return None
        asked.add((file, name))
        own = self.record(file) if file in self.files else Record()
        if (made := own.definition(name)) is not None:
            return Place(file, made)
        for each in reversed(own.imports):
            if each.bound != name or each.standing is Standing.LATER:
                continue
            if (found := self._imported(file, each, asked)) is not None:
                return found
        for module in self._bringing(file, name):
            found = self._definition(module, name, asked) if self.exports(module, name) else None
            if found is not None:
                return found
        if file.name == INIT or file not in self.files:
            submodule = self._at(file.parent if file.name == INIT else file, name)
            return Place(submodule) if submodule is not None else None
        return None

    def _bringing(self, file: Path, name: str) -> Iterator[Path]:
        """Yield the modules from which star imports of a file may bring a name, the last import first."""
        modules, by_name = self._starred_from(file)
        if modules:
            for place in merge(by_name.get(name, ()), by_name.get(None, ())):
                yield modules[place]

    def _starred_from(self, file: Path) -> _Starred:
        """Return the modules of a file's star imports, the last one first,
        and for each name the places of those that may have it, for None of those that may have any.
        """
        if file not in self._starring:
            imports = reversed(self.record(file).imports) if file in self.files else ()
            found = (self.module(file, each.module, each.level) for each in imports if each.name == STAR)
            modules = [module for module in found if module is not None]
            by_name: dict[str | None, list[int]] = {}
            for place, module in enumerate(modules):
                held = self._held(module)
                for held_name in (None,) if held is None else held:
                    by_name.setdefault(held_name, []).append(place)
            self._starring[file] = modules, by_name
        return self._starring[file]

    def _held(self, file: Path) -> frozenset[str] | None:
        """Return all names that a module may have; None if that may be any."""
        if file not in self._names:
            self._names[file] = None  # as long as it leads back to itself
            own = self.record(file) if file in self.files else Record()
            found = {made.name for made in own.definitions}
            found.update(each.bound for each in own.imports if each.bound is not None)
            if file.name == INIT or file not in self.files:
                found.update(self._below.get(file.parent if file.name == INIT else file, ()))
            for each in own.imports:
                module = self.module(file, each.module, each.level) if each.name == STAR else None
                if module is not None:
                    more = self._held(module)
                    if more is None:
                        return None
                    found |= more
            self._names[file] = frozenset(found)
        return self._names[file]

    @cached_property
    def _below(self) -> dict[Path, set[str]]:
        """The names of the modules and folders in each folder that has a file of the project in it."""
        found: dict[Path, set[str]] = {}
        for file in self.files:
            found.setdefault(file.parent, set()).add(file.stem)
        for folder in list(found):
            for inner in (folder, *folder.parents):
                found.setdefault(inner.parent, set()).add(inner.name)
        return found

    def _imported(self, file: Path, each: Import, asked: set[tuple[Path, str]]) -> Place | None:
        """Return what an import statement of ``file`` binds a name to."""
        if each.name is None:
            # ``import a.b`` binds ``a``.
            name = each.module if each.bound != each.module.partition(".")[0] else each.bound
            module = self.module(file, name)
            return Place(module) if module is not None else None
        module = self.module(file, each.module, each.level)
        if module is None:
            return None
        return self._own_part(file, module, each.name) or self._definition(module, each.name, asked)

    def _own_part(self, file: Path, module: Path, name: str) -> Place | None:
        """Return the module that a package imports from itself, whatever it defines under the name beside:
        ``from . import plugin``.
        """
        part = self._at(file.parent, name) if module == file and file.name == INIT else None
        return Place(part) if part is not None else None

    def exports(self, file: Path, name: str) -> bool:
        """Return whether a star import of a module brings a name, if the module has it."""
        exported = self.record(file).exported if file in self.files else None
        return name in exported if exported is not None else not name.startswith("_")

    def _starred(self, file: Path) -> Iterator[Place]:
        """Yield what a star import of a module brings, in the order of its text."""
        own = self.record(file) if file in self.files else Record()
        names = own.exported or [
            *(made.name for made in own.definitions),
            *(each.bound for each in own.imports if each.bound is not None),
        ]
        for name in dict.fromkeys(names):
            if self.exports(file, name) and (place := self.definition(file, name)) is not None:
                yield place

    def _may_hold(self, file: Path, name: str, asked: set[Path]) -> bool:
        """Return whether a module may have a name that is defined in no file of the project."""
        if file not in self.files or file in asked:
            return False
        asked.add(file)
        own = self.record(file)
        if not own.readable or own.definition("__getattr__") is not None:
            return True
        if any(each.bound == name for each in own.imports):
            return True
        return any(
            module is None or self._may_hold(module, name, asked)
            for each in own.imports
            if each.name == STAR
            for module in (self.module(file, each.module, each.level),)
        )


def ranks_in(files: int) -> Iterator[int]:
    """Yield the ranks of the files of a set, lowest first."""
    while files:
        lowest = files & -files
        yield lowest.bit_length() - 1
        files ^= lowest

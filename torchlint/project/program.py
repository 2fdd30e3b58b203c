"""The modules of one project as one model: built on demand, with one memory for their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import libcst as cst

from torchlint.conversion import NotOutlinedError
from torchlint.diagnostics import Position
from torchlint.documents import Entry
from torchlint.effort import Effort, is_too_large
from torchlint.outline import Outline
from torchlint.parsing import DEEPEST_QUESTIONS
from torchlint.project.exposure import Exposure
from torchlint.project.facets import Facet
from torchlint.project.index import Index, Place
from torchlint.project.records import STAR, DefinitionKind
from torchlint.project.roots import is_test
from torchlint.semantics import model
from torchlint.semantics.dependencies import noted, worked_out
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.inference import place_of
from torchlint.semantics.linked import MOST_USERS, Target
from torchlint.semantics.module import Module, Settings
from torchlint.semantics.names import Binding, Names
from torchlint.source import Source
from torchlint.syntax import Forest, Ground, SyntaxTree

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")

_Users = tuple[Path, tuple[str, ...], tuple[str, ...] | None, bool, int, str]
"""A question for users: what `Program.users` is asked."""

_USED_BY_ALL = 100
"""Of what more files of a library import not even a few users are looked for."""
_MOST_USERS_IN_LIBRARY = 1
"""As `MOST_USERS`, where the programs of a file are not looked at as a whole: each user has its own users."""


class Trees:
    """The trees of a project's files, as long as their texts stay the same."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.forest = Forest(self._placed)
        self._bits = [index.ranked((file,), Facet.TEXT) for file in index.ordered]
        self._kept: dict[Path, tuple[str, SyntaxTree | None]] = {}

    def _placed(self, rank: int) -> None:
        noted.files |= self._bits[rank - 1]

    def tree(self, file: Path) -> SyntaxTree | None:
        """Return the tree of a file; None for what is no program, or is too large."""
        text = self.index.text(file)
        known = self._kept.get(file)
        if known is None or known[0] != text:
            known = self._kept[file] = text, self._parsed(file, text)
        return known[1]

    def _parsed(self, file: Path, text: str) -> SyntaxTree | None:
        if is_too_large(text):
            return None
        ground = Ground(self.forest, self.index.rank(file))
        try:
            return Outline(text, ground)
        except NotOutlinedError:
            try:
                return SyntaxTree(text, ground=ground)
            except (cst.ParserSyntaxError, RecursionError):
                return None

    def size(self, file: Path) -> int:
        """Return how many characters the tree of a file is of that is kept; 0 if none is."""
        return len(self._kept[file][0]) if file in self._kept else 0

    def plant(self, file: Path, tree: SyntaxTree) -> None:
        """Take a tree for that of a file."""
        if tree.forest is not self.forest:
            self.forest.plant(tree, self.index.rank(file))

    def keep(self, files: Collection[Path]) -> None:
        """Forget the trees of all other files, about which nobody may ask any more."""
        gone = [self._kept.pop(file)[1] for file in [file for file in self._kept if file not in files]]
        trees = self.forest.trees
        self.forest.fell([tree.rank for tree in gone if tree is not None and trees.get(tree.rank) is tree])

    def close(self) -> None:
        """Forget all trees; one that was planted by somebody else stands alone again."""
        self.keep(())
        for rank in list(self.forest.trees):
            self.forest.uproot(rank)
        vars(self.forest).clear()

    def __len__(self) -> int:
        """Return how many characters the trees are of."""
        return sum(len(text) for text, _ in self._kept.values())


class Program:
    """Modules of one project that know one another.

    A question that leads out of one file is answered in the file that it leads to. All of them share one
    memory, so that nothing is computed twice, whichever file is checked.
    """

    def __init__(self, trees: Trees, settings: Settings) -> None:
        self.trees, self.index = trees, trees.index
        self.settings = settings
        self.forest = trees.forest
        self.effort = Effort()
        self.fixpoint: Fixpoint[Any, Any] = Fixpoint(
            partial(place_of, self.forest.order), depth=DEEPEST_QUESTIONS, effort=self.effort
        )
        self._modules: dict[Path, Module | None] = {}
        self._by_rank: dict[int, Module] = {}
        self._files: dict[int, Path] = {}
        self._size = 0
        self._codes: dict[int, int] = {}
        """What depends on the module of each file, as it is noted."""
        # Answers, each with the files that it depends on.
        self._imported: dict[Binding, tuple[Target | None, int]] = {}
        self._places: dict[Binding, tuple[Place | Path | str | None, int]] = {}
        self._users: dict[_Users, tuple[list[Module], int]] = {}
        self._companions: dict[tuple[Path, Collection[str]], tuple[list[Module], int]] = {}
        self._direct: dict[Path, int] = {}
        self._exposure = Exposure(self.index)

    # ------------------------------------------------------------------ modules

    def module(self, file: Path) -> Module | None:
        """Return the model of a file of the project; None for one that cannot be read."""
        if file not in self._modules:
            tree = self.trees.tree(file)
            # What a place is called is another matter in a notebook only.
            notebook = file in self.index.notebooks
            source = self.index.source(file) if tree is not None and notebook else None
            self._modules[file] = None if tree is None else self._link(file, tree, source)
            if tree is not None:
                # By its nodes, of which comments have none.
                more = Effort.worth(tree.last(tree.root) - tree.first).most
                self.effort.most += more
                self.effort.limit += more
        rank = self.index.rank(file)
        noted.files |= self._codes[rank] if rank in self._codes else self.index.ranked((file,), Facet.TEXT)
        return self._modules[file]

    def add(self, source: Source, tree: SyntaxTree) -> Module:
        """Return the model of a file that is to be checked, from a tree of it."""
        module = self._modules[source.path] = self._link(source.path, tree, source)
        return module

    def begin(self, source: Source, effort: Effort) -> Module | None:
        """Return the model of a file that is to be checked, None if it cannot be read;
        its steps are counted anew.

        Whatever of other files has to be read for it counts for so much more.
        """
        self.effort.spent, self.effort.most = 0, effort.most
        self.effort.limit = effort.most
        module = self.module(source.path)
        if module is not None:
            module.place_by(source.locate)
        return module

    def _link(self, file: Path, tree: SyntaxTree, source: Source | None) -> Module:
        rank = self.index.rank(file)
        self.trees.plant(file, tree)
        tree.effort = self.effort
        locate = None if source is None else source.locate
        module = model.build(tree, self.settings, locate, self, self.fixpoint, file)
        self._by_rank[rank], self._files[rank] = module, file
        self._size += len(tree.text)
        # The nodes of a tree in full have the comments between them.
        facets = (Facet.CODE,) if isinstance(tree, Outline) else (Facet.CODE, Facet.TEXT)
        self._codes[rank] = sum(self.index.ranked((file,), facet) for facet in facets)
        return module

    def __len__(self) -> int:
        """Return how many characters the modules are of."""
        return self._size

    def close(self, *, trees: bool = True) -> None:
        """Forget everything that was computed, and the trees unless others go on with them."""
        for module in self._by_rank.values():
            # The one that was checked may be closed already.
            if vars(module):
                module.close()
        if trees:
            self.trees.close()
        vars(self.fixpoint).clear()
        vars(self).clear()

    # ------------------------------------------------------------------ what modules ask

    def home(self, node: cst.CSTNode) -> Module:
        """Return the module of the file that a node belongs to."""
        rank = self.forest.rank(node)
        noted.files |= self._codes[rank]
        return self._by_rank[rank]

    def is_imported(self, part: Any) -> bool:
        """Return whether another file of the project imports a module, or what it defines."""
        users = sorted(self.index.users(self.file(part)))
        self._note(Facet.NAMES, *users[:1])
        return bool(users)

    def shows_users(self, part: Any, name: str) -> bool:
        """Return whether only files of the project can use a name of the top level of a module."""
        file = self.file(part)
        self._note(Facet.WORDS, *self.index.users(file))
        few = self._direct_users(file).bit_count() <= MOST_USERS
        return few and not self._exposure.is_open(file, name)

    def shows_programs(self, part: Any) -> bool:
        """Return whether the programs that a module is part of are looked at as a whole, which those of many
        files are not, or no other file uses what it defines.
        """
        file = self.file(part)
        direct = self._direct_users(file)
        self._note_ranks(Facet.WORDS, direct)
        return not direct or bool(self.index.program(file))

    def is_used(self, part: Any, name: str) -> bool:
        """Return whether a file of the project, a test among them,
        may use a name of the top level of a module.
        """
        file = self.file(part)
        self._note(Facet.WORDS, *self.index.users(file))
        return bool(self._exposure.users(file, name))

    def patched(self) -> frozenset[str]:
        """Return the names that files of the project replace, which are part of its shape:
        nothing is noted.
        """
        return self.index.patched

    def fails_on_warnings(self) -> bool:
        """Return whether the tests of the project turn warnings into errors, which is part of its shape."""
        return self.index.fails_on_warnings

    def is_tested(self, part: Any, name: str) -> bool:
        """Return whether a test may use a name of the top level of a module."""
        file, root = self.file(part), self.index.folders.root
        tests = [user for user in self._exposure.users(file, name) if is_test(user, root)]
        self._note(Facet.WORDS, *self.index.users(file))
        return bool(tests)

    def place(self, node: cst.CSTNode) -> Position:
        """Return where a node begins, with its file."""
        module = self.home(node)
        return replace(module.position(node), path=self._files[module.tree.rank])

    def file(self, part: Any) -> Path:
        """Return the file of a module, or of a part of one."""
        return self._files[part.tree.rank]

    def _note(self, facet: Facet, *files: Path) -> None:
        noted.files |= self.index.ranked(files, facet)

    def _note_ranks(self, facet: Facet, files: int) -> None:
        noted.files |= self.index.under(facet, files)

    @staticmethod
    def _kept(table: dict[Key, tuple[Answer, int]], key: Key, work_out: Callable[[Key], Answer]) -> Answer:
        """Return what a table has for a key, computed when it is first asked for."""
        known = table.get(key)
        if known is None:
            known = table[key] = worked_out(work_out, key)
        else:
            noted.files |= known[1]
        return known[0]

    def defines(self, names: Names, binding: Binding) -> bool:
        """Return whether an import brings a function, a class or a file of the project,
        which is no other's name.
        """
        found = self._look_up_import(binding)
        if not isinstance(found, Place):
            return isinstance(found, Path)
        return found.definition is None or found.definition.kind is not DefinitionKind.VARIABLE

    def speaks(self, names: Names, binding: Binding, word: str) -> bool | None:
        """Return whether the text of the file that an import brings, or brings a definition of, has a word;
        None for what is not of the project.
        """
        found = self._look_up_import(binding)
        file = found.file if isinstance(found, Place) else found
        if not isinstance(file, Path):
            return None
        self._note(Facet.WORDS, file)
        return bool(self.index.speaking_of(self.index.ranked((file,)), word))

    def imported(self, names: Names, binding: Binding) -> Target | None:
        """Return what an import brings from the project; None if it is of a library, or not found."""
        return self._kept(self._imported, binding, self._find_imported)

    def _find_imported(self, binding: Binding) -> Target | None:
        found = self._look_up_import(binding)
        return self._target(found) if isinstance(found, Place) else found

    def _look_up_import(self, binding: Binding) -> Place | Path | str | None:
        """Return what the index knows of what an import brings."""
        return self._kept(self._places, binding, self._find_place)

    def _find_place(self, binding: Binding) -> Place | Path | str | None:
        file = self._files[self.forest.rank(binding.node)]
        statement = self.forest.parents[binding.node]
        dotted = binding.imported or ""
        if isinstance(statement, cst.ImportFrom):
            path = dotted.lstrip(".")
            level = len(statement.relative)
            base, _, name = path.rpartition(".") if path else ("", "", "")
            module = self.index.module(file, base, level)
            return None if module is None else self._look_up(module, name, by=file)
        module = self.index.module(file, dotted)
        if module is not None:
            self._note(Facet.NAMES, module)
        return module

    def at(self, names: Names, name: str) -> Target | None:
        """Return the file or package that a dotted name is for imports in a module."""
        path = name.lstrip(".")
        found = self.index.module(self.file(names), path, len(name) - len(path))
        if found is not None:
            self._note(Facet.NAMES, found)
        return found

    def member(self, file: Path, name: str) -> Target | None:
        """Return what a file or package of the project has under a name; None if nothing is known of it."""
        found = self._look_up(file, name)
        return self._target(found) if isinstance(found, Place) else found

    def _look_up(self, file: Path, name: str, by: Path | None = None) -> Place | str | None:
        visited: set[Path] = set()
        found = self.index.lookup(file, name, visited, by=by)
        self._note(Facet.NAMES, *visited)
        return found

    def _target(self, found: Place) -> Target | None:
        if found.definition is None:
            return found.file
        module = self.module(found.file)
        if module is None:
            return None
        names = module.names
        return names.definitions(names.module_scope, name_of(found)) or None

    def starred(self, names: Names, name: str) -> Target | None:
        """Return what a star import of a module brings from the project under a name."""
        file = self.file(names)
        for each in reversed(self.index.record(file).imports):
            if each.name != STAR:
                continue
            module = self.index.module(file, each.module, each.level)
            if module is not None:
                self._note(Facet.NAMES, module)
            if module is not None and self.index.exports(module, name):
                found = self.member(module, name)
                if found is not None:
                    return found
        return None

    def users(
        self,
        part: Any,
        words: tuple[str, ...],
        *,
        instances: tuple[str, ...] | None = None,
        heirs: bool = False,
        most: int = 0,
        written: str = "",
    ) -> Sequence[Module]:
        """Return the modules that may use what a module defines, in a fixed order, without itself.

        Those of what imports it with one of some words in their text, if there are any, and those with one of
        ``instances`` of the rest of its programs, which may be handed them. With ``heirs``, those that define
        a class with such a base, and those with ``written`` in their code.
        In a library of which several files are users there are none, unless ``most`` says of how many there
        may be some.
        """
        key = self.file(part), words, instances, heirs, most, written
        return self._kept(self._users, key, lambda key: self._modules_of(self._find_users(*key)))

    def _modules_of(self, files: int) -> list[Module]:
        """Return the modules of files, as `Index.ranked`, in order."""
        return [module for file in self.index.at_ranks(files) if (module := self.module(file)) is not None]

    def names(self, part: Any, word: str, *, instances: bool = False) -> bool:
        """Return whether the text of a module that may use another has a word; with ``instances``,
        of any module.
        """
        file = self.file(part)
        direct = self._direct_users(file)
        found = self.index.speaking_of(direct, word)
        # One that has it is witness enough; where none has, each of them may have it in the next run.
        self._note_ranks(Facet.WORDS, _first(found, 1) or direct)
        return bool(found) or (instances and bool(self.index.speaking_of(self._companions_of(file), word)))

    def speaking(self, words: tuple[str, ...], among: tuple[str, ...]) -> Sequence[Module]:
        """Return the modules of the project whose text has one of some words, ``among`` those that have one
        of others, in a fixed order; none if there are many.
        """
        every = self.index.every
        found = self._speaking_of(self._speaking_of(every, among), words)
        # Any other may have both in the next run.
        self._note_ranks(Facet.WORDS, every)
        return self._modules_of(found) if found.bit_count() <= MOST_USERS else []

    def has_anywhere(self, words: tuple[str, ...]) -> bool:
        """Return whether the text of any file of the project, a test among them, has one of some words."""
        every = self.index.every
        found = self._speaking_of(every, words)
        self._note_ranks(Facet.WORDS, _first(found, 1) or every)
        return bool(found)

    def configuration(self, part: Any, name: str, *, beside: bool) -> Path | None:
        """Return the configuration file that a module names;
        ``beside`` if it begins at the folder of the module.
        """
        return self.index.configs.find(self.file(part), name, beside=beside)

    def composed(self, part: Any, folder: str, name: str) -> Path | None:
        """Return the primary configuration that Hydra composes for a module; None if it is not known."""
        return self.index.configs.composed(self.file(part), folder, name)

    def entry(self, file: Path, keys: Sequence[str | int], *, hydra: bool, resolved: bool) -> Entry | None:
        """Return what stands behind some keys in a configuration file; None if nothing plain does."""
        return self.index.configs.entry(file, keys, hydra=hydra, resolved=resolved)

    def readers(self, file: Path) -> int:
        """Return how many files of the project name a configuration file."""
        return len(self.index.configs.readers(file))

    def _speaking_of(self, files: int, words: Collection[str]) -> int:
        """Return those of some files, as `Index.ranked`, that have one of some words, or all without any."""
        # Without files no word is noted as asked for: any change of a text would count for one with a quote,
        # which faces of texts do not have.
        if not words or not files:
            return files
        found = 0
        for word in words:
            found |= self.index.speaking_of(files & ~found, word)
        return found

    def companions(self, part: Any, words: tuple[str, ...] = ()) -> Sequence[Module]:
        """Return the other modules of the programs that a module is part of, in a fixed order.

        With ``words``, those that have one of them in their text.
        """
        file = self.file(part)
        key = file, words
        return self._kept(self._companions, key, self._find_companions)

    def _find_companions(self, key: tuple[Path, Collection[str]]) -> list[Module]:
        file, words = key
        return self._modules_of(self._speaking_of(self._companions_of(file), words))

    def is_companion(self, part: Any, other: Any) -> bool:
        """Return whether another module is among the `companions` of a module."""
        return bool(self._companions_of(self.file(part)) >> other.tree.rank & 1)

    def _companions_of(self, file: Path) -> int:
        """Return the other files of the programs that a file is part of, as `Index.ranked`."""
        others = self.index.program(file)
        self._note_ranks(Facet.WORDS, others)
        return others

    def _direct_users(self, file: Path) -> int:
        """Return the files that may name what a file defines, tests left out, as `Index.ranked`."""
        if file not in self._direct:
            root = self.index.folders.root
            users = (user for user in self.index.users(file) if not is_test(user, root))
            self._direct[file] = self.index.ranked(users)
        return self._direct[file]

    def _find_users(
        self,
        file: Path,
        words: tuple[str, ...],
        instances: tuple[str, ...] | None,
        heirs: bool,
        most: int,
        written: str,
    ) -> int:
        index = self.index
        itself = index.ranked((file,))
        direct = self._direct_users(file)
        importers = _USED_BY_ALL if most else MOST_USERS
        if most < MOST_USERS and direct.bit_count() > importers and not index.program(file):
            # What all of a library uses is used by others too, in every way that there is.
            self._note_ranks(Facet.WORDS, _first(direct, importers + 1))
            return 0
        if most and instances is not None:
            # What makes an instance returns it to what imports it.
            for user in index.at_ranks(direct):
                direct |= self._direct_users(user)
            direct &= ~itself
        found = self._speaking_of(direct, words)
        if written:
            self._note_ranks(Facet.CODE, found)
            found = index.ranked(user for user in index.at_ranks(found) if written in index.text(user))
        if heirs:
            bases = re.compile(rf"\b(?:{'|'.join(words)})\b")
            found = index.ranked(user for user in index.at_ranks(found) if bases.search(index.headers(user)))
        most = most or (MOST_USERS if index.program(file) else _MOST_USERS_IN_LIBRARY)
        if found.bit_count() > most:
            # As long as these are among them there are too many.
            self._note_ranks(Facet.WORDS, _first(found, most + 1))
            return 0
        # Those that do not speak of what is looked for may do so in the next run.
        self._note_ranks(Facet.WORDS, direct)
        if instances is None:
            return found
        # An instance is handed on to what its maker imports, and returned to what imports its maker.
        handed = self._companions_of(file)
        if not handed:
            handed = index.imported(direct) & ~itself
            self._note_ranks(Facet.WORDS, handed)
        every = found | self._speaking_of(handed, instances)
        return every if every.bit_count() <= most else found


def _first(files: int, count: int) -> int:
    """Return the first files of a set, as `Index.ranked`."""
    found = 0
    for _ in range(count):
        lowest = files & -files
        found |= lowest
        files ^= lowest
    return found


def name_of(place: Place) -> str:
    """Return the name of a definition in its own file."""
    assert place.definition is not None
    return place.definition.name

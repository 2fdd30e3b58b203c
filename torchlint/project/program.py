"""The modules of one project as one model: made when a question leads to them, and sharing its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import libcst as cst

from torchlint.conversion import NotOutlinedError
from torchlint.diagnostics import Position
from torchlint.effort import Effort, is_too_large
from torchlint.outline import Outline
from torchlint.project.index import MOST_COMPANIONS, Index, Place
from torchlint.project.records import STAR
from torchlint.semantics import model
from torchlint.semantics.fixpoint import Fixpoint
from torchlint.semantics.inference import MAX_DEPTH, place_of
from torchlint.semantics.linked import Target
from torchlint.semantics.module import Module, Settings
from torchlint.semantics.names import Binding, Names
from torchlint.source import Source, SourceError
from torchlint.syntax import Forest, SyntaxTree

_MOST_USERS = 24
"""Of a file that more files than these may use, the calls in other files are not looked for."""


class Trees:
    """The trees of a project's files, as long as their texts stay the same."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._kept: dict[Path, tuple[str, SyntaxTree | None]] = {}

    def tree(self, file: Path) -> SyntaxTree | None:
        """The tree of a file; None for what cannot be read, is no program, or is too large."""
        try:
            text = self.index.source(file).text
        except SourceError:
            return None
        known = self._kept.get(file)
        if known is None or known[0] != text:
            known = self._kept[file] = text, _parsed(text)
        return known[1]

    def keep(self, file: Path, tree: SyntaxTree) -> None:
        """Remember a tree that was made elsewhere."""
        self._kept[file] = tree.text, tree

    def __len__(self) -> int:
        return sum(len(text) for text, _ in self._kept.values())


def _parsed(text: str) -> SyntaxTree | None:
    if is_too_large(text):
        return None
    try:
        return Outline(text)
    except NotOutlinedError:
        try:
            return SyntaxTree(text)
        except (cst.ParserSyntaxError, RecursionError):
            return None


class Program:
    """Modules of one project that know one another.

    A question that leads out of one file is answered in the file that it leads to. All of them share one
    memory, so that nothing is worked out twice, whichever file is checked.
    """

    def __init__(self, trees: Trees, settings: Settings, edges: dict[Path, set[Path]] | None = None) -> None:
        self.trees, self.index = trees, trees.index
        self.settings = settings
        self.forest = Forest()
        self.effort = Effort()
        self.fixpoint: Fixpoint[Any, Any] = Fixpoint(
            partial(place_of, self.forest.order), depth=MAX_DEPTH, effort=self.effort
        )
        self.edges = {} if edges is None else edges
        """For each file the others that its questions led to."""
        self._modules: dict[Path, Module | None] = {}
        self._by_rank: dict[int, Module] = {}
        self._files: dict[int, Path] = {}
        self._imported: dict[Binding, Target | None] = {}
        self._users: dict[Path, tuple[Path, ...]] = {}
        self._companions: dict[Path, tuple[Path, ...]] = {}

    # ------------------------------------------------------------------ modules

    def module(self, file: Path) -> Module | None:
        """The model of a file of the project; None for one that cannot be read."""
        if file not in self._modules:
            tree = self.trees.tree(file)
            self._modules[file] = None if tree is None else self._link(file, tree, None)
            if tree is not None:
                more = Effort.worth(len(tree.text)).most
                self.effort.most += more
                self.effort.limit += more
        return self._modules[file]

    def add(self, source: Source, tree: SyntaxTree) -> Module:
        """The model of a file that is to be checked, from a tree of it."""
        module = self._modules[source.path] = self._link(source.path, tree, source)
        return module

    def begin(self, source: Source, effort: Effort) -> Module | None:
        """The model of a file that is to be checked, if it has an outline; steps are counted for it anew.

        Whatever of other files has to be read for it counts for so much more.
        """
        self.effort.spent, self.effort.most = 0, effort.most
        self.effort.limit = effort.most
        module = self.module(source.path)
        if module is None or not isinstance(module.tree, Outline):
            return None
        module.place_by(source.locate)
        return module

    def _link(self, file: Path, tree: SyntaxTree, source: Source | None) -> Module:
        rank = self.index.rank(file)
        self.forest.plant(tree, rank)
        tree.effort = self.effort
        locate = None if source is None else source.locate
        module = model.build(tree, self.settings, locate, self, self.fixpoint)
        self._by_rank[rank], self._files[rank] = module, file
        return module

    def __len__(self) -> int:
        return sum(len(module.tree.text) for module in self._by_rank.values())

    def close(self) -> None:
        """Forget everything that was worked out."""
        for module in self._by_rank.values():
            # The one that was checked may be closed already.
            if vars(module):
                module.close()
        vars(self.fixpoint).clear()
        vars(self).clear()

    # ------------------------------------------------------------------ what modules ask

    def home(self, node: cst.CSTNode) -> Module:
        """The module of the file that a node belongs to."""
        return self._by_rank[self.forest.rank(node)]

    def place(self, node: cst.CSTNode) -> Position:
        """Where a node begins, with its file."""
        module = self.home(node)
        return replace(module.position(node), path=self._files[module.tree.rank])

    def file(self, part: Any) -> Path:
        """The file of a module, or of a part of one."""
        return self._files[part.tree.rank]

    def _note(self, file: Path, *others: Path) -> None:
        self.edges.setdefault(file, set()).update(other for other in others if other != file)

    def imported(self, names: Names, binding: Binding) -> Target | None:
        """What an import brings from the project; None if it is of a library, or not found."""
        if binding not in self._imported:
            self._imported[binding] = self._find_imported(names, binding)
        return self._imported[binding]

    def _find_imported(self, names: Names, binding: Binding) -> Target | None:
        file = self._files[self.forest.rank(binding.node)]
        statement = self.forest.parents[binding.node]
        dotted = binding.imported or ""
        if isinstance(statement, cst.ImportFrom):
            path = dotted.lstrip(".")
            level = len(statement.relative)
            base, _, name = path.rpartition(".") if path else ("", "", "")
            module = self.index.module(file, base, level)
            if module is None:
                return None
            self._note(file, module)
            return self.member(module, name)
        module = self.index.module(file, dotted)
        if module is not None:
            self._note(file, module)
        return module

    def member(self, file: Path, name: str) -> Target | None:
        """What a file or package of the project has under a name; None if nothing is known of it."""
        visited: set[Path] = set()
        found = self.index.lookup(file, name, visited)
        self._note(file, *visited)
        if not isinstance(found, Place):
            return found
        if found.definition is None:
            return found.file
        module = self.module(found.file)
        if module is None:
            return None
        names = module.names
        return names.definitions(names.module_scope, name_of(found)) or None

    def starred(self, names: Names, name: str) -> Target | None:
        """What a star import of a module brings from the project under a name."""
        file = self.file(names)
        for each in reversed(self.index.record(file).imports):
            if each.name != STAR:
                continue
            module = self.index.module(file, each.module, each.level)
            if module is not None:
                self._note(file, module)
            if module is not None and self.index.exports(module, name):
                found = self.member(module, name)
                if found is not None:
                    return found
        return None

    def users(self, part: Any) -> Sequence[Module]:
        """The modules that may call what a module defines, in a fixed order, without itself."""
        file = self.file(part)
        if file not in self._users:
            self._users[file] = self._find_users(file)
        self._note(file, *self._users[file])
        return [module for user in self._users[file] if (module := self.module(user)) is not None]

    def companions(self, part: Any) -> Sequence[Module]:
        """The other modules of the programs that a module is part of, in a fixed order."""
        file = self.file(part)
        if file not in self._companions:
            self._companions[file] = tuple(sorted(self.index.programs(file, MOST_COMPANIONS) - {file}))
        self._note(file, *self._companions[file])
        return [module for other in self._companions[file] if (module := self.module(other)) is not None]

    def _find_users(self, file: Path) -> tuple[Path, ...]:
        direct = self.index.users(file)
        if len(direct) > _MOST_USERS:
            return ()
        # An instance is handed on to what its maker imports.
        handed = {place.file for user in direct for link in self.index.links(user) for place in link.places}
        every = (direct | (handed & self.index.files)) - {file}
        found = every if len(every) <= _MOST_USERS else direct
        return tuple(sorted(found))


def name_of(place: Place) -> str:
    """The name of a definition in its own file."""
    assert place.definition is not None
    return place.definition.name

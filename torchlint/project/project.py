"""A project as it is kept from one checked file to the next; its model is built when a rule asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.project.facets import Facet
from torchlint.project.index import Index
from torchlint.project.roots import is_test
from torchlint.project.traces import Rests
from torchlint.source import Source
from torchlint.vocabulary import JoinedWords, Vocabulary, Words

# Most files say nothing that a rule is about, and are read without any model.
if TYPE_CHECKING:
    from torchlint.project.program import Program, Trees
    from torchlint.semantics.module import Settings

_LEAST_MEMORY, _MOST_MEMORY = 450_000_000, 1_200_000_000
"""Between how many bytes of memory models may take that are kept from one checked file to the next.

What the files of a large library lead to over and over has to fit, or it is made anew for nearly every file:
that of diffusers takes 300 million, that of vLLM 550 million.
"""
_LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container is told how much memory it may take."""
_IN_TREE, _IN_MODEL, _OF_ANSWER = 40, 15, 400
"""Bytes that a character of a file takes in its tree, and in its names and flow, and those of an answer.

All by how much the process grew in checks of yolov5 and timm.
"""


class Project:
    """What is kept of a project from one checked file to the next."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._trees: Trees | None = None
        self._program: Program | None = None
        self._rests: dict[Path, int] = {}
        """For each file the others that what was found in it depends on."""
        self._sets: dict[int, frozenset[Path]] = {}
        self._words: dict[Path, Words] = {}
        self._told: set[str] = set()

    def program(self, settings: Settings, *, anew: bool = False) -> Program:
        """Return the files of the project as one model,
        with what was computed so far unless it is made anew.
        """
        from torchlint.semantics.module import alike

        present = self._program
        if present is not None and not anew and alike(present.settings, settings):
            taken = _IN_TREE * len(present.trees) + _IN_MODEL * len(present)
            if taken + _OF_ANSWER * len(present.fixpoint) < _memory():
                return present
        self.forget()
        from torchlint.project.program import Program, Trees

        # Whoever wants it anew is in the middle of a file, and has its tree.
        if self._trees is not None and not anew:
            self._trees.keep(self._lately(self._trees, _memory() // 3 // _IN_TREE))
        if self._trees is None:
            self._trees = Trees(self.index)
        self._program = Program(self._trees, settings)
        return self._program

    def _lately(self, trees: Trees, most: int) -> frozenset[Path]:
        """Return the files that the last checks depended on,
        as far as their trees are not of too many characters.
        """
        found = size = 0
        for rests in reversed(self._rests.values()):
            more = self.index.facet(rests, Facet.CODE) & ~found
            size += sum(map(trees.size, self.index.at_ranks(more)))
            if size > most:
                break
            found |= more
        return self._at_ranks(found)

    def apart(self, settings: Settings) -> Program:
        """Return the files of the project as another model,
        with trees of its own and nothing computed yet.
        """
        from torchlint.project.program import Program, Trees

        return Program(Trees(self.index), settings)

    @contextmanager
    def noting(self, file: Path) -> Iterator[None]:
        """Note within the block what is read for a file: what is found in it depends on that."""
        from torchlint.semantics.dependencies import noted

        outer, noted.files = noted.files, 0
        try:
            yield
        finally:
            # The last one that was checked comes last.
            self._rests[file] = self._rests.pop(file, 0) | noted.files
            noted.files = outer

    @property
    def is_modelled(self) -> bool:
        """Whether there is a model that is kept from one checked file to the next."""
        return self._program is not None

    def keeps(self, program: object) -> bool:
        """Return whether a model is the one that is kept from one checked file to the next."""
        return program is not None and program is self._program

    def close(self) -> None:
        """Forget everything about other files but their texts."""
        self.forget()
        if self._trees is not None:
            self._trees.close()
            self._trees = None

    def forget(self) -> None:
        """Forget what was computed."""
        if self._program is not None:
            self._program.close(trees=False)
            self._program = None

    def consulted(self, file: Path) -> frozenset[Path]:
        """Return what was found in a file may depend on, so far as the project stands.

        Beside that it may depend on which files there are, and where their imports lead.
        """
        return self.rests(file).files

    def rests(self, file: Path) -> Rests:
        """Return what of which files that is."""
        index, configs = self.index, self.index.configs
        programs = [file, *(configs.readers(file) if file in configs.files else ())]
        found = index.ranked(programs, Facet.TEXT)
        for program in programs:
            found |= self._rests.get(program, 0)
        # Most files of a large project depend on the same ones, remembered once.
        facets = {facet: self._at_ranks(index.facet(found, facet)) for facet in Facet}
        if configs.files:
            files = frozenset[Path]().union(*facets.values())
            facets[Facet.TEXT] |= {path for other in (file, *files) for path in configs.named(other)}
        return Rests({facet: files for facet, files in facets.items() if files})

    def newly_asked(self) -> frozenset[str]:
        """Return the words and names that files were asked for since this was asked."""
        asked = frozenset(self.index.asked - self._told)
        self._told |= asked
        return asked

    def _at_ranks(self, ranks: int) -> frozenset[Path]:
        if ranks not in self._sets:
            self._sets[ranks] = frozenset(self.index.at_ranks(ranks))
        return self._sets[ranks]

    def configured_by(self, file: Path) -> list[Path]:
        """Return the files in which something may be found at a place in a configuration file, in order.

        Those are the programs that read it, and what is part of these.
        """
        found: set[Path] = set()
        for reader in self.index.configs.readers(file):
            if not is_test(reader, self.index.folders.root):
                found |= {reader, *self.index.companions(reader)}
        return sorted(found)

    def words(self, file: Path, own: Words) -> JoinedWords:
        """Return the words of a file, of those that may lend it theirs,
        and of configurations that these name.
        """
        others = self.index.around(file)
        self._rests[file] = self._rests.get(file, 0) | self.index.ranked((file, *others), Facet.SCREEN)
        configs = {path for other in (file, *others) for path in self.index.configs.named(other)}
        every = (*others, *sorted(configs))
        return JoinedWords([own, *(self._words_of(each, own.vocabulary) for each in every)])

    def _words_of(self, file: Path, vocabulary: Vocabulary) -> Words:
        found = self._words.get(file)
        if found is None or found.vocabulary is not vocabulary:
            found = self._words[file] = Words(self.text(file), vocabulary)
        return found

    def text(self, file: Path) -> str:
        """Return the text of a program or configuration file; nothing of one that cannot be read."""
        document = self.index.configs.document(file)
        return self.index.text(file) if document is None else document.source.text

    def overlay(self, source: Source) -> None:
        """Take a text for that of its file, from wherever it comes."""
        configs = self.index.configs
        if configs.hold(source) if source.path in configs.files else self.index.overlay(source):
            self._words.pop(source.path, None)
            self.forget()

    def reread(self, file: Path) -> None:
        """Take for the text of a file what the disk has by now."""
        if file in self.index.configs.files:
            self.index.configs.reread(file)
        else:
            self.index.reread(file)
        self._words.pop(file, None)
        self.forget()

    def holds(self, source: Source) -> bool:
        """Return whether a file is to be checked together with others;
        its text is taken for that of the file.

        A file that no other has to do with is not, unless it reads a configuration file.
        """
        configs = self.index.configs
        if source.path in configs.files:
            self.overlay(source)
            return True
        if source.path not in self.index.files:
            return False
        self.overlay(source)
        return self.index.is_connected(source.path) or bool(configs.named(source.path))


def _memory() -> int:
    """Return about how many bytes models may take: half of what there is for a process on each processor.

    What is found does not depend on it, only how often it is worked out.
    """
    return min(max(_share(), _LEAST_MEMORY), _MOST_MEMORY)


@cache
def _share() -> int:
    try:
        every = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    for limit in _LIMITS:
        with suppress(OSError, ValueError):
            every = min(every, int(limit.read_text(encoding="utf-8")))
    return every // (2 * (os.cpu_count() or 1))

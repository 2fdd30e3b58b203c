"""A project as it stays from one checked file to the next; its models are made once a rule asks for one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.project.index import Index
from torchlint.project.roots import is_test
from torchlint.source import Source, SourceError
from torchlint.vocabulary import JoinedWords, Vocabulary, Words

# Most files say nothing that a rule is about, and are read without any model.
if TYPE_CHECKING:
    from torchlint.project.program import Program, Trees
    from torchlint.semantics.module import Settings

_MOST_TEXT = 2_500_000
"""Characters of the files whose trees are kept: some seventy bytes of memory for each."""
_MOST_TOGETHER = 600_000
"""Characters of a program: the files of a longer one are checked alone."""
_MOST_ANSWERS = 150_000
"""Answers that are kept from one checked file to the next."""


class Project:
    """What is kept of a project from one checked file to the next."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._trees: Trees | None = None
        self._program: Program | None = None
        # They stay when a program is made anew: what was found already rests on them.
        self._edges: dict[Path, set[Path]] = {}
        self._words: dict[Path, Words] = {}

    def program(self, settings: Settings, *, anew: bool = False) -> Program:
        """The files of the project as one model, with what was worked out so far unless it is made anew."""
        present = self._program
        if present is not None and not anew and present.settings is settings:
            if len(present) < _MOST_TEXT and len(present.fixpoint.settled) < _MOST_ANSWERS:
                return present
        self.forget()
        from torchlint.project.program import Program, Trees

        if self._trees is None or len(self._trees) > _MOST_TEXT:
            self._trees = Trees(self.index)
        self._program = Program(self._trees, settings, self._edges)
        return self._program

    def apart(self, settings: Settings) -> Program:
        """The files of the project as another model, with trees of its own and nothing worked out yet."""
        from torchlint.project.program import Program, Trees

        return Program(Trees(self.index), settings, self._edges)

    def forget(self) -> None:
        """Forget what was worked out."""
        if self._program is not None:
            self._program.close()
            self._program = None

    def consulted(self, file: Path) -> frozenset[Path]:
        """The other files that what was found in a file may rest on, so far as the project stands.

        Beside their texts it may rest on which files there are, and what each of them imports.
        """
        found = set(self.index.programs(file))
        waiting = [file, *found]
        while waiting:
            new = self._edges.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        configs = self.index.configs
        if file in configs.files:
            for program in configs.readers(file):
                found |= {program, *self.consulted(program)}
        found.update(path for other in (file, *found) for path in configs.named(other))
        return frozenset(found - {file})

    def configured_by(self, file: Path) -> list[Path]:
        """The files in which something may be found at a place in a configuration file, in order.

        Those are the programs that read it, and what is part of these.
        """
        found: set[Path] = set()
        for reader in self.index.configs.readers(file):
            if not is_test(reader, self.index.folders.root):
                found |= {reader, *self.index.programs(reader)}
        return sorted(found)

    def words(self, file: Path, own: Words) -> JoinedWords:
        """The words of the programs that a file is part of, and of the configurations that these name."""
        vocabulary = own.vocabulary
        others = sorted(self.index.programs(file) - {file})
        configs = {path for other in (file, *others) for path in self.index.configs.named(other)}
        others += sorted(configs)
        return JoinedWords([own, *(self._words_of(other, vocabulary) for other in others)])

    def _words_of(self, file: Path, vocabulary: Vocabulary) -> Words:
        found = self._words.get(file)
        if found is None or found.vocabulary is not vocabulary:
            document = self.index.configs.document(file)
            try:
                text = self.index.source(file).text if document is None else document.source.text
            except SourceError:
                text = ""
            found = self._words[file] = Words(text, vocabulary)
        return found

    def holds(self, source: Source) -> bool:
        """Whether a file is to be checked together with others; its text is taken for that of the file.

        A file that no other has to do with is not, nor is a test, or one of a program of very many files; a
        program that reads a configuration file is.
        """
        configs = self.index.configs
        if source.path in configs.files:
            if configs.hold(source):
                self._words.pop(source.path, None)
                self.forget()
            return True
        if source.path not in self.index.files or is_test(source.path, self.index.folders.root):
            return False
        if self.index.overlay(source):
            self._words.pop(source.path, None)
            self.forget()
        files = self.index.programs(source.path)
        # Of a program of too many files there are none.
        least = 1 if configs.named(source.path) else 2
        return len(files) >= least and sum(len(self.index.text(file)) for file in files) <= _MOST_TOGETHER

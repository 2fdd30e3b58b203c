"""What a file shows to others that ask about it, so that not every change of it concerns them.

A result that uses the model of a file depends on its code; one that uses positions in it, on every byte. Most
ask only whether a word is in the file, or what it has under a name. Which words and names those were is known
for all questions of a run together.
"""

from __future__ import annotations

import re
import zlib
from base64 import b85decode, b85encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from torchlint.effort import is_too_large
from torchlint.project.facets import Facet
from torchlint.registry import catalogue
from torchlint.rule import vocabulary
from torchlint.source import Source
from torchlint.store import text_of
from torchlint.uncommented import uncommented
from torchlint.vocabulary import Words

_HEADER = re.compile(r"^[ \t]*class\b[^:]*", re.MULTILINE)
LOOKING = re.compile(r"\bgetattr\s*\(|\bvars\s*\(|__dict__|\bimport_module\b|__import__")
"""What asks a module for names that it computes, or has a module without giving it a name."""
# A word is in a text if it is in one of these: a name with attributes, and what makes a store or call of it.
_CHAIN = re.compile(r"(?:\w*with )?[\w.]+(?:\(| = ?| [-+*|]=| in |[:,=])?")


def headers(text: str) -> list[str]:
    """Return the classes in a text, each as far as the colon behind its bases."""
    return _HEADER.findall(text)


@dataclass(frozen=True, slots=True)
class Face:
    """What one text shows: digests of its code and of what else is asked of its text, and its words.

    ``defined`` are the names that it defines at the top level. ``screened`` has a bit for each word that the
    screen in front of the rules looks for, and that it has.
    """

    code: str
    marks: str
    chains: frozenset[str]
    defined: tuple[tuple[str, int], ...]
    screened: int

    @classmethod
    def of(cls, source: Source, defined: Iterable[tuple[str, int]]) -> Face:
        """Return the face of a text."""
        text = source.text
        # What is said of a place in a notebook goes by its cells, and their sequence by their texts.
        code = text if source.in_cells else uncommented(text)
        marks = [LOOKING.search(text) is not None, is_too_large(text), headers(text)]
        chains = frozenset(_CHAIN.findall(text))
        return cls(_digest(code), _digest(repr(marks)), chains, tuple(defined), screened(text))

    def stored(self) -> list[Any]:
        """Return the face as JSON can hold it."""
        chains = zlib.compress("\n".join(sorted(self.chains)).encode("utf-8", "surrogatepass"))
        defined = [list(each) for each in self.defined]
        return [self.code, self.marks, b85encode(chains).decode(), defined, f"{self.screened:x}"]

    @classmethod
    def restored(cls, document: Any) -> Face:
        """Return what was `stored`.

        Raises:
            TypeError, ValueError: it is something else.
        """
        code, marks, chains, defined, screened = document
        try:
            text = zlib.decompress(b85decode(text_of(chains))).decode("utf-8", "surrogatepass")
        except zlib.error as error:
            raise ValueError("not compressed") from error
        named = tuple((text_of(name), int(kind)) for name, kind in defined)
        words = int(text_of(screened), 16)
        return cls(text_of(code), text_of(marks), frozenset(text.split("\n")), named, words)

    def as_asked(self, other: Face, facet: Facet, asked: Iterable[str]) -> bool:
        """Return whether another text shows the same where such things were asked."""
        match facet:
            case Facet.CODE:
                return self.code == other.code and self.marks == other.marks
            case Facet.WORDS:
                return self.marks == other.marks and self._speaks_as(other, asked)
            case Facet.NAMES:
                differing = {name for name, _ in {*self.defined} ^ {*other.defined}}
                moved = [each for each in self.defined if each[0] not in differing] != [
                    each for each in other.defined if each[0] not in differing
                ]
                return not moved and differing.isdisjoint(asked)
            case Facet.SCREEN:
                # A rule that was asked has noted all that its findings depend on.
                return not other.screened & ~self.screened
            case _:
                return False

    def _speaks_as(self, other: Face, asked: Iterable[str]) -> bool:
        """Return whether the same of some words are in both texts."""
        gone, come = self.chains - other.chains, other.chains - self.chains
        if not gone and not come:
            return True
        mine, theirs = "\n".join(self.chains), "\n".join(other.chains)
        changed = "\n".join((*gone, *come))
        return not any(
            not _CHAIN.fullmatch(word) or (word in changed and (word in mine) is not (word in theirs))
            for word in asked
        )


def screened(text: str) -> int:
    """Return a number with a bit for each word of a text that the screen in front of the rules looks for."""
    words = Words(text, vocabulary(catalogue().values()))
    return sum(1 << place for place, word in enumerate(words.vocabulary.words) if word in words)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

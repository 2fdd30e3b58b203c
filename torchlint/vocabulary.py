"""Which of the words that rules look for are in a text: the screen in front of the parse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

# So many characters of identifiers are remembered, in ten times as much memory, before all are forgotten.
_MOST_REMEMBERED = 1_000_000
_IDENTIFIER = re.compile(r"[A-Za-z0-9_]+")
_IMPORT = "import:"
# What ends an identifier becomes a space; bytes beyond ASCII do not, for they may be of a letter.
_APART = bytes(code if code >= 128 or _IDENTIFIER.match(chr(code)) else ord(" ") for code in range(256))

_BOUNDED = re.compile(rb" ?[^ ]+ ?")


class Vocabulary:
    """The words that rules look for, and which parts of them the identifiers of programs hold.

    The programs of a project have most of their identifiers in common. Each is remembered together with what
    it holds, so that of every further text only those that are new have to be searched.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(sorted(set(words)))
        self._parts = [(part, part.encode()) for part in sorted(set().union(*map(parts, self.words))) if part]
        self._forget()

    def _forget(self) -> None:
        self._remembered = 0
        # Which identifiers are known, and what is in those of them that hold anything. Another thread may be
        # in the middle of a question: it goes on with the two that it has begun with.
        self._memory: tuple[set[bytes], dict[bytes, set[str]]] = (set(), {})

    def held(self, text: str) -> set[str]:
        """Return which `parts` of its words the identifiers of ``text`` hold."""
        if self._remembered > _MOST_REMEMBERED:
            self._forget()
        seen, holders = self._memory
        own = set(_apart(text).split())
        new = own - seen
        if new:
            joined = b" %b " % b" ".join(new)
            for part, code in self._parts:
                at = joined.find(code)
                while at >= 0:
                    start = joined.rfind(b" ", 0, at + 1) + 1
                    end = joined.find(b" ", start)
                    holders.setdefault(joined[start:end], set()).add(part)
                    at = joined.find(code, end)
            seen |= new
            self._remembered += len(joined)
        return {""}.union(*map(holders.__getitem__, holders.keys() & own))


class Identifiers:
    """Which of many texts hold which identifiers: most words are found without a search through any text.

    Each text has a bit, and sets of texts are numbers.
    """

    def __init__(self) -> None:
        self._holders: dict[bytes, int] = {}
        self._joined = bytearray(b" ")

    def add(self, text: str, bit: int) -> None:
        """Take in the identifiers of a text."""
        holders, new = self._holders, []
        for identifier in set(_apart(text).split()):
            known = holders.get(identifier)
            if known is None:
                new.append(identifier)
                known = 0
            holders[identifier] = known | bit
        self._joined += b"".join(b"%b " % each for each in new)

    def forget(self, bit: int) -> None:
        """Let go of a text."""
        for identifier in self._holders:
            self._holders[identifier] &= ~bit

    def holding(self, word: str) -> tuple[int, bool]:
        """Return the texts whose identifiers allow for a word, and whether that shows that they have it."""
        split = _apart(word)
        found = -1
        for part in _BOUNDED.findall(split):
            found &= self._holding(part)
        return found, b" " not in split

    def _holding(self, part: bytes) -> int:
        """Return the texts with a part of an identifier, with a space where it begins or ends."""
        if part[:1] == part[-1:] == b" ":
            return self._holders.get(part[1:-1], 0)
        joined, found = self._joined, 0
        at = joined.find(part)
        while at >= 0:
            start = joined.rfind(b" ", 0, at + 1) + 1
            end = joined.find(b" ", start)
            found |= self._holders[bytes(joined[start:end])]
            at = joined.find(part, end)
        return found


class Words:
    """A text that is asked for words of a vocabulary, and often for the same: ``word in words``.

    ``import:name`` is there if a line that looks like an import names the package; what documentation speaks
    of, behind a prompt or within a sentence, is not imported.
    """

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self._text = text
        self.vocabulary = vocabulary
        self.held = vocabulary.held(text)
        """Which parts of the words of the vocabulary its identifiers hold."""
        self._known: dict[str, bool] = {}

    def __contains__(self, word: str) -> bool:
        found = self._known.get(word)
        if found is None:
            needed = parts(word)
            found = self._known[word] = self.held.issuperset(needed) and (
                word in needed or word in self._text or _loosely(word).search(self._text) is not None
            )
        return found

    def lack(self, signs: frozenset[str]) -> bool:
        """Return whether none of some words can be there, of each of which a part is among ``signs``."""
        return self.held.isdisjoint(signs)


class JoinedWords:
    """The words of several texts, as if they were one."""

    def __init__(self, texts: Sequence[Words]) -> None:
        self._texts = texts
        self._held = frozenset[str]().union(*(text.held for text in texts))

    def __contains__(self, word: str) -> bool:
        needed = parts(word)
        if not self._held.issuperset(needed):
            return False
        return word in needed or any(word in text for text in self._texts)

    def lack(self, signs: frozenset[str]) -> bool:
        """Return whether none of some words can be there, of each of which a part is among ``signs``."""
        return self._held.isdisjoint(signs)


def _apart(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").translate(_APART)


@cache
def parts(word: str) -> frozenset[str]:
    """Return the identifiers in ``word``, with a space where it says that they begin or end; if none,
    an empty one.

    Between two that a space keeps apart there is something in any program: `import lu` is no `importlu`.
    """
    found = {
        f"{_edge(word[: match.start()][-1:])}{match[0]}{_edge(word[match.end() :][:1])}"
        for match in _IDENTIFIER.finditer(word)
    }
    return frozenset(found or {""})


def _edge(beside: str) -> str:
    # What is not ASCII may be a letter of the same identifier.
    return " " if beside and beside.isascii() else ""


@cache
def _loosely(word: str) -> re.Pattern[str]:
    """Return ``word`` with white space, brackets and comments between its parts:
    `loss.item ()`, `(x.to)(y)`.
    """
    if word.startswith(_IMPORT):
        package = re.escape(word[len(_IMPORT) :])
        return re.compile(
            rf"(?:^|[;:\r])[ \t\f]*(?:from|import)\b(?:[^\r\n#\\]|\\\r?\n)*\b{package}\b", re.MULTILINE
        )
    split = re.findall(r"\w+|[^\w\s]", word)
    return re.compile(r"(?:[\s()\\]|#[^\r\n]{0,200}[\r\n])*".join(map(re.escape, split)))

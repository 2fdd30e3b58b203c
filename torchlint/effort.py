"""How much work a file is worth: steps that are counted, so that a check ends on every machine alike.

A step is a question to the model, or a node that is gone through. Real programs take about one for each
character; only what grows with the square of a program, or worse, comes near the bound. Time is never asked:
what is found would depend on the machine.
"""

from __future__ import annotations

import re
import sys

_AT_LEAST = 2_000_000
_A_CHARACTER = 3
_REST = 16
"""What part of all steps has to be left for another rule to begin."""


_MOST_WORDS = 270_000
_WORDS = re.compile(
    r'''#[^\n]*|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'''
    r"""|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"""
    r"""|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'|\w+|[(\[{]|\.\.\.""",
    re.DOTALL,
)


def is_too_large(text: str) -> bool:
    """Return whether a program has so many names, numbers,
    strings and brackets that its tree takes too much memory.

    The interpreter's tree takes up to two kilobytes for each. Comments count nothing and a docstring one, so
    that programs that people write have to be of several megabytes.
    """
    if len(text) <= _MOST_WORDS:
        return False
    found = 0
    for match in _WORDS.finditer(text):
        word = match[0]
        if word[0] != "#":
            # The fields of formatted strings are code.
            found += 1 + (word.count("{") if word[0] in "\"'" else 0)
            if found > _MOST_WORDS:
                return True
    return False


class ExhaustedError(Exception):
    """More steps were taken than a file, or one rule in it, is worth."""


class Effort:
    """The steps that were taken for one file, and how many may be.

    Attributes:
        spent: the steps so far.
        limit: where the present rule has to stop.
    """

    __slots__ = ("limit", "most", "spent")

    def __init__(self, most: int = sys.maxsize) -> None:
        self.spent = 0
        self.most = self.limit = most

    @classmethod
    def worth(cls, characters: int) -> Effort:
        """Return what a file of so many characters is worth."""
        return cls(_AT_LEAST + _A_CHARACTER * characters)

    def begin(self) -> None:
        """Begin with another rule, which may take half of what is left: one alone cannot take all.

        Raises:
            ExhaustedError: hardly anything is left.
        """
        if not self.left:
            raise ExhaustedError
        self.limit = self.spent + (self.most - self.spent) // 2

    @property
    def left(self) -> bool:
        """Whether there are steps left for another rule."""
        return (self.most - self.spent) * _REST >= self.most

    def spend(self, steps: int) -> None:
        """Take some steps.

        Raises:
            ExhaustedError: there are no more.
        """
        self.spent += steps
        if self.spent > self.limit:
            raise ExhaustedError

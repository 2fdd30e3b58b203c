"""The facets of a file that the results of other files may depend on."""

from __future__ import annotations

import enum


class Facet(enum.IntEnum):
    """What of a file something depends on."""

    CODE = 0
    """The program: everything but comments, empty lines and places."""
    WORDS = 1
    """Which of the words that are asked for are in the text, and the headers of its classes."""
    NAMES = 2
    """What it has under the names that are asked for."""
    TEXT = 3
    """Every byte."""
    SCREEN = 4
    """Which of the words are in it by which it is decided that a rule can find nothing."""

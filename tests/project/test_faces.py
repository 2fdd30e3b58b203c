"""What files show to one another: which change of a text whom concerns."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from torchlint import reading
from torchlint.project import facets
from torchlint.project.faces import Face
from torchlint.project.facets import Facet
from torchlint.project.records import record
from torchlint.semantics.names import words_of_stores
from torchlint.source import Source
from torchlint.uncommented import PROSE, uncommented

# Those of which it counts what was asked.
OWN = (Facet.TEXT, Facet.CODE, Facet.WORDS, Facet.NAMES)
TEXT = 'import torch\n\n\ndef report(loss):\n    """Say it."""\n    print(loss.item())  # now\n'


def face(text: str) -> Face:
    source = Source(Path("a.py"), text)
    return Face.of(source, [(made.name, int(made.kind)) for made in record(source).definitions])


def concerned(before: str, after: str, asked: Iterable[str] = ()) -> set[Facet]:
    """The facets of which a change is noticed."""
    old, new = Face.restored(face(before).stored()), face(after)
    return {each for each in Facet if not old.as_asked(new, each, asked)}


@pytest.mark.parametrize(
    ("before", "after", "asked", "expected"),
    [
        ("# now", "# later", (), {Facet.TEXT}),
        ("# now", "# others", ("others", "report"), {Facet.TEXT, Facet.WORDS}),
        # Rules look for this one.
        ("# now", "# cuda", ("report",), {Facet.TEXT, Facet.SCREEN}),
        ("loss.item()", "loss.cpu()", (), {Facet.TEXT, Facet.CODE, Facet.SCREEN}),
        ("\n\n\ndef", "\n# why\n\ndef", ("report",), {Facet.TEXT}),
        ("loss.item()", "loss", ("cuda",), {Facet.TEXT, Facet.CODE}),
        ("loss.item()", "loss", ("item",), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
        ("loss.item()", "loss", (".it",), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
        ("loss.item()", "loss", ("los", "print("), {Facet.TEXT, Facet.CODE}),
        # What is asked in a form that no word has is noticed with any change of words.
        ("loss.item()", "loss", ("a b",), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
        # What a with statement enters is a word.
        ("# now", "# later", ("with kept.one",), {Facet.TEXT}),
        ("# now", "# with kept.one(x)", ("with kept.one",), {Facet.TEXT, Facet.WORDS, Facet.SCREEN}),
        ("print(loss", "kept.made = (loss", ("made =",), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
        ("print(loss", "kept.made = (loss", (".made = ",), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
        ("print(loss", "kept = (loss", ("made =", ".made = "), {Facet.TEXT, Facet.CODE}),
        # A name of a module is set in many forms, each of which is a word.
        ("# now", "# kept.made", words_of_stores("rate"), {Facet.TEXT}),
        ("print(loss", "kept.rate += (loss", (".rate +=",), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
        ("print(loss", "kept.rate: int = (loss", (".rate:",), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
        ("def report", "class Kept:\n    pass\n\n\ndef report", ("report",), {*OWN} - {Facet.NAMES}),
        ("def report", "other = 1\n\n\ndef report", ("report",), {Facet.TEXT, Facet.CODE}),
        ("def report", "other = 1\n\n\ndef report", ("other",), {*OWN}),
        ("def report", "def told", ("report",), {*OWN}),
        ("print(", "getattr(print, '__call__')(", (), {Facet.TEXT, Facet.CODE, Facet.WORDS}),
    ],
)
def test_a_change_concerns_who_asked_about_it(
    before: str, after: str, asked: tuple[str, ...], expected: set[Facet]
) -> None:
    assert concerned(TEXT, TEXT.replace(before, after), asked) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1  # one\n", "\nx = 1\n"),
        ("#!/bin/python\n\nx = '#'\n", "\nx = '#'\n"),
        ('x = """\n\n# kept\n"""\n', '\nx = """\n\n# kept\n"""\n'),
        ("if x:\n    # don't\n\n    y()\n", "\nif x:\n    y()\n"),
        ('x = f"{a["#"]}"\n', '\nx = f"{a["#"]}"\n'),
        ("x = 1 + \\\n    2\n", "\nx = 1 + \\\n    2\n"),
        ("# %%\n# About x.\nx = 1\n", f"{PROSE}\nx = 1\n"),
    ],
)
def test_comments_and_empty_lines_are_left_out(text: str, code: str) -> None:
    assert uncommented(text).rstrip("\n") == code.rstrip("\n")


def test_what_is_left_is_the_same_program() -> None:
    for path in sorted(Path(facets.__file__).parent.glob("*.py")):
        text = path.read_text()
        assert ast.dump(ast.parse(uncommented(text))) == ast.dump(ast.parse(text))


@pytest.mark.parametrize("name", ["a.ipynb", "a.ipy"])
def test_every_line_of_a_notebook_counts_whatever_its_extension(name: str) -> None:
    """Places in a notebook go by its cells, which a comment may move."""

    def shown(text: str) -> Face:
        cell: dict[str, Any] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        cell["source"] = [text]
        document: dict[str, Any] = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return Face.of(reading.from_bytes(json.dumps(document).encode(), Path(name), notebook=True), ())

    assert not shown("# now\nx = 1\n").as_asked(shown("# later\nx = 1\n"), Facet.CODE, ())

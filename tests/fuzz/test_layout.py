"""Layouts: each makes another text of nearly every program, and the program stays what it is."""

from __future__ import annotations

import ast
from random import Random

import pytest

from benchmarks.fuzz import grammar, layout

PROGRAMS = [grammar.program(Random(number)) for number in range(8)]


@pytest.mark.parametrize("number", range(8))
def test_another_layout_is_the_same_program(number: int) -> None:
    before, random = PROGRAMS[number], Random(number)
    texts = [layout.dressed(before, random) for _ in range(4)]
    assert any(text != before for text in texts)
    for text in texts:
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(before))


def test_brackets_and_breaks_come_in_every_form() -> None:
    bracketed = "".join(layout.brackets(text, Random(n)) for n, text in enumerate(PROGRAMS * 3))
    broken = "".join(layout.breaks(text, Random(n)) for n, text in enumerate(PROGRAMS * 3))
    assert all(form in bracketed for form in ("((", "(\n", "# so\n)", "( "))
    assert all(form in broken for form in (" \\\n", "  # why\n", "\n#\n", "\t"))


def test_what_cannot_be_laid_out_stays_as_it_is() -> None:
    for text in ("", "def f(:\n", "x = 1\ry = 2\r", "'''"):
        assert layout.brackets(text, Random(0)) == layout.breaks(text, Random(0)) == text


def test_a_line_that_would_change_the_program_is_left_alone() -> None:
    text = "x = '''\na b\n'''\ny = 1\nz = (1,\n     2)\n"
    assert layout._by_line(lambda line: line + "  # c", text) == (
        "x = '''\na b\n'''  # c\ny = 1  # c\nz = (1,  # c\n     2)  # c\n  # c"
    )

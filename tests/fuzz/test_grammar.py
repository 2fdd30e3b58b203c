"""The programs of the grammar: they are programs, of all kinds, and they run."""

from __future__ import annotations

import ast
from random import Random

import pytest

from benchmarks.fuzz import execution, grammar, layout, properties
from torchlint.checker import check
from torchlint.source import Source

PROGRAMS = [grammar.program(Random(number)) for number in range(60)]


def test_every_program_is_one_and_no_place_is_left() -> None:
    for program in PROGRAMS:
        ast.parse(program)
        assert not any(f"<{name}>" in program for name in grammar.productions())
    assert len(set(PROGRAMS)) == len(PROGRAMS)


def test_the_same_numbers_make_the_same_program() -> None:
    assert grammar.program(Random(3)) == PROGRAMS[3]


def test_every_name_that_is_used_has_productions() -> None:
    known = grammar.productions()
    for choices in known.values():
        for choice in choices:
            assert {match[1] for match in grammar.PLACE.finditer(choice)} <= known.keys()


def test_nearly_all_programs_run() -> None:
    outcomes = [execution.run(program) for program in PROGRAMS[:16]]
    assert sum(outcome.error is None for outcome in outcomes) >= 13
    assert all(outcome.results for outcome in outcomes if outcome.error is None)


def test_many_rules_are_met() -> None:
    met = {
        item.code
        for program in PROGRAMS[:16]
        for item in check(Source(properties.PATH, program), properties.settings())
    }
    assert met >= {"TL102", "TL201", "TL202", "TL208", "TL301", "TL302", "TL401", "TL406"}


@pytest.mark.parametrize("number", range(10))
def test_another_layout_is_the_same_program(number: int) -> None:
    before, random = PROGRAMS[number], Random(number)
    texts = [layout.dressed(before, random) for _ in range(4)]
    assert any(text != before for text in texts)
    for text in texts:
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(before))


@pytest.mark.parametrize(
    "spelling",
    [
        "torch.nn.Linear(",
        " Linear(",
        "N.Linear(",
        "data.DataLoader(",
        " Loader(",
        "th.manual_seed",
        ".cuda()",
    ],
)
def test_torch_is_spelt_in_many_ways(spelling: str) -> None:
    assert any(spelling in program for program in PROGRAMS)

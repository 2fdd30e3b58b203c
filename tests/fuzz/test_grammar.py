"""The programs of the grammar: they are programs, of all kinds, and they run."""

from __future__ import annotations

import ast
import textwrap
from random import Random

import pytest

from benchmarks.fuzz import execution, grammar, properties
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


# Rules that topics are for; what others meet depends on what stands beside them.
OF_TOPICS = """
TL101 TL104 TL105 TL106 TL107 TL109 TL204 TL211 TL305 TL306 TL308 TL311 TL403 TL413 TL415 TL416
TL505 TL507 TL508 TL509 TL512 TL513 TL514 TL515 TL517 TL601 TL602 TL603 TL604 TL605 TL606 TL607 TL701
TL702 TL704 TL705 TL706 TL707 TL710 TL711 TL802 TL803 TL804 TL806 TL901 TL902 TL903 TL905
TL906
"""


def test_the_topics_meet_the_rules_that_they_are_for() -> None:
    topics = [choice[1:-1] for choice in dict.fromkeys(grammar.productions()["topic"])]
    # What one production does another one's rule may forgive.
    apart = ["amp", "several"]
    met = set().union(*(codes_of_all(name) for name in [*topics, "crashing", "top"] if name not in apart))
    met.update(*(codes_of_all(name, apart=True) for name in apart))
    assert set(OF_TOPICS.split()) - met == set()


def codes_of_all(name: str, *, apart: bool = False) -> set[str]:
    """The rules that find something in a program, or in one each, with all productions of a name."""
    parts = [
        f"def part_{number}():\n{textwrap.indent(choice, '    ')}\n" if name != "top" else f"{choice}\n"
        for number, choice in enumerate(grammar.productions()[name])
    ]
    head = "<head>\ninputs = torch.randn(16, 6)\nlabels = torch.randint(0, 3, (16,))\n<mlp>\n<setup>\n"
    texts = [head + part for part in parts] if apart else [head + "\n".join(parts)]
    return {
        item.code
        for text in texts
        for item in check(
            Source(properties.PATH, grammar.expanded(text, Random(1))),
            properties.settings(target=properties.RELEASE),
        )
    }


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

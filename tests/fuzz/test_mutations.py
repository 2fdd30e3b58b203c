"""Mutations: each changes files, most mutants are still programs, and the same numbers make the same."""

from __future__ import annotations

import warnings
from random import Random

import pytest

from benchmarks.fuzz import campaign
from benchmarks.fuzz.mutations import MUTATIONS, Mutation, mutated

FILES = campaign.seeds()


def is_program(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "mutant", "exec")
        except (SyntaxError, ValueError):
            return False
    return True


@pytest.mark.parametrize("mutation", dict.fromkeys(MUTATIONS), ids=lambda mutation: mutation.__name__)
def test_a_mutation_changes_files(mutation: Mutation) -> None:
    made = [(FILES[n * 31], mutation(FILES[n * 31], Random(n), FILES)) for n in range(10)]
    assert sum(before != after for before, after in made) >= 4


@pytest.mark.parametrize("mutation", dict.fromkeys(MUTATIONS), ids=lambda mutation: mutation.__name__)
@pytest.mark.parametrize("text", ["", "\n", "def f(:\n", "'''", "x = 1", "if a:\r    b\r", "é = 'ü'; ü(é)\n"])
def test_a_mutation_takes_any_text(mutation: Mutation, text: str) -> None:
    assert all(isinstance(mutation(text, Random(number), FILES), str) for number in range(5))


def test_half_of_the_mutants_are_programs() -> None:
    mutants = [mutated(FILES[number * 17], Random(number), FILES) for number in range(60)]
    assert 25 <= sum(map(is_program, mutants)) < 60
    assert mutants[5] == mutated(FILES[5 * 17], Random(5), FILES)

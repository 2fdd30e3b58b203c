"""What calls lead to, asked of all code of a file at once, and answers that are kept."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.semantics.module import Module
from torchlint.semantics.reach import Reach, gathered
from torchlint.semantics.remembered import remembered
from torchlint.syntax import SyntaxTree

PROGRAM = """
def mark():
    pass


def direct():
    mark()


def looped():
    for x in data:
        mark()


def through(n):
    if n:
        through(n - 1)
    direct()


def outer():
    def inner():
        through(1)

    return inner


def decorated(f=direct()):
    pass


def nothing():
    print(outer)
"""


@pytest.fixture
def module() -> Iterator[Module]:
    made = Module(SyntaxTree(PROGRAM), LintSettings())
    yield made
    made.close()


def marks(module: Module) -> Reach:
    return Reach(module, [call for call in module.tree.nodes(cst.Call) if module.source(call) == "mark()"])


def functions(module: Module) -> dict[str, cst.FunctionDef]:
    return {function.name.value: function for function in module.tree.nodes(cst.FunctionDef)}


def test_code_that_leads_to_a_mark(module: Module) -> None:
    reach = marks(module)
    found = {name for name, function in functions(module).items() if reach.holds(function.body)}
    assert found == {"direct", "looped", "through", "outer", "inner"}
    assert reach.holds(functions(module)["decorated"]), "its default is worked out where it is made"


def test_what_comes_to_a_mark_each_time_round(module: Module) -> None:
    reach = marks(module)
    found = {name for name, function in functions(module).items() if reach.each_round(function)}
    assert found == {"direct", "through", "outer", "inner", "decorated"}
    assert reach.each_round(module.tree.nodes(cst.For)[0])


GRAPH = {"a": "bc", "b": "d", "c": "a", "d": "ef", "e": "d", "f": "", "g": "c", "h": "h"}
FACTS = {"b": [1], "e": [2], "f": [3], "h": [4], "c": [5]}


def look(node: str) -> tuple[list[int], str]:
    return FACTS.get(node, []), GRAPH[node]


@pytest.mark.parametrize("order", ["abcdefgh", "hgfedcba", "dgaehbfc"])
def test_facts_are_gathered_through_circles_in_any_order(order: str) -> None:
    known: dict[str, frozenset[int]] = {}
    for node in order:
        gathered(node, look, known)
    around = frozenset({1, 2, 3, 5})
    assert known == {
        **dict.fromkeys("acg", around),
        "b": frozenset({1, 2, 3}),
        **dict.fromkeys("de", frozenset({2, 3})),
        "f": frozenset({3}),
        "h": frozenset({4}),
    }


def test_each_node_is_looked_at_once() -> None:
    seen: list[str] = []

    def looked(node: str) -> tuple[list[int], str]:
        seen.append(node)
        return look(node)

    known: dict[str, frozenset[int]] = {}
    for node in GRAPH:
        gathered(node, looked, known)
    assert sorted(seen) == sorted(GRAPH)


def test_answers_are_kept_unless_values_are_being_worked_out(module: Module) -> None:
    asked: list[str] = []

    @remembered
    def length(module: Module, name: str) -> int:
        asked.append(name)
        return len(name)

    def work_out(question: str) -> int:
        return length(module, question)

    assert [length(module, "one"), length(module, "one")] == [3, 3]
    assert asked == ["one"]
    from torchlint.semantics.fixpoint import Answers

    module.fixpoint.ask("three", work_out, Answers(nothing=0, unknown=0))
    assert length(module, "three") == 5
    assert asked == ["one", "three", "three"]

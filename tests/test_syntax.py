"""Which handlers catch what a call raises, and what lies in what."""

from __future__ import annotations

import re

import libcst as cst
import pytest

from torchlint.outline import Outline
from torchlint.syntax import SyntaxTree

CASES = {
    "body": (
        "try:\n    f()\nexcept ValueError:\n    pass\nexcept OSError:\n    pass",
        ["ValueError", "OSError"],
    ),
    "bare": ("try:\n    f()\nexcept:\n    pass", [""]),
    "nested": (
        "try:\n    try:\n        f()\n    except ValueError:\n        pass\nexcept OSError:\n    pass",
        ["ValueError", "OSError"],
    ),
    "finally": ("try:\n    f()\nfinally:\n    pass", []),
    "in the handler": ("try:\n    g()\nexcept ValueError:\n    f()", []),
    "in else": ("try:\n    g()\nexcept ValueError:\n    pass\nelse:\n    f()", []),
    "in a function that is made there": (
        "try:\n    def made():\n        f()\nexcept ValueError:\n    pass",
        [],
    ),
    "in a function around": (
        "def outer():\n    try:\n        f()\n    except OSError:\n        pass",
        ["OSError"],
    ),
    "none": ("f()", []),
}


@pytest.mark.parametrize("name", CASES)
def test_the_handlers_of_a_call(name: str) -> None:
    text, expected = CASES[name]
    tree = SyntaxTree(text + "\n")
    (call,) = (call for call in tree.nodes(cst.Call) if tree.source(call) == "f()")
    found = [tree.source(handler.type) if handler.type else "" for handler in tree.handlers(call)]
    assert found == expected


def test_the_parts_of_a_node_are_in_source_order() -> None:
    tree = SyntaxTree("f(a, b=c)\n")
    (call,) = tree.nodes(cst.Call)
    assert [tree.source(part) for part in tree.parts(call)] == ["f", "a", "b=c"]
    (name, *_) = tree.nodes(cst.Name)
    assert tree.parts(name) == []


NESTED = "x = 1\nfor a in b:\n    if a:\n        f(g(a), [h])\n    else:\n        f(*b, **c)\ny = f()\n"


@pytest.mark.parametrize("make", [SyntaxTree, Outline])
def test_what_lies_in_a_node_is_found_by_its_numbers(make: type[SyntaxTree]) -> None:
    tree = make(NESTED)
    names = tree.nodes(cst.Name)
    for outer in tree.order:
        below = set(tree.descendants(outer))
        assert tree.last(outer) == max(tree.order[node] for node in below)
        assert list(tree.within(outer, names)) == [name for name in names if name in below]
        assert tree.holds(outer, names) is any(name in below for name in names)
        assert all(tree.contains(outer, inner) is (inner in below) for inner in tree.order)


def test_nodes_of_other_trees_lie_in_none() -> None:
    tree = SyntaxTree("x = f(y)\n")
    assert not tree.contains(tree.root, cst.Name("y"))
    assert not tree.contains(cst.Name("y"), tree.root)


def test_nodes_between_two() -> None:
    tree = SyntaxTree(NESTED)
    first, second, third = (call for call in tree.nodes(cst.Call) if tree.source(call).startswith("f("))
    assert [tree.source(node) for node in tree.between(first, second, cst.Call, cst.List)] == ["g(a)", "[h]"]
    assert not list(tree.between(third, first, cst.Call))


def test_the_place_of_a_statement_in_its_block() -> None:
    tree = SyntaxTree(NESTED)
    assert [tree.position(statement) for statement in tree.root.body] == [0, 1, 2]
    assert tree.position(tree.nodes(cst.List)[0]) == 0


def test_comments_and_lines_are_found_by_their_offsets() -> None:
    tree = SyntaxTree("# a\nx = 1  # b\n\ny = 2  # c\n")
    last = tree.nodes(cst.Assign)[1]
    assert tree.line(last) == 4
    found = tree.comments_between(tree.text.index("x"), tree.text.index("# c"))
    assert [tree.text[span.start : span.end] for span in found] == ["# b"]


def test_patterns_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, pattern = SyntaxTree("x = cuda\n"), re.compile("cuda")
    assert tree.matches(pattern)
    monkeypatch.setattr(tree, "code", "")
    assert tree.matches(pattern)
    assert not tree.matches(re.compile("cud."))

"""Which handlers catch what a call raises."""

from __future__ import annotations

import libcst as cst
import pytest

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

"""What was tested on every way to a place, with the outcome, and whether it still holds there."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from torchlint.semantics.flow.guards import Guard, concluded, guards, unchanged
from torchlint.semantics.module import Module


def place(module: Module) -> cst.Call:
    return next(call for call in module.tree.nodes(cst.Call) if module.source(call.func) == "here")


def told(module: Module, node: cst.CSTNode) -> list[str]:
    return [f"{'' if guard.holds else 'not '}{module.source(guard.test)}" for guard in guards(module, node)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("here()", []),
        ("if a:\n    here()", ["a"]),
        ("if a:\n    pass\nelse:\n    here()", ["not a"]),
        ("if a:\n    pass\nelif b:\n    here()", ["b", "not a"]),
        ("if a:\n    pass\nelif b:\n    pass\nelse:\n    here()", ["not b", "not a"]),
        ("if a:\n    pass\nhere()", []),
        ("if here():\n    pass", []),
        ("if a and b:\n    here()", ["a", "b"]),
        ("if a or b:\n    here()", []),
        ("if a or b:\n    pass\nelse:\n    here()", ["not a", "not b"]),
        ("if a and b:\n    pass\nelse:\n    here()", []),
        ("if not a:\n    here()", ["not a"]),
        ("if not (a or not b):\n    here()", ["not a", "b"]),
        ("if bool(a):\n    here()", ["a"]),
        ("while a:\n    here()", ["a"]),
        ("assert a\nhere()", ["a"]),
        ("assert a; here()", ["a"]),
        ("here()\nassert a", []),
        ("if a:\n    return\nhere()", ["not a"]),
        ("if a:\n    raise ValueError\nhere()", ["not a"]),
        ("if a:\n    sys.exit(1)\nhere()", ["not a"]),
        ("if a:\n    self.skipTest(reason)\nhere()", ["not a"]),
        ("if a:\n    door.exit(1)\nhere()", []),
        ("if (b := a):\n    here()", ["(b := a)", "a"]),
        ("for x in c:\n    if a:\n        continue\n    here()", ["not a"]),
        ("for x in c:\n    if a:\n        break\n    here()", ["not a"]),
        ("for x in c:\n    if a:\n        break\nhere()", []),
        ("if a:\n    return\nelif b:\n    return\nhere()", ["not b", "not a"]),
        ("if a:\n    return\nelif b:\n    pass\nhere()", ["not a"]),
        ("if a:\n    pass\nelse:\n    return\nhere()", ["a"]),
        ("if a:\n    return\nif b:\n    here()", ["b", "not a"]),
        ("if a:\n    here()\n    return", ["a"]),
        ("here() if a else 0", ["a"]),
        ("0 if a else here()", ["not a"]),
        ("a and here()", ["a"]),
        ("a or here()", ["not a"]),
        ("here() and a", []),
        ("[here() for x in c if a if b]", ["a", "b"]),
        ("[0 for x in c if a if here()]", ["a"]),
        ("[0 for x in c if a for y in here()]", ["a"]),
        ("[0 for x in here() if a]", []),
        ("{x: here() for x in c if a}", ["a"]),
        ("test = a > b\nif test:\n    here()", ["test", "a > b"]),
        ("test = not a\nif test:\n    here()", ["test", "not a"]),
        ("test = a > b\nif c:\n    test = b\nif test:\n    here()", ["test"]),
        ("if a:\n    def inner():\n        here()", []),
        ("if a:\n    f = lambda: here()", []),
        ("with a:\n    here()", []),
        ("try:\n    here()\nexcept a:\n    pass", []),
    ],
)
def test_guards(semantic_model: Callable[[str], Module], body: str, expected: list[str]) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    module = semantic_model(f"def f(a, b, c):\n{lines}")
    assert told(module, place(module)) == expected


@pytest.mark.parametrize(
    ("between", "holds"),
    [
        ("", True),
        ("other = x\n    other.bias = 3\n    ", False),
        ("x = 3\n    ", False),
        ("if c:\n        x = 3\n    ", False),
        ("y = 3\n    ", True),
        ("y.weight = 3\n    ", True),
    ],
)
def test_what_was_tested_is_unchanged(
    semantic_model: Callable[[str], Module], between: str, holds: bool
) -> None:
    module = semantic_model(f"def f(x, y, c):\n    assert x.bias\n    {between}here(x.bias)\n")
    call = place(module)
    (guard,) = guards(module, call)
    assert unchanged(module, guard.test, call.args[0].value) is holds


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("a", "a"),
        ("not a", "not a"),
        ("a and b", "a"),
        ("a or b", None),
        ("a or a", "a"),
        ("(a or b) and c", "c"),
        ("not (a and a)", "not a"),
        ("a or a or (b and a)", None),
    ],
)
def test_what_a_test_tells(test: str, expected: str | None, semantic_model: Callable[[str], Module]) -> None:
    """What one of several tests tells counts only if each of them tells the same."""
    module = semantic_model(f"if {test}:\n    pass\n")

    def spell(guard: Guard) -> str:
        return f"{'' if guard.holds else 'not '}{module.source(guard.test)}"

    assert concluded(module, module.tree.nodes(cst.If)[0].test, True, spell) == expected

"""Which places can run more than once, going by names alone."""

from __future__ import annotations

import libcst as cst
import pytest

from torchlint.options import LintSettings
from torchlint.semantics import model
from torchlint.semantics.repetition import Repetition
from torchlint.syntax import SyntaxTree


def _marked(program: str) -> dict[str, bool]:
    """For each call ``mark("…")`` of a program, whether it may repeat."""
    tree = SyntaxTree(program)
    settings = LintSettings()
    repetition = Repetition.of(model.build(tree, settings))
    found: dict[str, bool] = {}
    for call in tree.nodes(cst.Call):
        if isinstance(call.func, cst.Name) and call.func.value == "mark":
            argument = call.args[0].value
            assert isinstance(argument, cst.SimpleString)
            found[str(argument.evaluated_value)] = repetition.possible(call)
    return found


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ('mark("once")\nfor x in y:\n    mark("loop")\n', {"once": False, "loop": True}),
        ('z = [mark("item") for x in y]\n', {"item": True}),
        ('def f():\n    mark("f")\n', {"f": False}),
        ('def f():\n    mark("f")\nf()\n', {"f": False}),
        ('def f():\n    mark("f")\nwhile True:\n    f()\n', {"f": True}),
        (
            'for x in mark("iterated"):\n    pass\nelse:\n    mark("else")\n',
            {"iterated": False, "else": False},
        ),
        ('z = [x for x in mark("first") for w in mark("second")]\n', {"first": False, "second": True}),
        ('@register\ndef f():\n    mark("f")\n', {"f": False}),
        ('def f():\n    mark("f")\nregister(f)\n', {"f": False}),
        ('def f():\n    mark("f")\nmap(f, y)\n', {"f": True}),
        ('def f():\n    mark("f")\nmodel.register_forward_hook(f)\n', {"f": True}),
        ('def f():\n    mark("f")\ntable = {"f": f}\n', {"f": True}),
        ('def f():\n    mark("f")\ng = partial(f, 1)\nfor i in y:\n    g()\n', {"f": True}),
        ('def f():\n    mark("f")\ng = f\ng()\n', {"f": False}),
        ('class C:\n    @property\n    def p(self):\n        mark("p")\nuse(c.p)\n', {"p": True}),
        # Every function calls the two after it: each is looked at once, not on every way to it.
        (
            "".join(f"def f{i}():\n    f{i + 1}()\n    f{i + 2}()\n" for i in range(60))
            + 'def f60():\n    mark("f")\ndef f61():\n    mark("f")\n',
            {"f": False},
        ),
        # It calls itself, and a loop calls it: asking for either call first gives the same answer.
        ('def f(n):\n    mark("f")\n    f(n - 1)\nfor i in y:\n    f(i)\n', {"f": True}),
        ('def f(n):\n    mark("f")\n    f(n - 1)\nf(3)\n', {"f": False}),
        (
            'def f():\n    mark("f")\n    g()\ndef g():\n    mark("g")\n    f()\nfor i in y:\n    g()\n',
            {"f": True, "g": True},
        ),
        (
            (
                'class Net:\n    def __init__(self):\n        mark("made")\n    def forward(self):\n'
                '        mark("forward")\nlayers = [Net() for _ in range(3)]\n'
            ),
            {"made": False, "forward": True},
        ),
        (
            (
                'class Row:\n    def __init__(self):\n        mark("made")\nclass Short(Row):\n    pass\n'
                "rows = [Short() for _ in range(3)]\n"
            ),
            {"made": True},
        ),
    ],
)
def test_places_that_may_repeat(program: str, expected: dict[str, bool]) -> None:
    assert _marked(program) == expected


def test_functions_that_all_call_each_other_are_searched_once_each() -> None:
    names = [f"f{number}" for number in range(40)]
    program = "".join(
        f'def {name}():\n    mark("{name}")\n' + "".join(f"    {other}()\n" for other in names)
        for name in names
    )
    assert set(_marked(program).values()) == {False}
    assert set(_marked(program + "for x in y:\n    f7()\n").values()) == {True}

"""Where values go: through names, unpacking, containers, attributes, calls and returns."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.semantics.module import Module
from torchlint.semantics.sinks import ONWARD, Standing, Use, UseKind, Verdict, sinks, verdicts

ENDS = frozenset(
    {UseKind.METHOD, UseKind.ATTRIBUTE, UseKind.CALLED, UseKind.OPERAND, UseKind.COMPARED, UseKind.TESTED}
    | {UseKind.FORMATTED, UseKind.INDEX, UseKind.SET, UseKind.OTHER}
)


def _judge(module: Module, use: Use) -> Verdict[str]:
    """Follow a value wherever it is handed on as it is."""
    ends = use.kind in ENDS or (use.kind is UseKind.AUGMENTED and not use.path)
    if ends or (
        use.kind is UseKind.ARGUMENT and module.callee(use.call) is None and _is_unknown(module, use)
    ):
        return f"{use.kind.name.lower()} {module.source(use.by)}"
    return "elsewhere" if use.kind is UseKind.ELSEWHERE else ONWARD


def _is_unknown(module: Module, use: Use) -> bool:
    passing = module.qualified(use.call.func) in ("builtins.enumerate", "builtins.zip", "builtins.list")
    return not passing and not module.source(use.call.func).endswith(".append")


# What becomes of `made()`.
PROGRAMS = {
    # names and what only chooses
    "made()": [],
    "made().a": ["attribute made().a"],
    "made().f(1)": ["method made().f(1)"],
    "x = made()\nx.f()\nx = 1\nx + 1": ["method x.f()"],
    "x = y = made()\nx.f()\ny.g()": ["method x.f()", "method y.g()"],
    "x: int = made()\nx.f()": ["method x.f()"],
    "(made() if c else 0).f()": ["method (made() if c else 0).f()"],
    "(0 if made() else 1).f()": ["tested (0 if made() else 1)"],
    "(made() or other).f()": ["method (made() or other).f()"],
    "if (x := made()):\n    x.f()": ["method x.f()", "tested if (x := made()):\n    x.f()"],
    "x = made()\nwhile c:\n    x = x\n    x.f()": ["method x.f()"],
    "x = made()\ndel x": [],
    "x = made()\ndel x[0]": ["set x[0]"],
    "x = made()\nx += 1": ["augmented x += 1"],
    "x = 1\nx += made()\nx.f()": ["method x.f()"],
    "with made() as x:\n    x.f()": ["method x.f()"],
    # ends
    "made() + 1": ["operand made() + 1"],
    "-made()": ["operand -made()"],
    "not made()": ["tested not made()"],
    "1 < made()": ["compared 1 < made()"],
    "assert made()": ["tested assert made()"],
    "print(f'{made():.2f}')": ["formatted {made():.2f}"],
    "y[made()]": ["index y[made()]"],
    "y[made():]": ["index y[made():]"],
    "y[0, made()]": ["index y[0, made()]"],
    "made()(1)": ["called made()(1)"],
    "unknown(1, made())": ["argument unknown(1, made())"],
    "unknown(k=made())": ["argument unknown(k=made())"],
    "raise made()": ["other raise made()"],
    "x = made()\nx.a = 1": ["set x.a"],
    "x = made()\nx[0] += 1": ["set x[0]"],
    "x = made()\nx[0], y = 1, 2": ["set x[0]"],
    "x = made()\nx[0][1] = 1": ["set x[0][1]"],
    "x = made()\nfor x.a in y:\n    pass": ["set x.a"],
    # unpacking
    "x, y = made()\nx.f()\ny.g()": ["method x.f()", "method y.g()"],
    "x, y = made(), 1\nx.f()\ny.g()": ["method x.f()"],
    "(x, y), z = (1, made()), 2\nx.f()\ny.g()\nz.h()": ["method y.g()"],
    "x, *y = 1, 2, made()\nx.f()\ny[0].g()": ["method y[0].g()"],
    "*x, y = 1, made()\nx[0].f()\ny.g()": ["method x[0].f()", "method y.g()"],
    # containers
    "x = [1, made()]\nx[0].f()\nx[1].g()\nx[-1].h()\nx[i].k()": [
        *("method x[-1].h()", "method x[1].g()", "method x[i].k()"),
    ],
    "x = {'a': made(), 'b': 1}\nx['a'].f()\nx['b'].g()": ["method x['a'].f()"],
    "x = {made(): 1}": ["other {made(): 1}"],
    "x = [made() for _ in y]\nx[0].f()\nx[1:][0].g()": ["method x[0].f()", "method x[1:][0].g()"],
    "x = {k: made() for k in y}\nx['a'].f()": ["method x['a'].f()"],
    "x = [[made()]]\nx[0][0].f()": ["method x[0][0].f()"],
    "x = [*made()]\nx[0].f()": ["method x[0].f()"],
    "x = []\nx.append(made())\nx[0].f()": ["method x.append(made())", "method x[0].f()"],
    "x = {}\nx['a'] = made()\nx['a'].f()\nx['b'].g()": ["method x['a'].f()", "set x['a']"],
    "for x in made():\n    x.f()": ["method x.f()"],
    "for x, y in [(1, made())]:\n    x.f()\n    y.g()": ["method y.g()"],
    "for i, x in enumerate([made()]):\n    i.f()\n    x.g()": ["method x.g()"],
    "for x, y in zip(z, made()):\n    x.f()\n    y.g()": ["method y.g()"],
    "[x.f() for x in made()]": ["method x.f()"],
    "x = made()\nx = [x]\nx = [x]": [],
    "x = made()\nwhile c:\n    x = [x]": ["elsewhere"],
    # functions
    "def g(a, *, b=1):\n    a.f()\n    b.f()\ng(1, b=made())": ["method b.f()"],
    "def g(*a):\n    a[0].f()\ng(made())": ["method a[0].f()"],
    "def g(a):\n    return a\ng(made()).f()": ["elsewhere", "method g(made()).f()"],
    "def g(a):\n    return 1, a\nx, y = g(made())\nx.f()\ny.f()": ["elsewhere", "method y.f()"],
    "def g(a):\n    if a.t:\n        g(a)\ng(made())": ["attribute a.t"],
    "def g():\n    return made()\n": ["elsewhere"],
    "def g():\n    yield made()\nfor x in g():\n    x.f()": ["elsewhere", "method x.f()"],
    "g = lambda: made()\ng().f()": ["elsewhere", "method g().f()"],
    "async def g():\n    return made()\nasync def h():\n    (await g()).f()": [
        *("elsewhere", "method (await g()).f()"),
    ],
    "def g():\n    global x\n    x = made()\ndef h():\n    x.f()": ["method x.f()"],
    # attributes
    """
    class A:
        def g(self):
            self.x = made()
            self.y = 1

        def h(self):
            self.x.f()
            self.y.f()

    class B(A):
        def k(self):
            self.x.g()

    class C:
        def k(self):
            self.x.g()
    """: ["elsewhere", "method self.x.f()", "method self.x.g()"],
    """
    class A:
        def g(self):
            self.x["a"] = made()

        def h(self):
            self.x["a"].f()
            self.x["b"].f()
    """: ["elsewhere", 'method self.x["a"].f()', 'set self.x["a"]'],
    "x.a = made()\nx.a.f()": ["elsewhere"],
}


def _made(module: Module) -> cst.Call:
    (call,) = module.tree.calls_by_name["made"]
    return call


@pytest.mark.parametrize("program", PROGRAMS)
def test_ends(program: str, semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model(f"{dedent(program)}\n")
    assert sorted(verdicts(module, _made(module), _judge)) == PROGRAMS[program]
    assert sorted({*sinks(module, _made(module), _judge)}) == PROGRAMS[program]


def test_a_definition_and_a_part_of_what_it_holds(semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model("x = unknown()\nx.f()\nx[0].g()\nx[1].h()\n")
    (binding,) = module.names.module_scope.bindings["x"]
    assert sorted(verdicts(module, Standing(binding, (1,)), _judge)) == ["method x.f()", "method x[1].h()"]


def test_several_verdicts_and_a_step_of_the_judge(semantic_model: Callable[[str], Module]) -> None:
    def judge(module: Module, use: Use) -> Verdict[str]:
        if use.kind is UseKind.METHOD:
            return use.name, Standing(use.call)
        return ONWARD

    module = semantic_model("made().f().g()\n")
    assert list(sinks(module, _made(module), judge)) == ["f", "g"]

"""Where values come from: the ends of the ways back from the argument of ``seen(…)``."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import libcst as cst
import pytest

from torchlint.semantics.module import Module
from torchlint.semantics.sources import Path, Source, Through, every, onward, some, steps, traced

ALL = Through.ITEMS | Through.OPERANDS | Through.RETURNS | Through.PARAMETERS

# By title: a program, what is followed, and the texts of the ends; ``?`` for a way that ends in the open.
WAYS = {
    "name": ("x = make()\nseen(x)", Through.NOTHING, "make()"),
    "chain": ("a = make()\nb = a\nc = b\nseen(c)", Through.NOTHING, "make()"),
    "branches": ("if p:\n    x = one()\nelse:\n    x = two()\nseen(x)", Through.NOTHING, "one() two()"),
    "overwritten": ("x = one()\nx = two()\nseen(x)", Through.NOTHING, "two()"),
    "condition": ("seen(one() if p else two())", Through.NOTHING, "one() two()"),
    "either": ("seen(one() or two())", Through.NOTHING, "one() two()"),
    "walrus": ("seen((x := one()))", Through.NOTHING, "one()"),
    "unpacked": ("a, (b, c) = one(), (two(), three())\nseen(c)", Through.NOTHING, "three()"),
    "starred": ("a, *b = one(), two()\nseen(b)", Through.NOTHING, "?"),
    "item of starred": ("a, *b = one(), two()\nseen(b[0])", Through.ITEMS, "one() two()"),
    "circle": ("x = one()\nfor i in y:\n    x = x\nseen(x)", Through.NOTHING, "one()"),
    "only a circle": ("def f():\n    return f()\nseen(f())", Through.RETURNS, ""),
    "augmented": ("x = one()\nx += two()\nseen(x)", Through.OPERANDS, "one() two()"),
    "augmented, not followed": ("x = one()\nx -= two()\nseen(x)", Through.NOTHING, "?"),
    "sum": ("seen(one() - two() * -three())", Through.OPERANDS, "one() three() two()"),
    "negation": ("seen(not one())", Through.OPERANDS, "?"),
    "argument": ("def f(a, b=one()):\n    seen(b)\nf(1)\nf(1, two())", Through.PARAMETERS, "one() two()"),
    "argument out of sight": ("def f(a):\n    seen(a)\nf(*given)", Through.PARAMETERS, "?"),
    "keyword": (
        'def f(**kw):\n    seen(kw["a"])\nf(a=one(), b=two())\nf(**{"a": three()})',
        Through.ITEMS | Through.PARAMETERS,
        "one() three()",
    ),
    "keyword that nobody passes": (
        'def f(**kw):\n    seen(kw["a"])\nf(b=two())',
        Through.ITEMS | Through.PARAMETERS,
        "?",
    ),
    "argument of a method": (
        "class A:\n    def f(self, a):\n        seen(a)\nA().f(one())\nA.f(A(), two())",
        Through.PARAMETERS,
        "one() two()",
    ),
    "argument of a method by another name": (
        "class A:\n    def f(self, a):\n        seen(a)\nf = A.f\nf(A(), one())\ng = A().f\ng(two())",
        Through.PARAMETERS,
        "one() two()",
    ),
    "argument of a class method": (
        "class A:\n    @classmethod\n    def f(cls, a):\n        seen(a)\nA().f(one())\nA.f(two())",
        Through.PARAMETERS,
        "one() two()",
    ),
    "argument of a static method": (
        "class A:\n    @staticmethod\n    def f(a):\n        seen(a)\nA().f(one())\nA.f(two())",
        Through.PARAMETERS,
        "one() two()",
    ),
    "argument of the method of a base": (
        "class A:\n    def f(self, a):\n        seen(a)\nclass B(A):\n    def g(self): A.f(self, one())",
        Through.PARAMETERS,
        "one()",
    ),
    "nobody calls": ("def f(a):\n    seen(a)", Through.PARAMETERS, "?"),
    "result": (
        "def f(p):\n    if p:\n        return one()\n    return two()\nseen(f(1))",
        Through.RETURNS,
        "one() two()",
    ),
    "result of a lambda": ("f = lambda: one()\nseen(f())", Through.RETURNS, "one()"),
    "part of a result": ("def f():\n    return one(), two()\na, b = f()\nseen(b)", Through.RETURNS, "two()"),
    "recursion": (
        "def f(n):\n    return one() if n else f(n - 1)\nseen(f(3))",
        Through.RETURNS,
        "one()",
    ),
    "item of a list": ("xs = [one(), two()]\nseen(xs[1])", Through.ITEMS, "two()"),
    "some item": ("xs = [one(), two()]\nseen(xs[i])", Through.ITEMS, "one() two()"),
    "each item": ("for x in (one(), two()):\n    seen(x)", Through.ITEMS, "one() two()"),
    "slice": ("for x in [one()][1:]:\n    seen(x)", Through.ITEMS, "one()"),
    "joined lists": ("for x in [one()] + [two()] * 3:\n    seen(x)", Through.ITEMS, "one() two()"),
    "starred item": ("xs = [two()]\nfor x in [one(), *xs]:\n    seen(x)", Through.ITEMS, "one() two()"),
    "column": (
        "for x, y in zip(*[(one(), two()), (three(), four())]):\n    seen(y)",
        Through.ITEMS,
        "four() three()",
    ),
    "appended": ("xs = []\nfor i in y:\n    xs.append(one())\nseen(xs[0])", Through.ITEMS, "one()"),
    "appended, gone over": ("xs = []\nxs.append(one())\nfor x in xs:\n    seen(x)", Through.ITEMS, "one()"),
    "extended": (
        "xs = []\nxs.extend([one()])\nxs += [two()]\nfor x in xs:\n    seen(x)",
        Through.ITEMS,
        "one() two()",
    ),
    "comprehension": ("xs = [one(i) for i in y]\nseen(xs[0])", Through.ITEMS, "one(i)"),
    "item in a comprehension": ("[seen(x) for x in (one(),)]", Through.ITEMS, "one()"),
    "enumerate": ("for i, x in enumerate([one()]):\n    seen(x)", Through.ITEMS, "one()"),
    "zip": ("for a, b in zip([one()], [two()]):\n    seen(b)", Through.ITEMS, "two()"),
    "sorted": ("for x in sorted(list([one()])):\n    seen(x)", Through.ITEMS, "one()"),
    "filter": ("for x in filter(f, [one()]):\n    seen(x)", Through.ITEMS, "one()"),
    "next": ("seen(next(iter([one()])))", Through.ITEMS, "one()"),
    "key": ("d = {'a': one(), 'b': two()}\nseen(d['b'])", Through.ITEMS, "two()"),
    "some key": ("d = {'a': one(), 'b': two()}\nseen(d[k])", Through.ITEMS, "one() two()"),
    "stored": ("d = {}\nd['a'] = one()\nd['b'] = two()\nseen(d['a'])", Through.ITEMS, "one()"),
    "updated": ("d = dict(a=one())\nd.update(b=two())\nseen(d['b'])", Through.ITEMS, "two()"),
    "get": ("d = {'a': one()}\nseen(d.get('a', two()))", Through.ITEMS, "one() two()"),
    "values": ("d = {'a': one()}\nfor x in d.values():\n    seen(x)", Through.ITEMS, "one()"),
    "items": ("d = {'a': one()}\nfor k, x in d.items():\n    seen(x)", Through.ITEMS, "one()"),
    "keys": ("d = {key(): one()}\nfor k in d:\n    seen(k)", Through.ITEMS, "key()"),
    "item out of sight": ("for x in given:\n    seen(x)", Through.ITEMS, "?"),
    "attribute": (
        "class A:\n    def __init__(self):\n        self.x = one()\n    def f(self):\n        seen(self.x)",
        Through.NOTHING,
        "one()",
    ),
    "list in an attribute": (
        (
            "class A:\n    def __init__(self):\n        self.xs = [one()]\n        self.xs.append(two())\n"
            "    def f(self):\n        for x in self.xs:\n            seen(x)"
        ),
        Through.ITEMS,
        "one() two()",
    ),
    "attribute of the base": (
        (
            "class A:\n    def __init__(self):\n        self.a, self.b = one(), two()\n"
            "class B(A):\n    def f(self):\n        seen(self.b)"
        ),
        Through.NOTHING,
        "two()",
    ),
    "attribute out of sight": ("class A:\n    def f(self):\n        seen(self.x)", Through.NOTHING, "?"),
    "a list of itself": ("x = [one()]\nfor i in y:\n    x = [x]\nseen(x[0])", Through.ITEMS, "? one()"),
}


@traced(ALL)
def _all(module: Module, node: cst.CSTNode, path: Path) -> str | None:
    return _text(module, node, path)


@pytest.mark.parametrize("title", WAYS)
def test_ends(semantic_model: Callable[[str], Module], title: str) -> None:
    program, through, expected = WAYS[title]
    module = semantic_model(program)

    @traced(through)
    def ends(module: Module, node: cst.CSTNode, path: Path) -> str | None:
        return _text(module, node, path)

    found = ends(module, _seen(module))
    assert " ".join(sorted(text or "?" for text in found)) == expected


def _text(module: Module, node: cst.CSTNode, path: Path) -> str | None:
    """A call of something undefined, which is where a way ends."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and not path:
        if module.names.lookup(node.func.value, node) is None and module.qualified(node.func) is None:
            return module.source(node)
    return None


def _seen(module: Module) -> cst.BaseExpression:
    calls = (call for call in module.tree.nodes(cst.Call) if module.source(call.func) == "seen")
    return next(calls).args[0].value


def test_quantifiers(semantic_model: Callable[[str], Module]) -> None:
    @traced(Through.OPERANDS)
    def is_one(module: Module, node: cst.CSTNode, path: Path) -> bool | None:
        return module.source(node) == "one" if isinstance(node, cst.Name) else None

    for text, by_all, by_some in (("one", 1, 1), ("one + two", 0, 1), ("two", 0, 0), ("one or f()", 0, 1)):
        module = semantic_model(f"seen({text})")
        ends = is_one(module, _seen(module))
        assert (every(ends), some(ends)) == (bool(by_all), bool(by_some)), text


def test_own_steps(semantic_model: Callable[[str], Module]) -> None:
    """What ``look`` returns as a list is gone on with, and a part of the model may have the question."""

    class Part:
        def __init__(self, module: Module) -> None:
            self.module = module

        @traced(Through.NOTHING)
        def kept(self, node: cst.CSTNode, path: Path, method: str) -> list[Source] | str | None:
            match node:
                case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(name))) if name == method:
                    return onward(owner, path=path)
                case cst.Call():
                    return self.module.source(node)
                case _:
                    return None

    module = semantic_model(dedent("x = make()\ny = x.detach().detach()\nseen(y.detach())"))
    part = Part(module)
    assert part.kept(_seen(module), "detach") == {"make()"}
    assert part.kept(_seen(module), "clone") == {"y.detach()"}


def test_one_step(semantic_model: Callable[[str], Module]) -> None:
    module = semantic_model("a = one()\nb = a if p else 2\nseen(b)")
    either = [Source(_seen(module))]
    for _ in range(3):
        either = [each for source in either for each in steps(module, source) or ()]
    assert [module.source(each.node) for each in either if isinstance(each.node, cst.CSTNode)] == ["a", "2"]


def test_many_ways_are_gone_once(semantic_model: Callable[[str], Module]) -> None:
    """``b = a + a``, ``c = b + b``: exponentially many ways, and every name is looked at once."""
    lines = ["x0 = one()", *(f"x{i + 1} = x{i} + x{i}" for i in range(40)), "seen(x40)"]
    module = semantic_model("\n".join(lines))
    before = module.tree.effort.spent
    assert _all(module, _seen(module)) == {"one()"}
    assert module.tree.effort.spent - before < 1_000

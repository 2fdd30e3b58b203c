"""Every edit is applied to a text, the result parsed, and compared with what an author would have written."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

import torchlint
from torchlint import fixes
from torchlint.fixes import Edits
from torchlint.options import LintSettings
from torchlint.semantics.model import build
from torchlint.semantics.module import Module
from torchlint.source import apply
from torchlint.syntax import SyntaxTree


def model(text: str) -> Module:
    """The model of a program."""
    return build(SyntaxTree(text), LintSettings())


def rewritten(text: str, build: Callable[[Module], Edits | None]) -> str | None:
    """The text after the edits, checked to be Python and to be the same everywhere else."""
    edits = build(model(text))
    if edits is None:
        return None
    assert len({edit.span for edit in edits}) == len(edits), "two insertions at one place have no order"
    result = apply(text, edits)
    ast.parse(result)
    if "\r\n" in text:
        assert "\n" not in result.replace("\r\n", "")
    return result


def call(tree: SyntaxTree, name: str = "f") -> cst.Call:
    """The first call of the function ``name``."""
    return next(node for node in tree.nodes(cst.Call) if tree.source(node.func) == name)


def argument(tree: SyntaxTree, source: str) -> cst.Arg:
    """The argument of ``f`` that is spelt so."""
    return next(arg for arg in call(tree).args if tree.source(arg) == source)


def statement(tree: SyntaxTree, source: str) -> cst.CSTNode:
    """The innermost statement that starts with this text."""
    kinds = (cst.BaseSmallStatement, cst.BaseCompoundStatement)
    found = [n for n in tree.order if isinstance(n, kinds) and tree.source(n).startswith(source)]
    return found[-1]


ADDED = [
    ("f()", "f(k=1)"),
    ("f( )", "f(k=1)"),
    ("f(\n)", "f(k=1)"),
    ("f (\n    # none yet\n)", "f (\n    # none yet\n    k=1,\n)"),
    ("if x:\n\tf(  # none\n\t)", "if x:\n\tf(  # none\n\t\tk=1,\n\t)"),
    ("f(a)", "f(a, k=1)"),
    ("f(a,)", "f(a, k=1,)"),
    ("f(a, b=2, )", "f(a, b=2, k=1, )"),
    ("f((a, b))", "f((a, b), k=1)"),
    ("f((a))(g())", "f((a), k=1)(g())"),
    ("f(x for x in y)", "f((x for x in y), k=1)"),
    ("f((x for x in y))", "f((x for x in y), k=1)"),
    ("f(x for x in (1, 2) if (x))", "f((x for x in (1, 2) if (x)), k=1)"),
    ("f([x for x in y])", "f([x for x in y], k=1)"),
    ("f(lambda: 0)", "f(lambda: 0, k=1)"),
    ("f(a := 1)", "f(a := 1, k=1)"),
    ("f(a  # why\n  )", "f(a, k=1  # why\n  )"),
    ("f(a,  # why\n  )", "f(a, k=1,  # why\n  )"),
    ("f(a, \\\n  b)", "f(a, \\\n  b,\n  k=1)"),
    ("f(a, b, c,\n  d, e)", "f(a, b, c,\n  d, e, k=1)"),
    ("f(a,\n  b)", "f(a,\n  b,\n  k=1)"),
    ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b,\n    k=1,\n)"),
    ("f(\n    a,\n    b\n)", "f(\n    a,\n    b,\n    k=1\n)"),
    ("f(\n    a, b\n)", "f(\n    a, b, k=1\n)"),
    ("f(\n    a\n)", "f(\n    a, k=1\n)"),
    ("f(\n    a,\n)", "f(\n    a,\n    k=1,\n)"),
    ("f(\n    a  # why, not\n)", "f(\n    a,  # why, not\n    k=1\n)"),
    ("f(\n    a,  # one\n    b,  # two, three\n)", "f(\n    a,  # one\n    b,  # two, three\n    k=1,\n)"),
    ("f(\n    a,  # one\n    b  # two, three\n)", "f(\n    a,  # one\n    b,  # two, three\n    k=1\n)"),
    (
        "f(\n    a,\n    b\n    # two\n    ,  # end\n)",
        "f(\n    a,\n    b\n    # two\n    ,  # end\n    k=1,\n)",
    ),
    ("f(\n    a,\n    b,\n    # c=3,\n)", "f(\n    a,\n    b,\n    k=1,\n    # c=3,\n)"),
    ("f(\n\ta,\n\tb,\n)", "f(\n\ta,\n\tb,\n\tk=1,\n)"),
    ("f(\r\n    a,\r\n    b,  # b\r\n)\r\n", "f(\r\n    a,\r\n    b,  # b\r\n    k=1,\r\n)\r\n"),
    ("f(\n    a,\n    g(\n        b,\n    ),\n)", "f(\n    a,\n    g(\n        b,\n    ),\n    k=1,\n)"),
    ("f(a, dict(\n    b=1,\n))", "f(a, dict(\n    b=1,\n), k=1)"),
    ("x = (f  # (\n    (a))", "x = (f  # (\n    (a, k=1))"),
    ("x = (f  # (\n    ())", "x = (f  # (\n    (k=1))"),
    ('f("""\n#,""", a)', 'f("""\n#,""", a, k=1)'),
    ("f(a, k=2)", None),
    ("f(**k)", None),
    ("f(a, **k)", None),
    ("f(a, **{})", None),
    ("f(*a)", None),
    ("f(b=1, *a)", None),
]


@pytest.mark.parametrize(("before", "after"), ADDED)
def test_an_argument_is_added(before: str, after: str | None) -> None:
    assert rewritten(before, lambda m: fixes.add_argument(m, call(m.tree), "1", keyword="k")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(*a)", "f(*a, k=1)"),
        ("f(*a, b=2)", "f(*a, b=2, k=1)"),
        ("f(\n    b=2,\n    *a,\n)", "f(\n    b=2,\n    *a,\n    k=1,\n)"),
        ("f(*a, **k)", None),
        ("f(*a, k=2)", None),
    ],
)
def test_a_keyword_only_argument_may_stand_behind_unpacked_ones(before: str, after: str | None) -> None:
    result = rewritten(
        before, lambda m: fixes.add_argument(m, call(m.tree), "1", keyword="k", keyword_only=True)
    )
    assert result == after


REMOVED = [
    ("f(a)", "a", "f()"),
    ("f(a,)", "a", "f()"),
    ("f(\n    a,\n)", "a", "f()"),
    ("f(\n    a,  # why\n)", "a", "f(\n)"),
    ("f(  # these\n    a\n)", "a", "f(  # these\n)"),
    ("f(  # these\n    a)", "a", "f(  # these\n    )"),
    ("f(x for x in y)", "x for x in y", "f()"),
    ("f(a, b, c)", "a", "f(b, c)"),
    ("f(a, b, c)", "b", "f(a, c)"),
    ("f(a, b, c)", "c", "f(a, b)"),
    ("f(a, b, c,)", "c", "f(a, b,)"),
    ("f(a, (b), k=(c))", "k=(c)", "f(a, (b))"),
    ("f(a, *b, **c)", "*b", "f(a, **c)"),
    ("f(a,\n  b)", "a", "f(b)"),
    ("f(a,\n  b)", "b", "f(a)"),
    ("f(a,\n  b,\n  c)", "b", "f(a,\n  c)"),
    ("f(a, b,\n  c)", "b", "f(a,\n  c)"),
    ("f(a,  # one\n  b)", "a", "f(  # one\n  b)"),
    ("f(a,  # one\n  b)", "b", "f(a  # one\n  )"),
    ("f(a, b,  # two\n  c)", "b", "f(a,  # two\n  c)"),
    ("f(\n    a,\n    b,\n)", "a", "f(\n    b,\n)"),
    ("f(\n    a,\n    b,\n)", "b", "f(\n    a,\n)"),
    ("f(\n    a,\n    b\n)", "b", "f(\n    a\n)"),
    ("f(\n    a,  # one\n    b  # two\n)", "b", "f(\n    a  # one\n)"),
    ("f(\n    a,  # one\n    b,  # two\n    c,\n)", "b", "f(\n    a,  # one\n    c,\n)"),
    ("f(\n    a,\n    # on b\n    b,\n)", "b", "f(\n    a,\n    # on b\n)"),
    ("f(\n    a, b,\n    c,\n)", "a", "f(\n    b,\n    c,\n)"),
    ("f(\n    a,\n    g(\n        b\n    ),\n    c,\n)", "g(\n        b\n    )", "f(\n    a,\n    c,\n)"),
    ("f(\r\n\ta,\r\n\tb,\r\n)\r\n", "b", "f(\r\n\ta,\r\n)\r\n"),
    ("f(a\n  , b\n  , c)", "b", "f(a\n  , c)"),
]


@pytest.mark.parametrize(("before", "gone", "after"), REMOVED)
def test_an_argument_is_removed(before: str, gone: str, after: str) -> None:
    assert rewritten(before, lambda m: fixes.remove_argument(m, argument(m.tree, gone))) == after


def test_only_an_argument_of_a_call_is_removed() -> None:
    module = model("class A(B): pass")
    tree = module.tree
    with pytest.raises(TypeError):
        fixes.remove_argument(module, tree.nodes(cst.Arg)[0])


@pytest.mark.parametrize(
    ("before", "which", "code", "after"),
    [
        ("f(a, k = (2))  # c", "k = (2)", "1", "f(a, k = 1)  # c"),
        ("f(a, k=2,)", "k=2", "x if y else z", "f(a, k=x if y else z,)"),
        ("f(a, 2,)", "a", "x, y", "f((x, y), 2,)"),
        ("f(x for x in y)", "x for x in y", "y", "f(y)"),
        ("f(*a)", "*a", "b", "f(*b)"),
    ],
)
def test_the_value_of_an_argument_is_replaced(before: str, which: str, code: str, after: str) -> None:
    result = rewritten(before, lambda m: fixes.replace(m, argument(m.tree, which).value, code))
    assert result == after


@pytest.mark.parametrize(
    ("before", "old", "code", "after"),
    [
        ("y = x.item()", "x.item()", "x.detach()", "y = x.detach()"),
        ("y = x * 2", "x", "a + b", "y = (a + b) * 2"),
        ("y = x.real", "x", "a + b", "y = (a + b).real"),
        ("y = x.real", "x", "5", "y = (5).real"),
        ("y = x ** 2", "x", "-1", "y = (-1) ** 2"),
        ("y = (x)", "x", "a + b", "y = a + b"),
        ("y = (x) * 2", "x", "a.b", "y = a.b * 2"),
        ("def g(): return(x)", "x", "y", "def g(): return y"),
        ("y = [1 if(x)else 2]", "x", "z", "y = [1 if z else 2]"),
        ("y = x", "x", "a +\nb", "y = (a +\nb)"),
        ("y = x", "x", "(a).\nb", "y = ((a).\nb)"),
        ("y = x", "x", "(a +\nb)", "y = (a +\nb)"),
        ("y = x", "x", "f(\n    a,\n)", "y = f(\n    a,\n)"),
        ("y = a(lambda: x)", "x", "b, c", "y = a(lambda: (b, c))"),
        ("y = a[x]", "x", "b, c", "y = a[(b, c)]"),
        ("y = f'{x}'", "x", "{1: 2}[1]", "y = f'{({1: 2}[1])}'"),
        ("y = f'{x}'", "x", "a if b else c", "y = f'{(a if b else c)}'"),
        ("y = not x", "x", "a or b", "y = not (a or b)"),
        ("import a as x", "x", "z", "import a as z"),
        ("x: int = 1", "x", "z", "z: int = 1"),
    ],
)
def test_an_expression_is_replaced(before: str, old: str, code: str, after: str) -> None:
    def build(module: Module) -> Edits:
        tree = module.tree
        found = [node for node in tree.order if isinstance(node, cst.BaseExpression)]
        node = next(n for n in found if tree.source(n).strip("()") == old.strip("()"))
        edits = fixes.replace(module, node, code)
        assert edits is not None
        return edits

    assert rewritten(before, build) == after


STATEMENTS_REMOVED = [
    ("a\nb\nc\n", "b", "a\nc\n"),
    ("a\nb", "b", "a\n"),
    ("b\n", "b", ""),
    ("a\n# why\nb  # what\nc\n", "b", "a\n# why\nc\n"),
    ("a\r\nb\r\nc\r\n", "b", "a\r\nc\r\n"),
    ("a; b; c\n", "a", "b; c\n"),
    ("a; b; c\n", "b", "a; c\n"),
    ("a; b; c\n", "c", "a; b\n"),
    ("a; b;\n", "b", "a;\n"),
    ("b;\na\n", "b", "a\n"),
    ("if x: b\n", "b", "if x: pass\n"),
    ("if x: a; b\n", "b", "if x: a\n"),
    ("if x: b; a  # c\n", "b", "if x: a  # c\n"),
    ("if x:\n    b\n", "b", "if x:\n    pass\n"),
    ("if x:\n    # why\n    b  # what\nc\n", "b", "if x:\n    # why\n    pass\nc\n"),
    ("if x:\n\ta\n\tb\n", "b", "if x:\n\ta\n"),
    ("def g():\n    '''doc'''\n    b\n", "b", "def g():\n    '''doc'''\n"),
    ("b(\n    1,\n)\nc\n", "b", "c\n"),
    ("b = '''\n    \\\n'''\nc\n", "b", "c\n"),
    ("while x:\n    b\n    # inside\n# below\nc\n", "while", "# below\nc\n"),
    ("a\n@d\n# on g\ndef g():\n    b\nc\n", "def g", "a\nc\n"),
    ("if x:\n    for y in z:\n        a\n", "for y", "if x:\n    pass\n"),
    ("if x:\n    a\nelif y:\n    b\n", "elif", None),
    ("a\n\nb\n\nc\n", "b", "a\n\nc\n"),
    ("a\n\nb\n\n\nc\n", "b", "a\n\n\nc\n"),
    ("a\n\n\nb\n\nc\n", "b", "a\n\n\nc\n"),
    ("a\n\n# why\nb\n\nc\n", "b", "a\n\n# why\n\nc\n"),
    ("a\nb\n\nc\n", "b", "a\n\nc\n"),
    ("a\n\nb\n  \n", "b", "a\n\n  \n"),
    ("a\r\n\r\nb\r\n \r\nc\r\n", "b", "a\r\n\r\nc\r\n"),
]


@pytest.mark.parametrize(("before", "gone", "after"), STATEMENTS_REMOVED)
def test_a_statement_is_removed(before: str, gone: str, after: str | None) -> None:
    assert rewritten(before, lambda m: fixes.remove_statement(m, statement(m.tree, gone))) == after


def test_a_statement_line_is_removed_like_its_only_statement() -> None:
    result = rewritten(
        "a\nb\n", lambda m: fixes.remove_statement(m, m.tree.nodes(cst.SimpleStatementLine)[0])
    )
    assert result == "b\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def g(): pass\n", "@d()\ndef g(): pass\n"),
        ("async def g(): pass\n", "@d()\nasync def g(): pass\n"),
        (
            "class A:\n    @staticmethod\n    def g(): pass\n",
            "class A:\n    @staticmethod\n    @d()\n    def g(): pass\n",
        ),
        (
            "class A:\n\t@a\n\t@b(1)  # b\n\t# on g\n\tdef g(): pass\n",
            "class A:\n\t@a\n\t@b(1)  # b\n\t# on g\n\t@d()\n\tdef g(): pass\n",
        ),
        (
            "if x:\r\n    def g():\r\n        pass\r\n",
            "if x:\r\n    @d()\r\n    def g():\r\n        pass\r\n",
        ),
        ("\x0cdef g(): pass\n", "\x0c@d()\ndef g(): pass\n"),
    ],
)
def test_a_decorator_is_added_directly_above_the_function(before: str, after: str) -> None:
    result = rewritten(before, lambda m: fixes.add_decorator(m, m.tree.nodes(cst.FunctionDef)[0], "d()"))
    assert result == after


def test_the_sign_of_a_decorator_is_not_given() -> None:
    module = model("def g(): pass\n")
    tree = module.tree
    with pytest.raises(ValueError, match="sign"):
        fixes.add_decorator(module, tree.nodes(cst.FunctionDef)[0], "@d")


WRAPPED = [
    ("a\n", ["a"], "with w:\n    a\n"),
    ("a", ["a"], "with w:\n    a"),
    ("z\na\nb\nc\n", ["a", "b"], "z\nwith w:\n    a\n    b\nc\n"),
    ("a; b\nc\n", ["b"], "with w:\n    a; b\nc\n"),
    ("a; b\nc\n", ["a", "b"], "with w:\n    a; b\nc\n"),
    ("if x:\n  a\n  b\n", ["a"], "if x:\n  with w:\n    a\n  b\n"),
    ("if x:\n\ta\n\tb\n", ["a", "b"], "if x:\n\twith w:\n\t\ta\n\t\tb\n"),
    ("if x:\r\n    a\r\n    b\r\n", ["a", "b"], "if x:\r\n    with w:\r\n        a\r\n        b\r\n"),
    ("# on a\na  # a\n# on b\n\nb\n", ["a", "b"], "# on a\nwith w:\n    a  # a\n    # on b\n\n    b\n"),
    ("if x:\n    a\n# left\n    b\n", ["a", "b"], "if x:\n    with w:\n        a\n    # left\n        b\n"),
    ("f(\n  a,\n)\n", ["f("], "with w:\n    f(\n      a,\n    )\n"),
    ('a = """\ntext\n  """\nb\n', ["a", "b"], 'with w:\n    a = """\ntext\n  """\n    b\n'),
    ('a = f"""\n{b}\n  """, (\n1)\n', ["a"], 'with w:\n    a = f"""\n{b}\n  """, (\n    1)\n'),
    ("a = 'x\\\ny'\n", ["a"], "with w:\n    a = 'x\\\ny'\n"),
    ("a = 1 + \\\n  2\n", ["a"], "with w:\n    a = 1 + \\\n      2\n"),
    (
        "for i in y:\n    a\n    # end\n\n# after\n",
        ["for"],
        "with w:\n    for i in y:\n        a\n        # end\n\n# after\n",
    ),
    ("@d\ndef g():\n    a\nb\n", ["def g"], "with w:\n    @d\n    def g():\n        a\nb\n"),
    ("if x:\n\tif y:\n\t    a\n", ["if y"], "if x:\n\twith w:\n\t\tif y:\n\t\t    a\n"),
    ("a\n\x0cb\n", ["a", "b"], "with w:\n    a\n\x0c    b\n"),
    ("if x: a; b\n", ["a", "b"], None),
    ("a\nb\nc\n", ["a", "c"], None),
    ("a\nif x:\n    b\n", ["a", "b"], None),
    ("if x:\n    a\nelif y:\n    b\n", ["elif"], None),
    ("a\n", [], None),
]


@pytest.mark.parametrize(("before", "which", "after"), WRAPPED)
def test_statements_are_wrapped(before: str, which: list[str], after: str | None) -> None:
    result = rewritten(before, lambda m: fixes.wrap(m, [statement(m.tree, s) for s in which], "with w:"))
    assert result == after


@pytest.mark.parametrize(
    ("before", "which", "after"),
    [
        ("with w:\n    a\n    b\n    c\n", "b", "with w:\n    a\nb\nc\n"),
        (
            "with w:\n    a\n\n    # on b\n    b\n    # the end\nd\n",
            "b",
            "with w:\n    a\n\n# on b\nb\n# the end\nd\n",
        ),
        ("if x:\r\n\twith w:\r\n\t\ta\r\n\t\tb\r\n", "b", "if x:\r\n\twith w:\r\n\t\ta\r\n\tb\r\n"),
        ("with w:\n    a  # a\n    if b:\n        c\n", "if b", "with w:\n    a  # a\nif b:\n    c\n"),
        ('with w:\n    a\n    b("""\n    t""")\n', "b", 'with w:\n    a\nb("""\n    t""")\n'),
        ("with w:\n    a\n    b(\n  c)\n", "b", "with w:\n    a\nb(\n  c)\n"),
        ("with w:\n    a\n    @d\n    def g(): pass\n", "def g", "with w:\n    a\n@d\ndef g(): pass\n"),
        ("with w:\n    a\n    b", "b", "with w:\n    a\nb"),
        ("with w:\n    a\n    b\n", "a", None),
        ("with w: a; b\n", "b", None),
        ("a\nb\n", "b", None),
    ],
)
def test_a_block_is_ended_before_a_statement(before: str, which: str, after: str | None) -> None:
    assert rewritten(before, lambda m: fixes.end_block_before(m, statement(m.tree, which))) == after


@pytest.mark.parametrize(
    ("before", "place", "code", "after"),
    [
        ("a\nb\n", "b", "n", "a\nn\nb\n"),
        ("a\n# on b\nb\n", "b", "n", "a\nn\n# on b\nb\n"),
        ("a\n# apart\n\nb\n", "b", "n", "a\n# apart\n\nn\nb\n"),
        (
            "#!/usr/bin/python\n# -*- coding: utf-8 -*-\na\n",
            "a",
            "n",
            "#!/usr/bin/python\n# -*- coding: utf-8 -*-\nn\na\n",
        ),
        ("if x:\n\t# on b\n\tb\n", "b", "n\nm", "if x:\n\tn\n\tm\n\t# on b\n\tb\n"),
        ("if x:\r\n  b\r\n", "b", "n:\n  m", "if x:\r\n  n:\r\n    m\r\n  b\r\n".replace("n:", "if n:")),
        ("@d\ndef g(): pass\n", "def g", "n", "n\n@d\ndef g(): pass\n"),
        ("if x: b\n", "b", "n", "if x: n; b\n"),
        ("if x: b\n", "b", "n\nm", None),
        ("a; b\n", "a", "n", "n\na; b\n"),
        ("a; b\n", "b", "n", "a; n; b\n"),
        ("if x: a\nelif y: b\n", "elif", "n", None),
        ("b\n", "b", 's = """\n  t"""\nm', 's = """\n  t"""\nm\nb\n'),
        ("if x:\n    b\n", "b", 's = """\n  t"""\nm', 'if x:\n    s = """\n  t"""\n    m\n    b\n'),
    ],
)
def test_code_is_inserted_before(before: str, place: str, code: str, after: str | None) -> None:
    code = code.replace("n:", "if n:")
    assert rewritten(before, lambda m: fixes.insert_before(m, statement(m.tree, place), code)) == after


@pytest.mark.parametrize(
    ("before", "place", "code", "after"),
    [
        ("a\nb\n", "a", "n", "a\nn\nb\n"),
        ("a  # on a\nb\n", "a", "n", "a  # on a\nn\nb\n"),
        ("a", "a", "n", "a\nn"),
        ("a(\n)\nb\n", "a", "n\nm", "a(\n)\nn\nm\nb\n"),
        ("if x:\r\n\ta\r\n", "a", "n", "if x:\r\n\ta\r\n\tn\r\n"),
        ("for i in y:\n    a\n    # end\nb\n", "for", "n", "for i in y:\n    a\n    # end\nn\nb\n"),
        ("if x: a\n", "a", "n", "if x: a; n\n"),
        ("if x: a\n", "a", "n\nm", None),
        ("a; b\n", "a", "n", "a; n; b\n"),
        ("a; b\n", "b", "n", "a; b\nn\n"),
        ("if x: a\nelif y: b\n", "elif", "n", None),
        ("a \\\n# on a\nb\n", "a", "n", "a \\\n# on a\nn\nb\n"),
        ("a \\\n\nb\n", "a", "n", "a \\\n\nn\nb\n"),
        ("a  # on a \\\nb\n", "a", "n", "a  # on a \\\nn\nb\n"),
    ],
)
def test_code_is_inserted_after(before: str, place: str, code: str, after: str | None) -> None:
    assert rewritten(before, lambda m: fixes.insert_after(m, statement(m.tree, place), code)) == after


IMPORTED = [
    ("import torch\nx = 1\n", "import torch", "import torch\nx = 1\n"),
    (
        "import os\nfrom torch import nn\nx = 1\n",
        "import torch",
        "import os\nimport torch\nfrom torch import nn\nx = 1\n",
    ),
    ("import torch.nn as nn\r\n", "import torch", "import torch\r\nimport torch.nn as nn\r\n"),
    (
        "import torch\nimport numpy\n",
        "from torch import nn",
        "import torch\nfrom torch import nn\nimport numpy\n",
    ),
    (
        "from torch import nn\nfrom torch.nn import functional as F\n",
        "from torch import fx",
        "from torch import nn\nfrom torch.nn import functional as F\nfrom torch import fx\n",
    ),
    (
        "import os\nos.environ['A'] = 'b'\nfrom torch import nn\n",
        "import torch",
        "import os\nos.environ['A'] = 'b'\nimport torch\nfrom torch import nn\n",
    ),
    (
        "import os\n\nimport numpy as np\n\nfrom .a import b\n",
        "import torch",
        "import os\n\nimport numpy as np\nimport torch\n\nfrom .a import b\n",
    ),
    ("import os\n\nx = 1\n", "import torch", "import os\n\nimport torch\n\nx = 1\n"),
    ("import os\nfrom .a import b\n", "import torch", "import os\n\nimport torch\n\nfrom .a import b\n"),
    ('"""Doc."""\n\n\ndef g(): pass\n', "import torch", '"""Doc."""\n\nimport torch\n\n\ndef g(): pass\n'),
    ('"""Doc."""\n', "import torch", '"""Doc."""\n\nimport torch\n'),
    ('"""Doc."""\nx = 1\n', "import torch", '"""Doc."""\n\nimport torch\n\nx = 1\n'),
    (
        "from __future__ import annotations\n\nx = 1\n",
        "import torch",
        "from __future__ import annotations\n\nimport torch\n\nx = 1\n",
    ),
    (
        '"""Doc."""\nfrom __future__ import annotations  # now\nx = 1\n',
        "import torch",
        '"""Doc."""\nfrom __future__ import annotations  # now\n\nimport torch\n\nx = 1\n',
    ),
    ("# licence\n\nx = 1\n", "import torch", "# licence\n\nimport torch\n\nx = 1\n"),
    ("#!/usr/bin/python\nx = 1\n", "import torch", "#!/usr/bin/python\nimport torch\n\nx = 1\n"),
    ("@d\ndef g(): pass\n", "import torch", "import torch\n\n@d\ndef g(): pass\n"),
    ("from .a import b\n", "import torch", "import torch\n\nfrom .a import b\n"),
    (
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
        "import torch",
        "import torch\n\ntry:\n    import torch\nexcept ImportError:\n    torch = None\n",
    ),
    ("import os; import torch.nn\n", "import torch", "import torch\nimport os; import torch.nn\n"),
    ("", "import torch", "import torch\n"),
    ("# nothing\n", "import torch", "# nothing\nimport torch\n"),
]


@pytest.mark.parametrize(("before", "code", "after"), IMPORTED)
def test_an_import_is_added(before: str, code: str, after: str) -> None:
    assert rewritten(before, lambda m: fixes.add_import(m, code)) == after


@pytest.mark.parametrize(
    ("before", "index", "keyword", "after"),
    [
        ("f()", 0, "", "f(new)"),
        ("f(a, b=1)", 0, "", "f(new, a, b=1)"),
        ("f(a, b=1)", 0, "k", "f(new, k=a, b=1)"),
        ("f(a, **k)", 1, "", "f(a, new, **k)"),
        ("f(a)", 1, "", "f(a, new)"),
        ("f(\n    a,  # why\n    b,\n)", 0, "", "f(\n    new,\n    a,  # why\n    b,\n)"),
        ("f(\r\n    a,\r\n)", 0, "k", "f(\r\n    new,\r\n    k=a,\r\n)"),
        ("f(\n    # nothing\n)", 0, "", "f(\n    # nothing\n    new,\n)"),
        ("f(*a)", 0, "", "f(new, *a)"),
    ],
)
def test_an_argument_is_put_in_front(before: str, index: int, keyword: str, after: str) -> None:
    def build(module: Module) -> Edits:
        tree = module.tree
        return fixes.insert_argument(module, call(tree), index, "new", keyword=keyword)

    assert rewritten(before, build) == after


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("import a\nx = 1\n", "a", "x = 1\n"),
        ("import a, b\n", "a", "import b\n"),
        ("import a, b as c\n", "b as c", "import a\n"),
        ("from m import a, b, c\n", "b", "from m import a, c\n"),
        ("from m import (\n    a,\n    b,\n)\n", "b", "from m import (\n    a,\n)\n"),
        ("from m import (\n    a,\n    b,\n)\n", "a", "from m import (\n    b,\n)\n"),
        ("from m import (\n    a,  # why\n    b,\n)\n", "a", None),
        ("import a; x = 1\n", "a", "x = 1\n"),
        ("def f():\n    import a\n", "a", "def f():\n    pass\n"),
        ("try:\n    from m import a\nexcept E:\n    pass\n", "a", "try:\n    pass\nexcept E:\n    pass\n"),
    ],
)
def test_an_import_is_dropped(before: str, name: str, after: str | None) -> None:
    def build(module: Module) -> Edits | None:
        tree = module.tree
        alias = next(a for a in tree.nodes(cst.ImportAlias) if tree.source(a).rstrip(", \n") == name)
        return fixes.remove_import(module, alias)

    assert rewritten(before, build) == after


SOURCES = [*sorted(Path(torchlint.__file__).parent.glob("*.py")), Path(__file__)]


@pytest.fixture(params=SOURCES, ids=lambda path: path.name)
def source(request: pytest.FixtureRequest) -> str:
    """The text of a real program: torchlint itself."""
    text: str = request.param.read_bytes().decode()
    return text


def test_an_argument_added_to_every_call_is_the_only_change(source: str) -> None:
    module = model(source)
    tree = module.tree
    changes = [fixes.add_argument(module, node, "None", keyword="added") for node in tree.nodes(cst.Call)]
    result = apply(source, [edit for change in changes if change for edit in change])
    expected = ast.parse(source)
    for node in ast.walk(expected):
        if not isinstance(node, ast.Call) or any(isinstance(arg, ast.Starred) for arg in node.args):
            continue
        if all(keyword.arg is not None for keyword in node.keywords):
            node.keywords.append(ast.keyword("added", ast.Constant(None)))
    assert ast.dump(ast.parse(result)) == ast.dump(expected)


def test_an_argument_taken_from_every_innermost_call_is_the_only_change(source: str) -> None:
    module = model(source)
    tree = module.tree
    outer = {around for node in tree.nodes(cst.Call) for around in tree.ancestors(node)}
    innermost = [node for node in tree.nodes(cst.Call) if node.args and node not in outer]
    taken = [node.args[order % len(node.args)] for order, node in enumerate(innermost)]
    result = apply(source, [edit for arg in taken for edit in fixes.remove_argument(module, arg)])
    gone = set(taken)
    remaining = [[tree.source(arg) for arg in node.args if arg not in gone] for node in innermost]
    after = SyntaxTree(result)
    by_order = dict(zip(tree.nodes(cst.Call), after.nodes(cst.Call), strict=True))
    assert [[after.source(arg) for arg in by_order[node].args] for node in innermost] == remaining


def test_every_function_body_wrapped_is_the_only_change(source: str) -> None:
    module = model(source)
    tree = module.tree
    functions = [f for f in tree.nodes(cst.FunctionDef) if tree.enclosing(f, cst.FunctionDef) is None]
    changes = [fixes.wrap(module, f.body.body, "with added:") for f in functions]
    result = apply(source, [edit for change in changes if change for edit in change])
    before, after = ast.parse(source), ast.parse(result)
    for old, new in zip(_outer_functions(before), _outer_functions(after), strict=True):
        inner = new.body[0]
        if isinstance(inner, ast.With) and ast.unparse(inner.items[0]) == "added":
            new.body = inner.body
        assert ast.dump(old) == ast.dump(new)
    assert ast.dump(before) == ast.dump(after)


def _outer_functions(tree: ast.AST) -> list[ast.FunctionDef]:
    found: list[ast.FunctionDef] = []
    for child in ast.iter_child_nodes(tree):
        found += [child] if isinstance(child, ast.FunctionDef) else _outer_functions(child)
    return found


# --- what a method call leaves of its owner ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = x.cpu()", "y = x"),
        ("y = (x).cpu()", "y = (x)"),
        ("y = (x.cpu())", "y = (x)"),
        ("y = (\n    x\n    .cpu()\n)", "y = (\n    x\n)"),
        ("y = (x.cpu)()", None),
        ("y = ((x.cpu))()", None),
        ("y = (x  # why\n    .cpu())", None),
    ],
)
def test_cut_off(before: str, after: str | None) -> None:
    def build(module: Module) -> Edits | None:
        tree = module.tree
        (whole,) = tree.nodes(cst.Call)
        assert isinstance(whole.func, cst.Attribute)
        return fixes.cut_off(module, whole.func.value, whole)

    assert rewritten(before, build) == after

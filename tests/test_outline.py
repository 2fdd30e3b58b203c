"""An outline has the code of the full tree: same nodes, same order, same texts; or it says that it cannot."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path

import libcst as cst
import pytest

from torchlint import reading
from torchlint.conversion import NotOutlinedError
from torchlint.outline import Outline
from torchlint.syntax import SyntaxTree

ROOT = Path(__file__).parent.parent
# The fixtures of the rules are compared by what they make torchlint say, in test_rules.py.
FILES = sorted([*(ROOT / "fixtures" / "programs").rglob("*.py"), *(ROOT / "torchlint").rglob("*.py")])
STATEMENTS = {
    "semicolons": "a = 1; b = 2 ;c = 3\nd = 4\n",
    "a string that looks like a semicolon": "a = '; '\nb = ';'\n",
    "statements behind a colon": "if a: b = 1; c()\nelif d: pass\nelse: raise E\nfor x in y: f(x)\n",
    "elif and else if": "if a:\n    b\nelif c:\n    d\nelse:\n    if e:\n        f\n    else:\n        g\n",
    "if within else": "if a:\n    b\nelse:\n    if c:\n        d\n",
    "loops": "for a, *b in c:\n    continue\nelse:\n    d\nwhile (e := f()):\n    break\nelse:\n    pass\n",
    "asynchronous": "async def f():\n    async with a as b, c: await d\n    async for e in g: yield e\n"
    "    return [h async for h in i]\n",
    "with": "with a as b, c as (d, e), f(): pass\nwith (g as h, i): pass\nwith (j): pass\n",
    "try": "try:\n    a\nexcept (B, C) as d:\n    e\nexcept F: raise\nelse:\n    g\nfinally:\n    h\n",
    "parameters": "def f(a, b: int = 1, /, c=2, *d: str, e, g=3, **h) -> None: ...\ndef i(*, j): ...\n"
    "k = lambda l, *m, n=1, **o: l\n",
    "decorators": "@a.b\n@c(d, e=1)\nclass F(G, *H, metaclass=I, **J):\n"
    "    @staticmethod\n    def k(): pass\n",
    "imports": "import a, b.c.d as e\nfrom . import f\nfrom ..g.h import i as j, k\nfrom l import *\n",
    "imports in many lines": "import a . b\\\n.c as d\nfrom .. \\\n e . f import (g,\n  h as i)\n"
    "from...j import k\n",
    "deletions": "del a\ndel b.c, d[0]\ndel (e, f)\n",
    "raises": "raise\nraise A\nraise A(b) from c\nassert d, e\nglobal_ = 1\n",
    "scopes": "def f():\n    global a, b\n    def g():\n        nonlocal c\n",
    "assignments": "a = b = c, d = e\nf: int\nf: int = 1\nh.i += 1\nj @= k\n",
    "match": "match a:\n    case 1 | -2 | 3 + 4j: pass\n    case b if c: d\n    case _:\n        e; f\n",
    "matched": "match (a):\n    case b: c\nmatch d, *e:\n    case f: g\nmatch (h, i):\n    case _: j\n",
    "cases in parentheses": "match a:\n    case (b): c\n    case(1): d\n    case (1) as e: f\n"
    "    case (None): g\n    case ((1 | (2))): h\n    case (\n        i\n    ): j\n",
    "sequences": "match a:\n    case b, *c: d\n    case (e, f): g\n    case (h, i), j: k\n"
    "    case (l), (m): n\n    case (o,): p\n    case [q, *_]: r\n    case [s], [t]: u\n"
    "    case (): v\n    case []: w\n    case ((x, y)): z\n",
    "mappings": "match a:\n    case {'b': 1, 2: c, D.e: (f), **g}: h\n"
    "    case {None: _, **i,}: j\n    case {}: k\n",
    "classes": "match a:\n    case B(): c\n    case d.E(f, g=1): h\n    case I(1) | J((2)) | K(3,): l\n"
    "    case M((n, o)) as p: q\n    case R(s=(1), t=U.v): w\n    case (X(y)): z\n    case A(b=1): c\n"
    "    case D(E.f): g\n    case H('i' 'j'): k\n",
    "yields": "def f():\n    a = yield\n    b = yield c\n    yield d, *e\n    yield from g\n",
}
EXPRESSIONS = [
    *("a", "a.b.c", "1", "0x1F", "1_000", "1.5e3", "2j", "True", "None", "...", "-a ** -b", "not a"),
    *("'a'", "b'a'", "r'\\d'", "'a' 'b'", "f'{a!r:>{b}}' 'c'", "'''a\nb'''", "'a\\'b'", "u'a'", "'é' + b"),
    *("'''a''' '''b'''", '"""a""" """b"""'),
    *("a + b * c - d @ e // f % g", "a << b >> c & d ^ e | ~f", "a and b and c or d or not e"),
    *("a and (b and c)", "(a and b) and c", "a < b <= c != d", "a is not b", "a not in b", "a if b else c"),
    *("f()", "f(a, *b, c=d, **e)", "f(a=b, *c)", "f(*a, b=c, *d)", "f((a))", "f((a), b)", "f((a, b))"),
    *("f(x for x in y)", "f((x for x in y))", "f((x for x in y), z)", "(x for x in y)", "f( x for x in y )"),
    *(
        "a[b]",
        "a[b, c]",
        "a[(b, c)]",
        "a[(b), c]",
        "a[(b), (c)]",
        "a[((b), c)]",
        "a[b:c:d, ::e, ...]",
        "a[()]",
    ),
    *("a[b,]", "a[:]", "a[(b)]", "a[((b, c))]", "a[lambda: b]", "()", "(a,)", "[*a, b]", "{*a, b}", "{}"),
    *("{a: b, **c}", "[a for b in c if d if e for g in h]", "{a: b for c, d in e}", "{a for b in c}"),
    *("(a)", "((a))", "( # why\n a)", "(a).b", "(a + b).c()", "(yield)", "(a := b)", "lambda *a, b: (a, b)"),
    *("f(\n    a,  # one\n    b=(c),\n)", "(a\n + b)", "(await_)"),
]
# What an outline knows the place of, if no comment stands beside it.
PLACED = (
    cst.Attribute,
    cst.Call,
    cst.BinaryOperation,
    cst.Arg,
    cst.BaseStatement,
    cst.BaseSmallStatement,
    cst.BaseAugOp,
    cst.MatchCase,
)
UNCLEAR = {
    "type parameters": "class A[B]: pass\n",
    "no program": "def f(:\n",
    "a NUL": "a\0",
}


def alike(outline: SyntaxTree, full: SyntaxTree) -> None:
    """Check that two trees have the same nodes in the same places, with the same texts."""
    layout = (cst.Colon, cst.SimpleWhitespace)
    mine = [node for node in outline.order if not isinstance(node, layout)]
    theirs = [node for node in full.order if not isinstance(node, layout)]
    assert [type(node) for node in mine] == [type(node) for node in theirs]
    twins = dict(zip(mine, theirs, strict=True))
    for node, twin in twins.items():
        if node in outline.parents:
            assert twins[outline.parents[node]] is full.parents[twin]
        for name in ("value", "star"):
            text = getattr(twin, name, None)
            if isinstance(text, str) and not isinstance(twin, cst.NotEqual):
                assert getattr(node, name) == text
        if isinstance(node, cst.BaseExpression) and not isinstance(node, cst.StarredElement):
            span = full.outer_span(twin)
            try:
                text = outline.source(node)
            except NotOutlinedError:
                assert "#" in full.text or isinstance(node, (cst.BooleanOperation, cst.Tuple))
            else:
                assert text == full.text[span.start : span.end]
        same_place(outline, node, full, twin)
    assert outline.root.default_indent == full.root.default_indent
    assert outline.root.default_newline == full.root.default_newline
    try:
        comments = outline.comments
    except NotOutlinedError:
        assert outline.nodes(cst.ConcatenatedString, cst.FormattedString)
    else:
        assert comments == full.comments


def same_place(outline: SyntaxTree, node: cst.CSTNode, full: SyntaxTree, twin: cst.CSTNode) -> None:
    """Check that a node stands where its twin does, as far as the outline can tell."""
    placed = isinstance(node, PLACED)
    try:
        span = outline.span(node)
        outer = outline.outer_span(node)
    except NotOutlinedError:
        assert not placed or set("#;\\") & set(full.text)
    else:
        assert span == full.span(twin), f"{type(node).__name__} {full.text[span.start : span.end]!r}"
        assert outer == full.outer_span(twin)
    if isinstance(node, cst.BaseExpression) and not isinstance(node, cst.StarredElement):
        try:
            pairs = outline.parentheses(node)
        except NotOutlinedError:
            assert "#" in full.text or not placed
        else:
            assert pairs == full.parentheses(twin)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_has_the_same_code_in_its_outline(path: Path) -> None:
    text = reading.read(path).text
    try:
        outline = Outline(text)
    except NotOutlinedError:
        assert "type " in text
    else:
        alike(outline, SyntaxTree(text))


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_statements_are_outlined(name: str, newline: str) -> None:
    text = STATEMENTS[name].replace("\n", newline)
    alike(Outline(text), SyntaxTree(text))


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("frame", ["{}\n", "é = {}\n", "f({})\n", "if x:\n\tf(é, y={}, z=0)\n", "x[{}]"])
def test_expressions_are_outlined(frame: str, text: str) -> None:
    program = frame.format(text.replace("(yield)", "(yielded)"))
    try:
        full = SyntaxTree(program)
    except cst.ParserSyntaxError:
        with pytest.raises(NotOutlinedError):
            Outline(program)
    else:
        alike(Outline(program), full)


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_has_no_outline_is_said_to_have_none(name: str) -> None:
    with pytest.raises(NotOutlinedError):
        Outline(UNCLEAR[name])


def test_an_outline_does_not_know_the_places_of_punctuation() -> None:
    outline = Outline("if a:\n    b\nelse:\n    c\n")
    (otherwise,) = outline.nodes(cst.Else)
    with pytest.raises(NotOutlinedError):
        outline.span(otherwise)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1  # one\n# two\r\n'# three'\nb = '''#\n# four '''  # 'five'\n#",
        "f'{a}'  # one\nr'\\\\'  # two '\n'#'+'''#''' # three",
    ],
)
def test_comments_are_told_from_strings(text: str) -> None:
    assert Outline(text).comments == SyntaxTree(text).comments


def test_a_comment_among_the_parts_of_a_string_needs_the_full_tree() -> None:
    with pytest.raises(NotOutlinedError):
        assert Outline("a = ('b'  # why\n     'c')\n").comments


def test_strings_of_one_literal_are_told_from_joined_ones() -> None:
    """All short strings of quotes, backslashes and letters, beside what LibCST makes of them."""
    told = 0
    for length in range(2, 8):
        for text in map("".join, itertools.product("'\"\\a", repeat=length)):
            with contextlib.suppress(SyntaxError, NotOutlinedError):
                (line,) = Outline(text).nodes(cst.Expr)
                assert type(line.value) is type(cst.parse_expression(text)), text
                told += 1
    assert told > 100

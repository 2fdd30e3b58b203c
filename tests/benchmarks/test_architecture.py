"""What the measures of the architecture count, on small source trees of their own."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.architecture import adding, flow, knowledge, layers
from benchmarks.architecture.__main__ import MEASURES, main
from benchmarks.architecture.sources import Measured, Sources, components

Tree = Callable[[Mapping[str, str]], Sources]
MODEL = "torchlint/semantics"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    def written(files: Mapping[str, str]) -> Sources:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        return Sources(tmp_path)

    return written


def whats(measured: Measured) -> list[str]:
    return [place.what for place in measured.places]


def names(measured: Measured) -> list[str]:
    return [Path(place.path).stem for place in measured.places]


# --- size and imports --------------------------------------------------------------------------------------


def test_lines_leave_bench_cases_out(tree: Tree) -> None:
    sources = tree(
        {
            f"{MODEL}/__init__.py": '"""The model."""\n',
            f"{MODEL}/one.py": "A = 1\n\n# no code\n",
            f"{MODEL}/api/__init__.py": "B = 2\n",
            "torchlint/cli.py": "C = 3\nD = 4\n",
            "rules/memory/leak.py": "E = 5\n",
            "rules/memory/cases/leak.py": "F = 6\n" * 100,
            "tests/test_one.py": "G = 7\n",
        }
    )
    assert layers.lines_of_model(sources).value == 5
    assert layers.modules_of_model(sources).value == 2  # a package without code is a folder
    assert layers.lines_of_all(sources).value == 8
    assert layers.lines_of_all(sources).parts == {"torchlint": 7, "rules": 1}


def test_a_cycle_is_seen_through_imports_for_types_and_in_functions(tree: Tree) -> None:
    sources = tree(
        {
            f"{MODEL}/a.py": """
                from typing import TYPE_CHECKING
                if TYPE_CHECKING:
                    from torchlint.semantics.b import B
                """,
            f"{MODEL}/b.py": """
                def late():
                    from torchlint.semantics import c
                """,
            f"{MODEL}/c.py": "import torchlint.semantics.a\n",
            f"{MODEL}/d.py": "from torchlint.semantics.a import A\nfrom .e import E\n",
            f"{MODEL}/e.py": "from . import d\n",
        }
    )
    measured = layers.import_cycle(sources)
    assert (measured.value, measured.parts["cycles"], names(measured)) == (3, 2, ["a", "b", "c"])


def test_without_a_way_back_there_is_no_cycle(tree: Tree) -> None:
    sources = tree({f"{MODEL}/a.py": "from torchlint.semantics.b import B\n", f"{MODEL}/b.py": "B = 1\n"})
    assert layers.import_cycle(sources).value == 0


def test_components_of_a_graph() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert sorted(map(sorted, components(graph))) == [["a", "b", "c"], ["d", "e"], ["f"]]


def test_public_members_of_the_facade(tree: Tree) -> None:
    sources = tree(
        {
            f"{MODEL}/module.py": """
                class Argument:
                    def other(self): ...

                class Module:
                    kind = 1
                    size: int
                    def __init__(self):
                        self.tree = None
                        self._hidden = None
                    def value(self, node): ...
                    def _own(self): ...
                    @property
                    def names(self): ...
                """
        }
    )
    assert sorted(whats(layers.facade_members(sources))) == ["kind", "names", "size", "tree", "value"]


RULE = "from torchlint.rule import rule\n@rule('TL101', 'one')\ndef one(node, module): ...\n"


def test_modules_that_serve_one_rule(tree: Tree) -> None:
    model = "from torchlint.semantics"
    sources = tree(
        {
            f"{MODEL}/module.py": f"{model}.core import C\n",
            f"{MODEL}/core.py": "",
            f"{MODEL}/single.py": f"{model}.deeper import D\n{model}.core import C\n",
            f"{MODEL}/deeper.py": f"{model}.module import Module\n",
            f"{MODEL}/shared.py": "",
            f"{MODEL}/family.py": "",
            f"{MODEL}/engine.py": "",
            f"{MODEL}/folder.py": "",
            f"{MODEL}/unused.py": "",
            "torchlint/checker.py": f"{model}.engine import E\n",
            "rules/memory/common.py": f"{model}.family import F\n",
            "rules/memory/one.py": RULE
            + f"{model}.single import S\n{model}.shared import S\n{model}.module import Module\n"
            + "from torchlint.rules.memory.common import C\n",
            "rules/memory/two.py": RULE
            + f"{model}.shared import S\n{model}.engine import E\n"
            + "from torchlint.rules.memory.common import C\n",
            "rules/model/three/rule.py": RULE + "from torchlint.rules.model.three.rewrite import R\n",
            "rules/model/three/rewrite.py": f"{model}.folder import F\n",
        }
    )
    measured = layers.serving_one_rule(sources)
    assert names(measured) == ["deeper", "folder", "single"]
    assert measured.parts["lines"] == 3
    assert measured.places[1].what == "0 lines, for rules.model.three"


# --- the flow ----------------------------------------------------------------------------------------------

FOUR = """
        case cst.Name() | cst.Attribute():
            return 1
        case cst.Call(func=cst.Lambda()) as call:
            return {again}
        case cst.IfExp():
            return 2
"""


def interpreter(again: str, head: str = "def number(node):") -> str:
    return f"import libcst as cst\n{head}\n    match node:{FOUR.format(again=again)}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(interpreter("number(call.func)"), ["number (4 kinds)"], id="match"),
        pytest.param(interpreter("0"), [], id="no recursion"),
        pytest.param(
            interpreter("other(call)") + "def other(node):\n    return number(node)\n",
            ["number, other (4 kinds)"],
            id="mutual",
        ),
        pytest.param(
            "import libcst as cst\n_KINDS = (cst.Name, cst.Call, cst.Tuple)\n"
            "def f(node):\n"
            "    if isinstance(node, _KINDS) or isinstance(node, cst.List):\n"
            "        return any(map(f, node.elements))\n",
            ["f (4 kinds)"],
            id="isinstance with a constant",
        ),
        pytest.param(
            "import libcst as cst\n"
            "class Reader:\n"
            "    def read(self, node):\n"
            "        if isinstance(node, (cst.Name, cst.Call)) or type(node) in (cst.List, cst.Tuple):\n"
            "            return self.read(node.value)\n",
            ["read (4 kinds)"],
            id="method",
        ),
        pytest.param(
            "import libcst as cst\n"
            "def f(node):\n"
            "    if isinstance(node, (cst.Name, cst.Call, cst.Tuple, cst.BaseExpression)):\n"
            "        return f(node)\n",
            [],
            id="three kinds",
        ),
        pytest.param(
            "import libcst as cst\n"
            "def f(node):\n"
            "    if isinstance(node, (cst.If, cst.While, cst.For, cst.Try)):\n"
            "        return f(node)\n",
            [],
            id="statements",
        ),
        pytest.param(
            "import libcst as cst\n"
            "def f(node):\n"
            "    match node:\n"
            "        case cst.Call(func=cst.Attribute(value=cst.Name()), args=[cst.Integer()]):\n"
            "            return f(node)\n",
            [],
            id="one kind with its parts",
        ),
    ],
)
def test_interpreters(tree: Tree, text: str, expected: list[str]) -> None:
    measured = flow.interpreters(tree({f"{MODEL}/read.py": text}))
    assert whats(measured) == expected
    assert flow.interpreters(tree({f"{MODEL}/read.py": "", "rules/memory/read.py": text})).value == len(
        expected
    )


def test_kinds_are_looked_up_where_constants_are_imported_from(tree: Tree) -> None:
    sources = tree(
        {
            f"{MODEL}/kinds.py": "import libcst as cst\nKINDS = (cst.Name, cst.Call, cst.Tuple, cst.List)\n",
            f"{MODEL}/read.py": "from torchlint.semantics.kinds import KINDS\n"
            "def f(node):\n    return isinstance(node, KINDS) and f(node)\n",
        }
    )
    assert whats(flow.interpreters(sources)) == ["f (4 kinds)"]


OVER = """
def f(tree, node):
    for around in tree.ancestors(node):
        if isinstance(around, {kind}):
            return
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(OVER.format(kind="cst.If"), 1, id="loop"),
        pytest.param(OVER.format(kind="_BRANCHES") + "_BRANCHES = (cst.With, cst.Try)\n", 1, id="constant"),
        pytest.param(OVER.format(kind="cst.ClassDef"), 0, id="no branch"),
        pytest.param(
            "def f(tree, n):\n    return any(isinstance(x, cst.IfExp) for x in tree.ancestors(n))\n",
            1,
            id="comprehension",
        ),
        pytest.param(
            "def f(tree, n):\n    while not isinstance(n, cst.While):\n        n = tree.parent(n)\n",
            1,
            id="while",
        ),
        pytest.param(
            "def f(tree, n):\n    while isinstance(n, cst.Attribute):\n        n = tree.parent(n)\n",
            0,
            id="while through attributes",
        ),
        pytest.param(
            "def f(tree, node):\n"
            "    parent = tree.parent(node)\n"
            "    return f(tree, parent) if isinstance(parent, cst.BooleanOperation) else node\n",
            1,
            id="recursion",
        ),
        pytest.param(
            "def f(tree, node):\n    return tree.enclosing(node, cst.For, cst.While)\n", 1, id="asked"
        ),
        pytest.param(
            "def f(tree, node):\n    return tree.enclosing(node, cst.ClassDef)\n", 0, id="asked for a class"
        ),
    ],
)
def test_climbs(tree: Tree, text: str, count: int) -> None:
    text = "import libcst as cst\n" + text
    assert flow.climbs(tree({f"{MODEL}/places.py": text})).value == count
    kernel = {f"{MODEL}/places.py": "", f"{MODEL}/flow/graph.py": text}
    assert flow.climbs(tree(kernel)).value == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "_HOPS = 3\ndef f(n, hops=_HOPS):\n    return hops and f(n, hops - 1)\n",
            ["_HOPS = 3"],
            id="default",
        ),
        pytest.param(
            "_D = 6\ndef f(n, depth):\n    if depth > _D:\n        return\n    f(n, depth + 1)\n",
            ["_D = 6"],
            id="compared",
        ),
        pytest.param(
            "_H = 2\ndef start(n):\n    return f(n, _H)\n"
            "def f(n, hops):\n    return hops and f(n, hops - 1)\n",
            ["_H = 2"],
            id="given",
        ),
        pytest.param(
            "_ROUNDS = 12\ndef f():\n    for _ in range(_ROUNDS):\n        pass\n",
            ["_ROUNDS = 12"],
            id="range",
        ),
        pytest.param(
            "_MOST = 2_000\ndef f(w):\n    seen = set()\n    while w:\n        if len(seen) > _MOST:\n"
            "            return\n        seen.add(w.pop())\n",
            ["_MOST = 2000"],
            id="size",
        ),
        pytest.param(
            "_H = 4\ndef f(n):\n    waiting = deque([(n, _H)])\n"
            "    while waiting:\n        n, hops = waiting.pop()\n"
            "        if hops:\n            waiting.append((n, hops - 1))\n",
            ["_H = 4"],
            id="queue",
        ),
        pytest.param(
            "_VISITS = 200\nclass C:\n    def f(self):\n"
            "        self.seen += 1\n        return self.seen > _VISITS\n",
            ["_VISITS = 200"],
            id="attribute",
        ),
        pytest.param("_MAX = 500\nFIX = Fixpoint(order, depth=_MAX)\n", ["_MAX = 500"], id="another module"),
        pytest.param(
            "def f(n, hops=4):\n    return hops and f(n, hops - 1)\n", ["f(hops=4)"], id="written out"
        ),
        pytest.param(
            "_GRID = 8\ndef f(sizes):\n    return [s for s in sizes if s < _GRID]\n", [], id="of the domain"
        ),
        pytest.param("_FIRST = 2\ndef f(items):\n    return items[_FIRST]\n", [], id="an index"),
        pytest.param("def f(n, start=0):\n    return f(n, start + 1)\n", [], id="counting from nothing"),
    ],
)
def test_bounds(tree: Tree, text: str, expected: list[str]) -> None:
    assert whats(flow.bounds(tree({f"{MODEL}/walk.py": text}))) == expected


# --- memory, names, prose ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("class C:\n    @cached_property\n    def f(self): ...\n", "cached_property"),
        ("@functools.lru_cache(maxsize=None)\ndef f(): ...\n", "functools.cache"),
        ("from torchlint.semantics.remembered import remembered\n@remembered\ndef f(m): ...\n", "remembered"),
        ("from torchlint.semantics.remembered import solved\n@solved(0)\ndef f(m): ...\n", "remembered"),
        ("from torchlint.semantics.fixpoint import solved\n@solved(0)\ndef f(m): ...\n", "fixpoint"),
        ("def f(module, q):\n    return module.fixpoint.ask(q, g, A)\n", "fixpoint"),
        (
            (
                "class C:\n    def f(self, n):\n        found = self._known.get(n)\n        if not found:\n"
                "            found = self._known[n] = g(n)\n        return found\n"
            ),
            "dictionaries",
        ),
        (
            "KNOWN = {}\ndef f(n):\n    if n not in KNOWN:\n        KNOWN[n] = 1\n    return KNOWN[n]\n",
            "dictionaries",
        ),
        (
            (
                "def f(nodes):\n    found = {}\n    for n in nodes:\n"
                "        if n not in found:\n            found[n] = 1\n"
            ),
            None,
        ),
        ("class C:\n    def f(self, n):\n        self.counts[n] = 1\n", None),
        (
            (
                "def f(nodes):\n    seen = {}\n    def g(n):\n        if n not in seen:\n"
                "            seen[n] = 1\n        return seen[n]\n    return g\n"
            ),
            None,
        ),
        (
            (
                "class cached_property:\n    def __get__(self, instance, owner):\n"
                "        if self.name not in instance.__dict__:\n"
                "            instance.__dict__[self.name] = self.work_out(instance)\n"
                "        return instance.__dict__[self.name]\n"
            ),
            "cached_property",
        ),
        ("@cache\ndef f(module: Module, name: str): ...\n", "functools.cache"),
        ("@cache\ndef f(name): ...\n", "functools.cache"),
        ("class C:\n    @cache\n    def f(self, name: str): ...\n", "functools.cache"),
    ],
)
def test_memories(tree: Tree, text: str, style: str | None) -> None:
    measured = knowledge.memories(tree({f"{MODEL}/places.py": text}))
    assert list(measured.parts) == ([style] if style else [])
    assert measured.value == len(measured.parts)


def test_memory_of_what_rests_on_no_file(tree: Tree) -> None:
    """A function of text says the same in every file: it is listed, and is no style of memory."""
    text = "@cache\ndef f(name: str): ...\n@cache\ndef g(kind: type[Any], *more: str): ...\n"
    measured = knowledge.memories(tree({f"{MODEL}/places.py": text}))
    assert (measured.value, measured.parts) == (0, {"functions of text": 2})


def test_memory_of_the_fixpoint(tree: Tree) -> None:
    table = (
        "class F:\n    def ask(self, n):\n        if n not in self.known:\n            self.known[n] = 1\n"
    )
    assert list(knowledge.memories(tree({f"{MODEL}/fixpoint.py": table})).parts) == ["fixpoint"]
    assert list(knowledge.memories(tree({f"{MODEL}/places.py": table})).parts) == ["dictionaries", "fixpoint"]


_FRONT = (
    "def remembered(g):\n    def asked(module, n):\n        fixpoint = module.fixpoint\n"
    "        fixpoint.ask(n, g, A)\n        {kept}\n    return asked\n"
)


@pytest.mark.parametrize(
    ("kept", "style"),
    [
        ("fixpoint.settled[n] = g(n)", "fixpoint"),
        ("module.answers[n] = g(n)", "remembered"),
        ("module.answers = {n: g(n)}", "remembered"),
    ],
)
def test_memory_of_decorators(tree: Tree, kept: str, style: str) -> None:
    asked = "from torchlint.semantics.remembered import remembered\n@remembered\ndef f(m): ...\n"
    front = _FRONT.format(kept=kept)
    measured = knowledge.memories(tree({f"{MODEL}/places.py": asked, f"{MODEL}/remembered.py": front}))
    assert f"{style}: f" in whats(measured)


USED = "def f(module, node):\n    return P.search({text})\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(
            "P = re.compile(r'(^|_)(eval|valid)(_|$)')\n" + USED.format(text="node.value"), 1, id="words"
        ),
        pytest.param("P = re.compile(r'^[A-Z]\\w*\\d+')\n", 0, id="syntax only"),
        pytest.param("P = re.compile(r'torch\\.nn\\.(\\w+)')\n", 0, id="a library's names"),
        pytest.param("P = re.compile(r'\\b(ValueError|except|finally)\\b')\n", 0, id="Python"),
        pytest.param(
            "P = re.compile(r'Linear$')\n" + USED.format(text="module.qualified(node)"), 0, id="qualified"
        ),
        pytest.param("WORD = 'loader'\nP = re.compile(rf'^{WORD}s?$')\n", 1, id="put together"),
        pytest.param("def f(name):\n    return re.search('optim', name)\n", 1, id="directly"),
        pytest.param(
            "W = frozenset({'val', 'valid'})\ndef f(n):\n    return n.name.value in W\n", 1, id="set"
        ),
        pytest.param(
            "W = {'val'}\ndef f(c):\n    name = last_name(c)\n    return name in W\n", 1, id="set by a name"
        ),
        pytest.param("W = {'append'}\ndef f(n):\n    return n.name.value in W\n", 0, id="names of Python"),
        pytest.param("W = {'matmul'}\ndef f(n):\n    return n.name.value in W\n", 0, id="names of torch"),
        pytest.param("W = {'val'}\ndef f(d):\n    return d.setting in W\n", 0, id="no user's name"),
    ],
)
def test_patterns(tree: Tree, text: str, count: int) -> None:
    api = {f"{MODEL}/api/signatures.py": "SIGNATURES = {'torch.Tensor.matmul': 1}\n"}
    measured = knowledge.patterns(tree({**api, f"{MODEL}/guess.py": text}))
    assert measured.value == count
    if count:
        assert measured.parts["eval"] == ("eval" in text)
    assert knowledge.patterns(tree({f"{MODEL}/guess.py": "", "rules/memory/guess.py": text})).value == count
    for exempt in ("lexicon", "comments"):
        sources = tree({"rules/memory/guess.py": "", f"{MODEL}/{exempt}.py": text})
        assert knowledge.patterns(sources).value == 0
        tree({f"{MODEL}/{exempt}.py": ""})


def test_regular_expressions_of_the_model(tree: Tree) -> None:
    text = "P = re.compile('a')\ndef f(t):\n    return re.match('b', t), P.match(t), t.split('c')\n"
    sources = tree(
        {
            f"{MODEL}/one.py": text,
            f"{MODEL}/lexicon.py": text,
            f"{MODEL}/api/names.py": text,
            "rules/memory/one.py": text,
        }
    )
    measured = knowledge.regular_expressions(sources)
    assert (measured.value, measured.parts["without compile"]) == (2, 1)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        pytest.param("from torchlint.diagnostics import Edit, Span\n", True, id="edit"),
        pytest.param("from torchlint.diagnostics import Span\n", False, id="span"),
        pytest.param("from torchlint import fixes\n", True, id="fixes"),
        pytest.param("from torchlint.fixes import replace\n", True, id="an edit"),
        pytest.param("def f(module):\n    return module.unsafe('Do', ())\n", True, id="unsafe"),
        pytest.param("def f(module, n):\n    return module.rename(n)\n", True, id="a method for edits"),
        pytest.param("def f(module, n):\n    return module.value(n)\n", False, id="a question"),
        pytest.param("def f(name):\n    return f'the loop steps `{name}`'\n", True, id="prose"),
        pytest.param('def f():\n    """Tell what the loop does."""\n', False, id="documentation"),
        pytest.param("def f():\n    raise ValueError('the loop has no end')\n", False, id="error"),
        pytest.param("NAMES = listed('amax amin the_sum')\n", False, id="list of names"),
        pytest.param("P = re.compile('in the loop')\n", False, id="pattern"),
        pytest.param("CODE = 'x if y else z'\n", False, id="code"),
        pytest.param("class Role(IdentityEnum):\n    STEP = 'it iter the_step'\n", False, id="words"),
        pytest.param("class Portion(enum.Enum):\n    PART = 'part of a batch'\n", False, id="member"),
        pytest.param("class Rule:\n    said = 'part of a batch'\n", True, id="attribute"),
        pytest.param(
            "def f(m, n):\n    return m.fixpoint.ask(('filled by all', n), g, A)\n", False, id="key"
        ),
    ],
)
def test_prose(tree: Tree, text: str, counts: bool) -> None:
    facade = "class Module:\n    def rename(self, n) -> Edits: ...\n    def value(self, n) -> Value: ...\n"
    sources = tree({f"{MODEL}/module.py": facade, f"{MODEL}/one.py": text, f"{MODEL}/api/one.py": text})
    assert ("one" in names(knowledge.prose(sources))) is counts
    assert knowledge.prose(sources).value == counts


# --- adding a rule -----------------------------------------------------------------------------------------


def test_files_for_a_rule(tree: Tree) -> None:
    sources = tree(
        {
            "torchlint/dev/scaffold.py": """
                def new_rule(code, function, family, root):
                    package = root / "rules" / family
                    changelog = root / "CHANGELOG.md"
                    files = {
                        package / f"{function}.py": "",
                        root / "fixtures" / code / "bad.py": "",
                        changelog: "",
                    }
                """,
            "torchlint/dev/readme.py": "README = ROOT / 'README.md'\n",
            "rules/memory/one.py": RULE,
            "rules/memory/two.py": RULE.replace("TL101", "TL102"),
            "rules/memory/cases/one.py": "",
            "README.md": "TL101, TL102\n",
            "CHANGELOG.md": "TL101, TL102\n",
            "tests/test_meta.py": "CATALOGUE = {'TL101', 'TL102'}\n",
            "tests/test_one.py": "check('TL101')\n",
            "benchmarks/results/fuzz.json": '["TL101", "TL102"]\n',
            "docs/rules/TL101.md": "",
            "docs/rules/TL102.md": "",
        }
    )
    measured = adding.files_for_a_rule(sources)
    assert [str(place) for place in measured.places] == [
        "rules/<family>/<function>.py  written by new-rule",
        "fixtures/<code>/bad.py  written by new-rule",
        "CHANGELOG.md  written by new-rule",
        "rules/<family>/cases/<rule>.py  unless the rule says measured=False",
        "tests/test_meta.py  by hand",
        "README.md  generated",
        "docs/rules/<code>.md  generated",
    ]
    assert measured.value == 1


# --- the command -------------------------------------------------------------------------------------------


def test_the_command(tree: Tree, tmp_path: Path) -> None:
    tree(
        {
            f"{MODEL}/a.py": "from torchlint.semantics import b\n",
            f"{MODEL}/b.py": "import torchlint.semantics.a\n",
        }
    )
    result = tmp_path / "results.json"
    ran = CliRunner().invoke(main, ["--root", str(tmp_path), "--json", str(result)])
    assert ran.exit_code == 0, ran.output
    told = json.loads(result.read_text(encoding="utf-8"))
    assert list(told) == [measure.name for measure in MEASURES]
    assert (told["cycle"]["today"], told["cycle"]["wanted"]) == (2, 0)
    details = CliRunner().invoke(main, ["--root", str(tmp_path), "--details", "cycle"])
    assert details.output == f"{MODEL}/a.py\n{MODEL}/b.py\n"


def test_every_measure_is_defined() -> None:
    for measure in MEASURES:
        assert measure.function.__doc__, measure.name

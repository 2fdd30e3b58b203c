"""What a file tells of itself."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from torchlint.project import records
from torchlint.project.records import STAR, Definition, DefinitionKind, Import, Record, Standing, record
from torchlint.source import Source, with_line_feeds


def of(text: str) -> Record:
    return record(Source(Path("train.py"), dedent(text)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import a.b", Import("a.b", 0, None, "a", 1, Standing.ALWAYS)),
        ("import a.b as c", Import("a.b", 0, None, "c", 1, Standing.ALWAYS)),
        ("from a import b as c", Import("a", 0, "b", "c", 1, Standing.ALWAYS)),
        ("from .. import b", Import("", 2, "b", "b", 1, Standing.ALWAYS)),
        ("from .a import *", Import("a", 1, STAR, None, 1, Standing.ALWAYS)),
        ("if x:\n    import a", Import("a", 0, None, "a", 2, Standing.CONDITIONAL)),
        (
            "try:\n    import a\nexcept ImportError:\n    pass",
            Import("a", 0, None, "a", 2, Standing.CONDITIONAL),
        ),
        ("try:\n    import a\nfinally:\n    pass", Import("a", 0, None, "a", 2, Standing.ALWAYS)),
        ("with x:\n    import a", Import("a", 0, None, "a", 2, Standing.ALWAYS)),
        ("def f():\n    import a", Import("a", 0, None, "a", 2, Standing.LATER)),
        ("class C:\n    def f(self):\n        from a import b", Import("a", 0, "b", "b", 3, Standing.LATER)),
        ("if TYPE_CHECKING:\n    import a", Import("a", 0, None, "a", 2, Standing.TYPES)),
        ("if typing.TYPE_CHECKING:\n    import a", Import("a", 0, None, "a", 2, Standing.TYPES)),
        ("x = importlib.import_module('..a.b')", Import("a.b", 2, None, None, 1, Standing.LATER)),
    ],
)
def test_an_import_is_read_with_what_it_binds_and_when_it_runs(text: str, expected: Import) -> None:
    assert of(text).imports == (expected,)


def test_what_runs_instead_of_an_import_for_types_is_conditional() -> None:
    imports = of("if TYPE_CHECKING:\n    import a\nelse:\n    import b").imports
    assert [each.standing for each in imports] == [Standing.TYPES, Standing.CONDITIONAL]


def test_definitions_of_the_top_level_are_in_the_order_of_the_text() -> None:
    made = of(
        """
        def f(): ...
        class C(nn.Module, B[int]): ...
        x, (y, *z) = 1, (2, 3)
        if x:
            async def g(): ...
        try:
            w: int = 1
        except ValueError:
            w = 2
        def f(): ...
        """
    )
    assert [(each.name, each.kind) for each in made.definitions] == [
        ("f", DefinitionKind.FUNCTION),
        ("C", DefinitionKind.CLASS),
        *((name, DefinitionKind.VARIABLE) for name in "xyz"),
        ("g", DefinitionKind.FUNCTION),
        *(("w", DefinitionKind.VARIABLE),) * 2,
        ("f", DefinitionKind.FUNCTION),
    ]
    assert made.definition("C") == Definition("C", DefinitionKind.CLASS, 3)
    assert made.definition("f") == Definition("f", DefinitionKind.FUNCTION, 11)
    assert made.definition("missing") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", None),
        ("__all__ = ['a', 'b']", ("a", "b")),
        ("__all__ = ('a',)\n__all__ += ['b']", ("a", "b")),
        ("__all__ = ['a']\n__all__ += other.__all__", None),
        ("__all__ = [name for name in dir()]", None),
    ],
)
def test_all_is_known_where_it_is_spelt(text: str, expected: tuple[str, ...] | None) -> None:
    assert of(text).exported == expected


@pytest.mark.parametrize(
    ("text", "acts"),
    [
        ("def main(): ...\nmain()", True),
        ("from engine import train\ntrain()", True),
        ("import engine\nengine.train()", True),
        ("for x in range(3):\n    print(x)", True),
        ("def main(): ...\nx = main()", False),
        ("print('hello')", False),
        ("def main(): ...", False),
    ],
)
def test_a_file_acts_if_importing_it_does_more_than_define(text: str, acts: bool) -> None:
    assert of(text).acts is acts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('with mock.patch("a.b.Name"): pass', ("a.b.Name",)),
        ('@patch(\n    "a.Name", None)\ndef test(): ...', ("a.Name",)),
        ('patch(target="a.Name")', ("a.Name",)),
        ('NAME = "a.b.f"\nwith patch(NAME, None): ...', ("a.b.f",)),
        ('patch(f"{PATH}.Name")\npatch(PATH + ".Other")', ("Name", "Other")),
        ('mock.patch.object(a.b, "Name")', ("Name",)),
        ('patch.object(target=a, attribute="Name")', ("Name",)),
        ('patch.multiple("a.b", First=1, Second=DEFAULT)', ("First", "Second")),
        ('monkeypatch.setattr("a.b.Name", None)\nmocker.spy(a, "run")', ("a.b.Name", "run")),
        ('monkeypatch.setattr(a, "Name", None)', ("Name",)),
        ('setattr(self, "name", None)\npatch = "a.b"\nsetattr(a, name, None)', ()),
    ],
)
def test_what_a_file_replaces_is_known(text: str, expected: tuple[str, ...]) -> None:
    made = of(text)
    assert made.patched == expected
    assert records.restored(json.loads(json.dumps(records.stored(made)))) == made


@pytest.mark.parametrize("test", ["__name__ == '__main__'", "'__main__' == __name__"])
def test_a_guard_of_main_is_known(test: str) -> None:
    assert of(f"if {test}:\n    main()").guards_main
    assert not of("if name == '__main__':\n    main()").guards_main


@pytest.mark.parametrize("text", ["def f(:", "x = '\\ud800'\0", "(" * 10_000 + ")" * 10_000])
def test_what_is_no_program_is_not_readable(text: str) -> None:
    assert of(text) == Record(readable=False)


ODD = (
    'def f():\n    """\nimport a\ndef g(): ...\n    """\nx = 1\n',
    "def f(a,\nb):\n    import c\nclass D: ...\n",
    "def f(a,\nb):\n    return a\nimport d\n",
    "def f(\n    a,\n): return a; import b\nimport d\n",
    'x = """\n"""\\\n.join(y)\nfrom a import (\n    b,\n)\n',
    'x = [\n"""\n""", """\n""" ]\ndef f(): ...\n',
    "@a(\n    b\n)\nasync  def f(): pass\n\n# def g(): pass\nclass  C(D): x = 1; y = 2\n",
    "if x:\n    def f(): ...\n    class C: ...\nelse: import b\n",
    "def f(): return '\\\n'\ndef g(): import a\n",
    "\fdef f(): ...\n\fimport a\ndef g(): ...\n",
    "def f():\n    return 1 \\\n+ 2\nimport a\n",
    "__all__ = ['a', 'b'\n]\nclass C:\n    def f(self): return import_module('x')\n",
    "def é(): ...\nclass Ä: ...\n",
    "x = 1\r\ndef f():\r\n    '''\r\n    '''\r\nimport a",
    "def f():\n    x = 1\n# a remark\n    import a\n",
    "def f(:\n    import b\nimport a\n",
)


@pytest.mark.parametrize("text", ODD)
def test_bodies_that_are_not_parsed_change_no_record(text: str) -> None:
    _same_record(text)


def test_bodies_of_real_programs_change_no_record() -> None:
    shortened = 0
    for path in sorted(Path(records.__file__).parents[1].rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        _same_record(text)
        shortened += len(records.skeleton(text)) < len(text) // 2
    assert shortened > 50


def _same_record(text: str) -> None:
    code = with_line_feeds(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "skeleton", lambda code: code)
        whole = record(Source(Path("train.py"), code))
    assert record(Source(Path("train.py"), text)) == whole


# --- what is kept of them ----------------------------------------------------------------------------------

PROGRAM = """
from __future__ import annotations
import a.b as c
from ..d import *
try:
    from e import f as g
except ImportError:
    g = None
__all__ = ["h"]
def h(): import i
class K: ...
if __name__ == "__main__":
    h()
"""


def test_a_record_is_restored_as_it_was_stored() -> None:
    for text in (PROGRAM, "", "def f(:", "__all__ = []"):
        made = of(text)
        assert records.restored(json.loads(json.dumps(records.stored(made)))) == made


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        [[], [], None, 0, 0],
        [[], [], None, 0, 0, 2],
        [[], [], None, 0, 0, "1"],
        [[["a", -1, None, "a", 1, 0]], [], None, 0, 0, 1],
        [[["a", 0, None, "a", 1, 9]], [], None, 0, 0, 1],
        [[["a", 0, None, 5, 1, 0]], [], None, 0, 0, 1],
        [[["a", 0]], [], None, 0, 0, 1],
        [[], [["f", 7, 1]], None, 0, 0, 1],
        [[], [[None, 0, 1]], None, 0, 0, 1],
        [[], [["f", 0, True]], None, 0, 0, 1],
        [[], [], [1], 0, 0, 1],
        [[], [], 5, 0, 0, 1],
        [7, [], None, 0, 0, 1],
        "records",
    ],
)
def test_what_was_never_stored_is_not_restored(wrong: object) -> None:
    source = Source(Path("train.py"), PROGRAM)
    new: dict[str, object] = {}
    right = records.Records({}, new).of(source)
    (key,) = new
    with pytest.raises((TypeError, ValueError)):
        records.restored(wrong)
    again: dict[str, object] = {}
    assert records.Records({key: wrong}, again).of(source) == right
    assert again == new


def test_a_known_file_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(Path("train.py"), PROGRAM)
    known: dict[str, object] = {}
    made = records.Records({}, known).of(source)
    monkeypatch.setattr(records, "record", lambda _: pytest.fail("it is parsed"))
    new: dict[str, object] = {}
    assert records.Records(known, new).of(source) == made
    assert not new

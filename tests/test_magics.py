"""What only IPython understands is masked, keeps its length, and nothing else is touched."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.diagnostics import Span
from torchlint.magics import mask

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = sorted([*(ROOT / "fixtures" / "programs").glob("*.py"), *(ROOT / "torchlint").glob("*.py")])


def masked(cell: str) -> str:
    found = mask(cell)
    assert found is not None
    assert len(found.text) == len(cell)
    assert [len(line) for line in found.text.split("\n")] == [len(line) for line in cell.split("\n")]
    for span in found.spans:
        assert found.text[span.start : span.end] != cell[span.start : span.end]
    ast.parse(found.text)
    return found.text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("%matplotlib inline\nx = 1", "##################\nx = 1"),
        ("!ls *.py\n!!ls", "########\n####"),
        ("?print\nprint?\nprint??\n%time?", "######\n######\n#######\n######"),
        ("x = 1\nx.y?  ", "x = 1\n######"),
        ("?\n!\n%", "#\n#\n#"),
        ("/f 1\n,f a b\n;f a b", "####\n######\n######"),
        ("files = !ls *.py", "files = ________"),
        ("where = %pwd", "where = ____"),
        ("a: list = !ls\nb[0] = %pwd\n(c, d) = !l", "a: list = ___\nb[0] = ____\n(c, d) = __"),
        ("def f():\n    %timeit g()\n    return 1;", "def f():\n    pass       \n    return 1;"),
        ("if x:\n\t!l", "if x:\n\t0 "),
        ("!pip install \\\n  torch\nx = 1", "##############\n       \nx = 1"),
        ("x = !ls \\\n  *.py\ny = 1", "x = _____\n      \ny = 1"),
        ("%time loss = f(x)\ny", "0;    loss = f(x)\ny"),
        ("%time -n 3 +", "############"),
        ("%timeit x = 1", "#############"),
        ("\n%%time\nx = 1", "\n######\nx = 1"),
        ("# first\n%%capture out\n%%time\nx = !ls", "# first\n#############\n######\nx = ___"),
        ("%%timeit x = 1\n\n%%time\ny", "##############\n\n######\ny"),
        ("!echo it's\nx = 1", "##########\nx = 1"),
        ("\r\n!ls\r\nx = 1", "\r\n###\r\nx = 1"),
        ("await f(x);", "await f(x);"),
    ],
)
def test_magics_are_masked(cell: str, text: str) -> None:
    assert masked(cell).rstrip() == text.rstrip()


@pytest.mark.parametrize(
    "cell",
    [
        'x = """\n%matplotlib inline\n!ls\ny?\n"""',
        "x = '''\n!ls '' \\''' \n'''",
        "x = (a\n%b\n/ c\n)",
        "x = a \\\n% b",
        "x = a != b",
        "x = a % b  # what?",
        "x = '?'\ny = \"%time\"",
        "# !ls\n# %time",
        "f(x='!1')",
        "x = f'{a!r}'\ny = f\"{a:%d}\"",
        "x = rb'\\\\'\ny = 1",
        "d = {\n  'a': 1,\n  '%b': 2}",
        "",
        "\n\n# nothing\n",
        "ls = 1\nls",
        "pip",
    ],
)
def test_python_is_left_alone(cell: str) -> None:
    found = mask(cell)
    assert found is not None
    assert (found.text, found.spans) == (cell, ())


@pytest.mark.parametrize(
    "cell",
    [
        "%%bash\nls",
        "\n\n%%writefile a.py\nx = 1",
        "# to the shell\n%%sh\nls",
        "%%time\n%%bash\nls",
        "  %%html\n<p>",
        "%%python\nx = 1",
        "pip install torch",
        "cd ..\nls -l",
        ">>> x = 1\n1",
        "In [1]: x = 1",
    ],
)
def test_cells_of_something_else_are_left_out(cell: str) -> None:
    assert mask(cell) is None


def test_what_is_no_python_stays_none() -> None:
    found = mask("x = (\n%matplotlib inline")
    assert found is not None
    assert found.text == "x = (\n%matplotlib inline"


@pytest.mark.parametrize(
    ("cell", "indented"),
    [
        ("  x = 1\n  y = 2", True),
        ("\n\tx = 1", True),
        ("  # one\n  x = 1", True),
        ("  !ls", True),
        ("%%time\n\n  x = 1", True),
        ("%%time\nx = 1", False),
        ("  %%time\nx = 1", False),
        ("  # one\nx = 1", False),
        ("# one\n  x = 1", False),
        ("x = 1", False),
        ("  # one", False),
        ("   ", False),
        ("", False),
    ],
)
def test_an_indentation_that_ipython_takes_off(cell: str, indented: bool) -> None:
    found = mask(cell)
    assert found is not None
    assert found.indented is indented


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_no_part_of_a_program_is_taken_for_a_magic(path: Path) -> None:
    text = path.read_text(encoding="utf-8") + "\n"
    found = mask(f"{text}!ls")
    assert found is not None
    assert found.spans == (Span(len(text), len(text) + 3),)
    assert found.text == f"{text}###"


PARTS = st.sampled_from(
    [
        *(
            "%",
            "!",
            "?",
            "=",
            "'",
            '"',
            '"""',
            "\\",
            "(",
            ")",
            "#",
            ";",
            "x",
            " ",
            "    ",
            "\t",
            "\n",
            "\r\n",
        ),
        *("\r", "%%time\n", "%time x", "x = !ls", "f'{x!r}'", "if x:\n", "é😀", "\x0c", "pip install"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=14).map("".join))
def test_a_masked_cell_has_every_character_where_it_was(cell: str) -> None:
    found = mask(cell)
    if found is None:
        return
    assert len(found.text) == len(cell)
    at = 0
    for span in found.spans:
        assert at <= span.start < span.end
        assert found.text[at : span.start] == cell[at : span.start]
        inside, original = found.text[span.start : span.end], cell[span.start : span.end]
        assert [char if char in "\r\n" else "" for char in inside] == [
            char if char in "\r\n" else "" for char in original
        ]
        at = span.end
    assert found.text[at:] == cell[at:]

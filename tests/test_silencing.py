"""Comments that silence what was found: on the right line, once, and without a change of the program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
import pytest

from torchlint import reading
from torchlint.options import LintSettings
from torchlint.registry import rules
from torchlint.rule import WARNING, Finding, rule
from torchlint.scope import Scope
from torchlint.semantics.module import Module
from torchlint.silencing import Silenced, silence
from torchlint.testing import Case

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@rule("ZZ101", "bad-called", severity=WARNING, fix="none", on=cst.Call, mentions=("bad",))
def bad_called(call: cst.Call, module: Module) -> Iterator[Finding]:
    """Finds `bad()`."""
    if isinstance(call.func, cst.Name) and call.func.value == "bad":
        yield Finding(call, "`bad` is called")


@rule("ZZ102", "worse-called", severity=WARNING, fix="none", on=cst.Call, mentions=("worse",))
def worse_called(call: cst.Call, module: Module) -> Iterator[Finding]:
    """Finds `worse()`."""
    if isinstance(call.func, cst.Name) and call.func.value == "worse":
        yield Finding(call, "`worse` is called")


@pytest.fixture
def quiet(use_rules: Callable[..., LintSettings]) -> Callable[..., Silenced]:
    """Silences a text."""
    settings = use_rules(bad_called, worse_called)

    def run(text: str, scope: Scope | None = None, reason: str = "") -> Silenced:
        source = reading.from_bytes(text.encode(), Path("/project/a.py"))
        return silence(source, settings, scope or Scope(), reason)

    return run


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bad()\n", "bad()  # noqa: ZZ101\n"),
        ("bad()", "bad()  # noqa: ZZ101"),
        ("bad()   \r\nx\r\n", "bad()  # noqa: ZZ101\r\nx\r\n"),
        ("bad(); worse(); bad()\n", "bad(); worse(); bad()  # noqa: ZZ101, ZZ102\n"),
        ("bad()  # why\n", "bad()  # why  # noqa: ZZ101\n"),
        ("bad()  # noqa: E501 long\n", "bad()  # noqa: E501, ZZ101 long\n"),
        ("bad(); worse()  # NOQA:ZZ102\n", "bad(); worse()  # NOQA:ZZ102, ZZ101\n"),
        ("bad()  # noqa: because\n", "bad()  # noqa: because  # noqa: ZZ101\n"),
        ("bad(  # here\n    1,\n)\n", "bad(  # here\n    1,\n)  # noqa: ZZ101\n"),
        ('x = """\n""", bad(), """\n"""\n', 'x = """\n""", bad(), """\n"""  # noqa: ZZ101\n'),
        ("x = 1 + \\\n    bad()\n", "x = 1 + \\\n    bad()  # noqa: ZZ101\n"),
        ("if bad():\n    worse()\n", "if bad():  # noqa: ZZ101\n    worse()  # noqa: ZZ102\n"),
        ("@bad()\ndef f(): pass\n", "@bad()  # noqa: ZZ101\ndef f(): pass\n"),
        ("# été\r\x0cbad()\rx\r", "# été\r\x0cbad()  # noqa: ZZ101\rx\r"),
        ('s = "# noqa: ZZ101"; bad()\n', 's = "# noqa: ZZ101"; bad()  # noqa: ZZ101\n'),
    ],
)
def test_where_the_comment_goes(quiet: Callable[..., Silenced], text: str, expected: str) -> None:
    done = quiet(text)

    assert done.text == expected
    assert done.diagnostics == []
    assert quiet(done.text).text == expected
    assert quiet(done.text).silenced == 0


def test_a_reason_follows_new_comments_only(quiet: Callable[..., Silenced]) -> None:
    done = quiet("bad()\nbad(); worse()  # noqa: ZZ101 old\n", reason="see #12")

    assert done.text.splitlines()[0] == "bad()  # noqa: ZZ101 see #12"
    assert done.text.splitlines()[1] == "bad(); worse()  # noqa: ZZ101, ZZ102 old"


def test_what_is_out_of_scope_stays_as_it_is(quiet: Callable[..., Silenced]) -> None:
    done = quiet("bad()\nbad()\nbad()\n", Scope(((2, 2),)))

    assert done.text == "bad()\nbad()  # noqa: ZZ101\nbad()\n"
    assert (done.silenced, done.diagnostics) == (1, [])


def test_what_is_no_program_stays_as_it_is(quiet: Callable[..., Silenced]) -> None:
    done = quiet("bad(\n")

    assert (done.text, done.silenced) == ("bad(\n", 0)
    assert [item.code for item in done.diagnostics] == ["TL001"]


def test_where_a_line_ends_in_a_string_the_comment_goes_above(
    quiet: Callable[..., Silenced], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchlint import checker

    # As if the rule's node hid from the checker where its statement ends.
    monkeypatch.setattr(checker, "logical_line_end", lambda source, row: row)
    done = quiet('if 1:\n    x = bad(), """\n"""\n    worse() + \\\n  2\n')

    assert done.text == (
        'if 1:\n    # torchlint: ignore[ZZ101]\n    x = bad(), """\n"""\n'
        "    # torchlint: ignore[ZZ102]\n    worse() + \\\n  2\n"
    )
    assert done.diagnostics == []


@pytest.mark.parametrize("name", ["fine_tuning", "windows", "one_line", "escaped_strings"])
def test_comments_in_the_cells_of_notebooks(name: str) -> None:
    path = FIXTURES / "notebooks" / f"{name}.ipynb"
    settings = LintSettings(rules=tuple(rules()))
    done = silence(reading.read(path), settings, Scope())
    again = silence(reading.from_bytes(done.source.to_bytes(), path), settings, Scope())

    assert done.silenced and not done.diagnostics
    assert again.source.to_bytes() == done.source.to_bytes()
    assert done.source.to_bytes().count(b"# noqa: TL") > path.read_bytes().count(b"# noqa: TL")


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/bad.py")), ids=lambda path: path.parent.name)
def test_after_it_nothing_is_found_and_the_program_is_the_same(path: Path) -> None:
    case = Case(path)
    done = silence(case.source, case.settings, Scope(), "known")

    assert done.silenced and not done.diagnostics
    assert ast.dump(ast.parse(done.text)) == ast.dump(ast.parse(case.source.text))

"""Suppression comments: where they are, what they name, how far they reach, and how they are removed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from torchlint import registry
from torchlint.checker import check
from torchlint.diagnostics import Diagnostic, Position, Severity, Span
from torchlint.fixer import apply
from torchlint.options import LintSettings
from torchlint.source import Source
from torchlint.suppressions import Suppressions, logical_line_end, may_matter, read_lines

PATH = Path("a.py")


MARKERS = (("gpu-sync-ok", ("TL202", "TL203")),)


def suppressions(text: str) -> Suppressions:
    return Suppressions(Source(PATH, text), registry.catalogue(), MARKERS)


def finding(row: int, code: str = "TL202", noqa_row: int = 0) -> Diagnostic:
    place = Position(row, 1)
    return Diagnostic(
        *(code, "name", "message", Severity.WARNING, PATH, Span(0, 1), place, place), noqa_row=noqa_row
    )


def silenced(text: str, code: str = "TL202") -> list[int]:
    """The rows in which a finding of a one-line statement is suppressed."""
    read = suppressions(text)
    rows = range(1, len(Source(PATH, text).line_starts) + 1)
    return [row for row in rows if not read.apply([finding(row, code)])]


def named(text: str) -> list[str]:
    """What the directives of a text name: codes, ``*`` for everything, ``?text`` for what is no rule."""
    return [
        entry.code or f"?{entry.text}"
        for directive in suppressions(text).directives
        for entry in directive.entries
    ] + ["*" for directive in suppressions(text).directives if directive.blanket]


# --- reading -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# noqa", ["*"]),
        ("#noqa", ["*"]),
        ("# NoQA", ["*"]),
        ("# noqa because it is fine", ["*"]),
        ("# type: ignore # noqa", ["*"]),
        ("# noqa: TL202", ["TL202"]),
        ("# noqa:TL202", ["TL202"]),
        ("#NOQA : tl202", ["TL202"]),
        ("# noqa: TL202,TL201", ["TL202", "TL201"]),
        ("# noqa: TL202 , TL201", ["TL202", "TL201"]),
        ("# noqa: TL202 TL201", ["TL202", "TL201"]),
        ("# noqa: E501, TL202, F401", ["?E501", "TL202", "?F401"]),
        ("# noqa: item-in-hot-loop", ["TL202"]),
        ("# noqa: Item-In-Hot-Loop, TL201", ["TL202", "TL201"]),
        ("# noqa: TL202 the loop is short", ["TL202"]),
        ("# noqa: TL202 - the loop is short, TL201", ["TL202"]),
        ("# noqa: TL202 # noqa: TL201", ["TL202", "TL201"]),
        ("# noqa: the loop is short", []),
        ("# noqa:", []),
        ("# noqa-file", []),
        ("# noqaTL202", []),
        ("# say noqa: TL202", []),
        ("# flake8: noqa: TL202", []),
        ("# torchlint: ignore[TL202]", ["TL202"]),
        ("#torchlint:ignore[TL202]", ["TL202"]),
        ("# TORCHLINT : Ignore [ tl202 ]", ["TL202"]),
        ("# torchlint: ignore[TL202, item-in-hot-loop TL201] why", ["TL202", "TL202", "TL201"]),
        ("# torchlint: ignore[TL999]", ["?TL999"]),
        ("# torchlint: ignore[TL202] # torchlint: ignore[TL201]", ["TL202", "TL201"]),
        ("# torchlint: ignore[TL202]  # noqa: TL201", ["TL201", "TL202"]),
        ("# torchlint: file-ignore[TL202]", ["TL202"]),
        ("# torchlint: disable[TL202]", ["TL202"]),
        ("# torchlint: ignore", []),
        ("# torchlint: ignore[]", []),
        ("# torchlint: ignore[TL202", []),
        ("# torchlint-test: ignore[TL202]", []),
        ("# see torchlint: ignore[TL202]", []),
    ],
)
def test_comments(comment: str, codes: list[str]) -> None:
    assert named(f"x = 1  {comment}\n") == codes


@pytest.mark.parametrize(
    "text",
    [
        "x = '# noqa: TL202'\n",
        'x = """\n# noqa: TL202\n# torchlint: file-ignore[TL202]\n"""\n',
        "x = f'# noqa: TL202 {y}'\n",
        "x = r'\\' '# noqa: TL202'\n",
        "x = b'# torchlint: ignore[TL202]'\n",
        "noqa = TL202\n",
    ],
)
def test_strings_are_no_comments(text: str) -> None:
    assert named(text) == []


def test_comments_behind_odd_strings() -> None:
    text = 'x = """a # noqa: TL201\n"""  # noqa: TL202\ny = "\\"# noqa: TL201"  # noqa: TL203\n'
    assert named(text) == ["TL202", "TL203"]


def test_what_no_tokenizer_can_read_is_read_up_to_there() -> None:
    assert named("x = 1  # noqa: TL202\ny = (\n") == ["TL202"]
    assert named("x = 1  # noqa: TL202\n  y = '''\n")[:1] == ["TL202"]


def test_strings_are_no_comments_in_syntax_that_is_new_either() -> None:
    text = """x = f"{d["# noqa: TL201"]}"  # noqa: TL202\ny = f'{f'{1}# noqa: TL201'}'  # ü noqa: TL203\n"""
    text += "z = 1  # torchlint: ignore[TL204]\n"
    assert named(text) == ["TL202", "TL204"]
    assert silenced(text, "TL202") == [1]
    assert silenced(text, "TL204") == [3]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_places_of_comments(newline: str) -> None:
    text = newline.join(["x = (1,  # a", "     # b", "  )", "\x0c# c", "if x:", "\ty = 1  # ü d", "# e"])
    source = Source(PATH, text)
    comments = read_lines(source).comments
    assert [(item.text, item.row, item.own_line) for item in comments] == [
        ("# a", 1, False),
        ("# b", 2, True),
        ("# c", 4, True),
        ("# ü d", 6, False),
        ("# e", 7, True),
    ]
    assert all(text[item.span.start : item.span.end] == item.text for item in comments)


# --- reach -------------------------------------------------------------------------------------------------


def test_trailing_comments_reach_their_line() -> None:
    assert silenced("x\nx  # noqa: TL202\nx\n") == [2]
    assert silenced("x\nx  # torchlint: ignore[TL202]\nx\n") == [2]
    assert silenced("x\nx  # noqa\nx\n") == [2]
    assert silenced("x  # noqa: TL201\n") == []


def test_a_noqa_on_its_own_line_reaches_nothing_else() -> None:
    assert silenced("x\n# noqa: TL202\nx\n") == [2]


def test_an_ignore_on_its_own_line_reaches_the_statement_below() -> None:
    assert silenced("x\n# torchlint: ignore[TL202]\n\n# why\nfoo(\n  x,\n)\nx\n") == [5, 6, 7]
    assert silenced("# torchlint: ignore[TL202]\nfor a in (\n  b\n):\n    x\n") == [2, 3, 4]
    assert silenced("if a:\n    x\n    # torchlint: ignore[TL202]\n    x\nx\n") == [4]
    assert silenced("# torchlint: ignore[TL202]\n# torchlint: ignore[TL201]\nx\nx\n") == [3]


def test_an_ignore_on_its_own_line_within_a_statement_reaches_the_next_line_of_it() -> None:
    assert silenced("foo(\n  a,\n  # torchlint: ignore[TL202]\n  # why\n  x,\n  x,\n)\n") == [5]


def test_an_ignore_at_the_end_reaches_nothing() -> None:
    assert silenced("x\n# torchlint: ignore[TL202]\n") == [2]


def test_blocks() -> None:
    text = "x\n# torchlint: disable[TL202]\nx\nx\n# torchlint: enable[TL202]\nx\n"
    assert silenced(text) == [2, 3, 4]
    assert silenced("x\n# torchlint: disable[TL202]\nx\nx") == [2, 3, 4]
    assert silenced("# torchlint: enable[TL202]\nx\n# torchlint: disable[TL202]\nx\n") == [3, 4, 5]
    twice = text + text
    assert silenced(twice) == [2, 3, 4, 8, 9, 10]


def test_each_code_of_a_block_ends_on_its_own() -> None:
    text = (
        "# torchlint: disable[TL201, TL202]\nx\n# torchlint: enable[TL201]\nx\n# torchlint: enable[TL202]\nx"
    )
    assert silenced(text, "TL201") == [1, 2]
    assert silenced(text, "TL202") == [1, 2, 3, 4]


def test_a_file_ignore_reaches_everything() -> None:
    assert silenced("x\nx\n# torchlint: file-ignore[TL202]\nx") == [1, 2, 3, 4]


def test_the_end_of_a_statement_counts_for_all_of_it() -> None:
    text = "foo(\n  x,\n  y,\n)  # noqa: TL202\n"
    assert suppressions(text).apply([finding(2, noqa_row=4)]) == []
    assert len(suppressions(text).apply([finding(2, noqa_row=3)])) == 1


def test_crashes_and_syntax_errors_are_never_suppressed() -> None:
    text = "x  # noqa\n# torchlint: file-ignore[TL001]\n"
    assert len(suppressions(text).apply([finding(1, "TL000"), finding(1, "TL001")])) == 2


@pytest.mark.parametrize(
    ("text", "row", "end"),
    [
        ("x = 1\ny = 2\n", 2, 2),
        ("x = (1,\n  2,\n)\n", 1, 3),
        ("if a:\n    x = '''\n\n'''; y = 1\n", 2, 4),
        ("x = 1 + \\\r\n  2\r\ny\r\n", 1, 2),
        ("for x in [\n  1\n]:\n    y\n", 1, 3),
        ("elif x:\n    y\n", 1, 1),
        ("x = (1,\n", 1, 1),
        ("x = (1,\r2)\ry", 1, 2),
        ("x", 1, 1),
    ],
)
def test_where_a_logical_line_ends(text: str, row: int, end: int) -> None:
    assert logical_line_end(Source(PATH, text), row) == end


# --- what matters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "matters"),
    [
        ("x\nx\n", False),
        ("x  # noqa: E501, F401\nx  # noqa: BLE001 - whatever comes\n", False),
        ("import a  # noqa\nx\n", False),
        ("x\nx  # noqa\n", True),
        ("x  # noqa: E501, tl202\n", True),
        ("x  # noqa: item-in-hot-loop\n", True),
        ("x  # noqa: item-in-hot-loops\n", True),
        ("x  # torchlint: ignore[TL202]\n", True),
        ("x  # torchlint: ignore\n", True),
        ("# torchlint finds such lines\nx\n", False),
    ],
)
def test_comments_that_matter(text: str, matters: bool) -> None:
    assert may_matter(Source(PATH, text), registry.catalogue(), [finding(2)]) is matters


def test_comments_that_do_not_matter_change_nothing() -> None:
    draw = Random(0)
    parts = (
        *("x = ", "'", '"', "#", "# ", "noqa", "noqa: ", "NoQA :", "E501", "TL202", ", ", "]", "[", "\r\n"),
        *("torchlint: ", "ignore[TL202]", "ignore", "file-ignore[", "item-in-hot-loop", "item-in-loop", "\n"),
    )
    seen = set()
    for _ in range(3000):
        text = "".join(draw.choices(parts, k=draw.randrange(2, 14)))
        found = [finding(draw.randrange(1, 4), noqa_row=draw.randrange(1, 4))] * draw.randrange(2)
        matters = may_matter(Source(PATH, text), registry.catalogue(), found)
        seen.add(matters)
        if not matters:
            read = suppressions(text)
            assert read.apply(found) == found, text
            assert not read.mistakes and not list(read.unused(JUDGED)), text
    assert seen == {True, False}


# --- what is unused, and its removal -----------------------------------------------------------------------

JUDGED = frozenset({"TL201", "TL202"})


def without_unused(text: str, *used: Diagnostic) -> str:
    read = suppressions(text)
    read.apply(used)
    return apply(text, [edit for _, _, fix in read.unused(JUDGED) for edit in fix.edits])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x  # noqa: TL202\ny\n", "x\ny\n"),
        ("x\t #noqa:tl202", "x"),
        ("x  # noqa: TL202, TL201\n", "x\n"),
        ("x  # noqa: TL202, TL301\n", "x  # noqa: TL301\n"),
        ("x  # noqa: E501,TL202 F401 long\n", "x  # noqa: E501, F401 long\n"),
        ("x  # noqa: TL202 the reason\n", "x  # the reason\n"),
        ("x  # noqa: TL202 -- the reason\n", "x  # the reason\n"),
        ("x  # type: ignore  # noqa: TL202\n", "x  # type: ignore\n"),
        ("x  # noqa: TL202  # type: ignore\n", "x  # type: ignore\n"),
        ("x  # a # noqa: TL202 # b\n", "x  # a  # b\n"),
        ("x  # torchlint: ignore[TL202]\r\ny\r\n", "x\r\ny\r\n"),
        ("x  # torchlint: ignore[TL301, TL202]\n", "x  # torchlint: ignore[TL301]\n"),
        ("x\n    # torchlint: ignore[TL202]\n\ny\n", "x\n\ny\n"),
        ("x\n\n# torchlint: ignore[TL202]\n\ny\n", "x\n\ny\n"),
        ("# a\n\n\n# noqa: TL202\n\n# b\n", "# a\n\n\n# b\n"),
        ("# noqa: TL202\r\n\r\n# a\r\n", "# a\r\n"),
        ("# noqa: TL202\n\n# noqa: TL201\n\n", "\n"),
        ("x\n# torchlint: file-ignore[TL202]", "x\n"),
        ("# torchlint: enable[TL202]\r\nx\r\n", "x\r\n"),
        ("(\n  x,  # noqa: TL202\n)\n", "(\n  x,\n)\n"),
        ("x  # noqa\n", "x  # noqa\n"),
        ("x  # noqa: F401, E501\n", "x  # noqa: F401, E501\n"),
        ("x  # noqa: TL301\n", "x  # noqa: TL301\n"),
        ("x  # noqa: TL999\n", "x  # noqa: TL999\n"),
        ("x  # noqa: TL002\n", "x  # noqa: TL002\n"),
        ("x  # noqa: TL202, TL202\n", "x\n"),
    ],
)
def test_removal(before: str, after: str) -> None:
    assert without_unused(before) == after


def test_what_is_used_stays() -> None:
    used = finding(1)
    assert without_unused("x  # noqa: TL202, TL201\n", used) == "x  # noqa: TL202\n"
    assert without_unused("x  # noqa: TL202, item-in-hot-loop\n", used) == "x  # noqa: TL202\n"
    both = "x  # noqa: TL202\n# torchlint: file-ignore[TL202]\n"
    assert without_unused(both, used) == both


def test_a_block_without_use_goes_in_two_steps() -> None:
    text = "# torchlint: disable[TL202]\nx\n# torchlint: enable[TL202]\n"
    once = without_unused(text)
    assert once == "x\n# torchlint: enable[TL202]\n"
    assert without_unused(once) == "x\n"


# --- markers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x = 1  # gpu-sync-ok: read by the scheduler\ny = 1\n", [1]),
        ("x = 1  # GPU-sync-ok\ny = 1\n", [1]),
        ("# gpu-sync-ok: read by the scheduler\nx = 1\ny = 1\n", [2]),
        ("x = 1  # type: ignore  # gpu-sync-ok: why\n", [1]),
        ("x = 1  # gpu-sync-okay\n", []),
        ("x = 1  # see gpu-sync-ok\n", []),
        ("x = '# gpu-sync-ok: no comment'\n", []),
    ],
)
def test_a_marker_suppresses_its_rules(text: str, rows: list[int]) -> None:
    assert silenced(text) == silenced(text, "TL203") == rows
    assert silenced(text, "TL204") == []
    found = [finding(row) for row in (1, 2)]
    assert may_matter(Source(PATH, text), registry.catalogue(), found, MARKERS) or not rows


def test_an_unused_marker_is_removed_and_its_reason_stays() -> None:
    text = "x = 1  # gpu-sync-ok: why\ny = 1  # gpu-sync-ok\nz = 1  # gpu-sync-ok\n"
    read = suppressions(text)
    read.apply([finding(3, "TL203")])
    reported = list(read.unused({"TL202", "TL203"}))
    assert [message for message, _, _ in reported] == ["unused suppression `gpu-sync-ok`"] * 2
    edits = [edit for _, _, fix in reported for edit in fix.edits]
    assert apply(text, edits) == "x = 1  # why\ny = 1\nz = 1  # gpu-sync-ok\n"
    assert list(read.unused({"TL204"})) == []


# --- reasons -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "given"),
    [
        ("# noqa: TL202", False),
        ("# noqa: TL202 the scheduler needs it", True),
        ("# noqa: TL202, TL203 - the scheduler needs it", True),
        ("# noqa: TL202  # the scheduler needs it", True),
        ("# noqa: TL202  # type: ignore[attr-defined]", False),
        ("# noqa: TL202  # pragma: no cover", False),
        ("# noqa: TL202 --", False),
        ("# torchlint: ignore[TL202]", False),
        ("# torchlint: ignore[TL202] type inference needs it", True),
        ("# torchlint: disable[TL202]", False),
        ("# torchlint: file-ignore[TL202]: generated", True),
        ("# gpu-sync-ok", False),
        ("# gpu-sync-ok:", False),
        ("# gpu-sync-ok: the scheduler needs it", True),
        ("# noqa", False),
        ("# noqa: E501", True),
    ],
)
def test_a_reason_stands_behind_the_suppression(comment: str, given: bool) -> None:
    read = suppressions(f"x = 1  {comment}\n")
    read.apply([finding(1)])
    assert [mistake.row for mistake in read.without_reason()] == ([] if given else [1])


def test_a_bare_noqa_needs_a_reason_only_if_it_suppresses_something() -> None:
    read = suppressions("x = 1  # noqa\ny = 1  # noqa\n# torchlint: enable[TL202]\n")
    read.apply([finding(2)])
    assert [mistake.row for mistake in read.without_reason()] == [2]


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("# noqa: TL202", ["TL003"]),
        ("# noqa", ["TL003"]),
        ("# gpu-sync-ok", ["TL003"]),
        ("# gpu-sync-ok: why", []),
        ("# noqa: TL202, TL003 why", []),
        ("", ["TL202"]),
    ],
)
def test_a_suppression_without_a_reason_is_reported(comment: str, codes: list[str]) -> None:
    text = f"import torch\n\n\ndef train(model, loader, total):\n    for x in loader:\n        \
loss = model(x.cuda()).mean()\n        loss.backward()\n        total += loss.item()  {comment}\n"
    settings = LintSettings(rules=("TL002", "TL003", "TL202"), markers=MARKERS, reasons=True)
    assert [found.code for found in check(Source(PATH, text), settings)] == codes


# --- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# noqa: TL4O1", "unknown rule `TL4O1`; did you mean `TL401`?"),
        (
            "# torchlint: ignore[item-in-hot-lop]",
            "unknown rule `item-in-hot-lop`; did you mean `item-in-hot-loop`?",
        ),
        ("# torchlint: ignore[zzz]", "unknown rule `zzz`"),
        ("# torchlint: ignore[F401]", "unknown rule `F401`"),
        ("# noqa: TL219", "unknown rule `TL219`; the rules of `TL2` are `TL201` to `TL216`"),
        ("# torchlint: ignore[TL20]", "unknown rule `TL20`"),
        ("# torchlint: ingore[TL202]", "unknown directive `ingore`; did you mean `ignore`?"),
        (
            "# torchlint: xyz",
            "unknown directive `xyz`; use one of `ignore`, `disable`, `enable`, `file-ignore`",
        ),
        ("# torchlint: disable", "`disable` requires rules in brackets, as in `disable[TL202]`"),
        ("# torchlint: ignore[ , ]", "`ignore[]` lists no rules"),
    ],
)
def test_mistakes(comment: str, message: str) -> None:
    text = f"x = 1  {comment}\n"
    (mistake,) = suppressions(text).mistakes
    assert mistake.message.startswith(message)
    assert mistake.remedy.startswith(("Use ", "List a rule "))
    assert mistake.row == 1
    assert 7 <= mistake.span.start < mistake.span.end < len(text)


@pytest.mark.parametrize(
    ("comment", "meant"),
    [
        ("noqa TL202", ["TL202"]),
        ("noqa item-in-hot-loop", ["item-in-hot-loop"]),
        ("noqa: TL202", []),
        ("noqa", []),
        ("noqa because TL202 is wrong", []),
        ("noqa E501", []),
    ],
)
def test_a_noqa_without_a_colon_is_reported_where_it_suppresses_something(
    comment: str, meant: list[str]
) -> None:
    read = suppressions(f"x\nx  # {comment}\nx  # {comment}\n")
    read.apply([finding(2)])
    assert [(mistake.row, mistake.remedy) for mistake in read.without_colon()] == [
        (2, f"Write `# noqa: {rule}`") for rule in meant
    ]


def test_what_is_said_of_a_noqa_without_a_colon_is_not_suppressed_by_it() -> None:
    text = "import torch\nx = torch.zeros(3).cuda()  # noqa TL201{}\n"
    settings = LintSettings(rules=("TL201", "TL003"))
    for more, codes in (("", ["TL003"]), ("  # noqa: TL003", [])):
        found = check(Source(PATH, text.format(more)), settings)
        assert [diagnostic.code for diagnostic in found] == codes

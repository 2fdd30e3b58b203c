"""The full format, block by block, as a person sees it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from torchlint.diagnostics import Applicability, Frequency, Impact, Position, Severity
from torchlint.impact import Gain
from torchlint.render import full
from torchlint.render.report import reason

PROGRAM = """\
import torch

def train(loader, model):
    total = 0.0
    for batch in loader:
        loss = model(batch)
        total += loss.item()

    return total
"""


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known to be gained by any rule."""
    monkeypatch.setattr(full, "gain", lambda _: Gain())


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_a_finding_without_a_fix(desk: Any) -> None:
    found = desk.finding(PROGRAM, "loss.item()")
    assert full.render(desk.report(found)) == (
        "TL202 `.item()` waits for the device\n"
        " --> train.py:7:18\n"
        "  |\n"
        "5 |     for batch in loader:\n"
        "6 |         loss = model(batch)\n"
        "7 |         total += loss.item()\n"
        "  |                  ^^^^^^^^^^^\n"
        "8 |\n"
        "9 |     return total\n"
        "  |\n"
        "impact: medium\n\n"
    )


@pytest.mark.parametrize(
    ("impact", "frequency", "slight", "gain", "told"),
    [
        (
            Impact.HIGH,
            Frequency.STEP,
            None,
            Gain(1.994, 1.9),
            "high, every step (up to 1.99 times as fast in the rule's benchmark)",
        ),
        (
            Impact.LOW,
            Frequency.UNKNOWN,
            "how often it runs is not known",
            Gain(memory=0.5),
            "low, how often it runs is not known (up to 50 % less memory in the rule's benchmark)",
        ),
        (Impact.LOW, Frequency.ONCE, "runs once", Gain(), "low, runs once"),
        (Impact.LOW, Frequency.STEP, "the\x1bdefault", Gain(), "low, the␛default"),
        (Impact.MEDIUM, None, None, Gain(), "medium"),
    ],
)
def test_the_impact_is_said_with_its_reasons(
    desk: Any,
    monkeypatch: pytest.MonkeyPatch,
    impact: Impact,
    frequency: Frequency,
    slight: str | None,
    gain: Gain,
    told: str,
) -> None:
    monkeypatch.setattr(full, "gain", lambda _: gain)
    found = replace(desk.finding(PROGRAM, "loss.item()"), impact=impact, frequency=frequency, slight=slight)
    assert full.render(desk.report(found)).endswith(f"\nimpact: {told}\n\n")


def test_a_finding_with_a_remedy(desk: Any) -> None:
    related = ((Position(5, 5), "the loop"),)
    found = desk.finding(PROGRAM, "loss.item()", related=related, remedy="Read `total` after\x1bthe loop")
    assert full.render(desk.report(found)).endswith(
        "9 |     return total\n  |\nimpact: medium\nnote: train.py:5:5: the loop\n"
        "help: Read `total` after␛the loop\n\n"
    )


def test_a_finding_with_a_safe_fix(desk: Any) -> None:
    found = desk.finding(PROGRAM, "loss.item()", fix=desk.fix(PROGRAM, ("loss.item()", "loss.detach()")))
    assert full.render(desk.report(found)).endswith(
        "help: Use the other thing\n"
        "  |\n"
        "6 |         loss = model(batch)\n"
        "  -         total += loss.item()\n"
        "7 +         total += loss.detach()\n"
        "8 |\n"
        "  |\n\n"
    )
    assert full.render(desk.report(found)).startswith("TL202 [*] ")


@pytest.mark.parametrize(
    ("grade", "asked", "marked", "note"),
    [
        (Applicability.SAFE, False, True, ""),
        (Applicability.UNSAFE, False, False, "unsafe: results change\n"),
        (Applicability.UNSAFE, True, True, "unsafe: results change\n"),
        (
            Applicability.DISPLAY,
            True,
            False,
            "note: This change is a suggestion and is never applied\n",
        ),
    ],
)
def test_the_mark_and_the_note_tell_what_fix_will_do(
    desk: Any, grade: Applicability, asked: bool, marked: bool, note: str
) -> None:
    found = desk.finding(PROGRAM, "loss.item()", fix=desk.fix(PROGRAM, ("item", "detach"), grade=grade))
    told = full.render(desk.report(found, unsafe_fixes=asked))
    assert told.startswith("TL202 [*]") is marked
    assert told.endswith(f"  |\n{note}\n")


def test_an_unsafe_fix_that_does_not_say_why(desk: Any) -> None:
    fix = replace(desk.fix(PROGRAM, ("item", "detach"), grade=Applicability.UNSAFE), risk=None)
    told = full.render(desk.report(desk.finding(PROGRAM, "loss.item()", fix=fix)))
    assert told.endswith("  |\nunsafe: this fix may change runtime behavior\n\n")


def test_a_fix_in_two_places_shows_both(desk: Any) -> None:
    text = PROGRAM.replace("import torch\n", "import torch\n" + "# filler\n" * 10)
    fix = desk.fix(text, ("import torch\n", "import os\nimport torch\n"), ("loss.item()", "loss"))
    assert full.render(desk.report(desk.finding(text, "loss.item()", fix=fix))).endswith(
        "help: Use the other thing\n"
        "   |\n"
        " 1 + import os\n"
        " 2 | import torch\n"
        "...\n"
        "17 |         loss = model(batch)\n"
        "   -         total += loss.item()\n"
        "18 +         total += loss\n"
        "19 |\n"
        "   |\n\n"
    )


def test_a_removed_statement_and_an_inserted_line(desk: Any) -> None:
    fix = desk.fix(
        PROGRAM, ("        total += loss.item()\n", ""), ("    return", "    del loss\n    return")
    )
    assert full.render(desk.report(desk.finding(PROGRAM, "loss.item()", fix=fix))).endswith(
        "  |\n"
        "6 |         loss = model(batch)\n"
        "  -         total += loss.item()\n"
        "7 |\n"
        "8 +     del loss\n"
        "9 |     return total\n"
        "  |\n\n"
    )


def test_the_gutter_makes_room_for_the_longest_number(desk: Any) -> None:
    text = "x = 1\n" * 98 + "y = bad\n" + "x = 1\n" * 3
    told = full.render(desk.report(desk.finding(text, "bad")))
    assert told.splitlines()[1:7] == [
        "   --> train.py:99:5",
        "    |",
        " 97 | x = 1",
        " 98 | x = 1",
        " 99 | y = bad",
        "    |     ^^^",
    ]
    assert "100 | x = 1\n101 | x = 1\n    |\n" in told


def test_a_place_over_several_lines_is_bracketed(desk: Any) -> None:
    text = "loader = DataLoader(\n    data,\n    shuffle=True,\n)\nx = 1\n"
    assert full.render(desk.report(desk.finding(text, text[9:-7]))) == (
        "TL202 `.item()` waits for the device\n"
        " --> train.py:1:10\n"
        "  |\n"
        "1 |   loader = DataLoader(\n"
        "  |  __________^\n"
        "2 | |     data,\n"
        "3 | |     shuffle=True,\n"
        "4 | | )\n"
        "  | |_^\n"
        "5 |   x = 1\n"
        "  |\n"
        "impact: medium\n\n"
    )


def test_a_place_that_begins_its_line_is_bracketed_in_the_margin(desk: Any) -> None:
    text = "if x:\n    for b in l:\n        f(b)\n"
    assert full.render(desk.report(desk.finding(text, text[10:-1]))).splitlines()[2:8] == [
        "  |",
        "1 |   if x:",
        "2 | /     for b in l:",
        "3 | |         f(b)",
        "  | |____________^",
        "  |",
    ]


def test_a_long_place_is_shortened_in_the_middle(desk: Any) -> None:
    text = "f(\n" + "".join(f"    a{n},\n" for n in range(40)) + ")\n"
    shown = full.render(desk.report(desk.finding(text, text[:-1])))
    assert " 1 | / f(\n" in shown
    assert "\n...\n" in shown or "... |\n" in shown
    assert "42 | | )\n   | |_^\n" in shown
    assert len(shown.splitlines()) < 20


@pytest.mark.parametrize(
    ("line", "place", "marks"),
    [
        ("\tx = bad", "bad", "        ^^^"),
        ("s = '日本' + bad", "bad", "             ^^^"),
        ("s = 'é' + bad", "bad", "          ^^^"),
        ("x = '日本'", "日本", "     ^^^^"),
    ],
)
def test_the_underline_stands_below_the_place_on_the_screen(
    desk: Any, line: str, place: str, marks: str
) -> None:
    told = full.render(desk.report(desk.finding(line + "\n", place)))
    assert told.splitlines()[4] == "  | " + marks


def test_an_empty_place_is_one_mark(desk: Any) -> None:
    told = full.render(desk.report(desk.finding("x = 1\n", "")))
    assert told.splitlines()[3:5] == ["1 | x = 1", "  | ^"]


def test_control_characters_do_not_reach_the_terminal(desk: Any) -> None:
    text = "x = '\x1b[31m' + bad\x0c\n"
    told = full.render(desk.report(desk.finding(text, "bad", message="a \x1b[2J message")))
    assert "\x1b" not in told
    assert "1 | x = '␛[31m' + bad␌\n" in told
    assert "a ␛[2J message" in told


def test_markup_in_the_source_is_left_alone(desk: Any) -> None:
    assert "1 | x[bold] = y[0]\n" in full.render(desk.report(desk.finding("x[bold] = y[0]\n", "y[0]")))


def test_a_long_line_is_cut_around_the_place(desk: Any) -> None:
    text = f"x = [{'1, ' * 3000}bad, {'2, ' * 3000}]\n"
    lines = full.render(desk.report(desk.finding(text, "bad"), width=80)).splitlines()
    assert all(len(line) <= 90 for line in lines)
    code, marks = lines[3], lines[4]
    assert code.startswith("1 | …")
    assert code.endswith("…")
    assert code[marks.index("^") : marks.rindex("^") + 1] == "bad"


def test_a_place_longer_than_the_line_is_cut_too(desk: Any) -> None:
    text = f"x = {'9' * 5000}\n"
    lines = full.render(desk.report(desk.finding(text, "9" * 5000), width=80)).splitlines()
    assert all(len(line) <= 90 for line in lines)
    assert set(lines[4]) == {" ", "|", "^"}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_newline_ends_a_line(desk: Any, newline: str) -> None:
    text = PROGRAM.replace("\n", newline)
    fix = desk.fix(text, ("item", "detach"))
    told = full.render(desk.report(desk.finding(text, "loss.item()", fix=fix)))
    assert "\r" not in told
    assert "7 |         total += loss.item()\n  |                  ^^^^^^^^^^^\n" in told
    assert "  -         total += loss.item()\n7 +         total += loss.detach()\n8 |\n" in told


def test_a_text_without_a_last_newline(desk: Any) -> None:
    text = "x = 1\ny = bad"
    told = full.render(desk.report(desk.finding(text, "bad", fix=desk.fix(text, ("bad", "good")))))
    assert "  - y = bad\n2 + y = good\n  |\n" in told


def test_a_form_feed_ends_no_line(desk: Any) -> None:
    told = full.render(desk.report(desk.finding("x = 1\x0cy\nz = bad\n", "bad")))
    assert "1 | x = 1␌y\n2 | z = bad\n" in told


def test_a_file_that_is_gone_still_gets_its_headline(desk: Any) -> None:
    found = desk.finding(PROGRAM, "loss.item()")
    desk.texts.clear()
    assert (
        full.render(desk.report(found))
        == "TL202 `.item()` waits for the device\n --> train.py:7:18\nimpact: medium\n\n"
    )


def test_a_file_that_shrank_still_gets_its_headline(desk: Any) -> None:
    found = desk.finding(PROGRAM, "loss.item()", fix=desk.fix(PROGRAM, ("item", "detach")))
    desk.texts[found.path] = "x\n"
    assert full.render(desk.report(found)).startswith(
        "TL202 [*] `.item()` waits for the device\n --> train.py:7:18\n"
    )


def test_related_places_are_listed(desk: Any) -> None:
    found = desk.finding(
        PROGRAM, "loss.item()", related=((Position(5, 5), "runs in each iteration of this loop"),)
    )
    assert "  |\nimpact: medium\nnote: train.py:5:5: runs in each iteration of this loop\n" in full.render(
        desk.report(found)
    )


@pytest.mark.parametrize(
    ("severity", "color"), [(Severity.NOTE, 36), (Severity.WARNING, 33), (Severity.ERROR, 31)]
)
def test_colour_changes_no_character(desk: Any, severity: Severity, color: int) -> None:
    fix = desk.fix(PROGRAM, ("item", "detach"))
    found = desk.finding(PROGRAM, "loss.item()", severity=severity, fix=fix)
    colored = full.render(desk.report(found, color=True))
    assert f"\x1b[1;{color}mTL202\x1b[0m" in colored
    assert f"\x1b[1;{color}m^^^^^^^^^^^\x1b[0m" in colored
    assert "\x1b[31m-         total += loss.item()\x1b[0m" in colored
    assert "\x1b[32m+         total += loss.detach()\x1b[0m" in colored
    assert plain(colored) == full.render(desk.report(found))


@pytest.mark.parametrize(
    ("message", "advice", "told"),
    [
        ("it waits; use `F.silu`", "Use `F.silu`", "it waits"),
        ("it waits; use `F.silu`", "Call `F.silu(…)` in the place of these steps", "it waits"),
        ("it waits; move it once", "Move `scale` once before the loop", "it waits"),
        (
            "it waits; use `amp.scaler` with `cuda`",
            "Use `amp.scaler`",
            "it waits; use `amp.scaler` with `cuda`",
        ),
        ("it waits; `expand` does not", "Expand it: `x.expand(…)`", "it waits; `expand` does not"),
        ("it waits; use it", "Use it with care", "it waits; use it"),
        ("`a; b` waits", "Call `b` waits", "`a; b` waits"),
        ("it waits; use `F.silu`", None, "it waits; use `F.silu`"),
    ],
)
def test_advice_is_given_once(desk: Any, message: str, advice: str | None, told: str) -> None:
    finding = desk.finding("x = f(y)\n", "f(y)", message=message, remedy=advice)
    assert reason(finding) == told
    lines = full.render(desk.report(finding)).splitlines()
    assert lines[0] == f"TL202 {told}"
    assert (f"help: {advice}" in lines) is (advice is not None)

"""Fixes keep to the line length that a file keeps to."""

from __future__ import annotations

import pytest

from torchlint.diagnostics import Edit, Span
from torchlint.linelength import kept, limit
from torchlint.source import apply

SHORT = "x = 1\n" * 20


@pytest.mark.parametrize(
    ("text", "most"),
    [
        (SHORT + "y" * 79, 79),
        (SHORT + "y" * 80, 80),
        (SHORT + "y" * 85 + "\r\n", 88),
        (SHORT + "y" * 110, 119),
        (SHORT + "y" * 79 + "\n" + "y" * 121, None),
        # Nothing shows where lines would have been cut.
        (SHORT, None),
        (SHORT + "y" * 60, None),
        ("x = 1\n" * 5 + "y" * 79, None),
        (SHORT + "y" * 79 + '\nf"""\n"""', None),
        ("", None),
    ],
)
def test_limit(text: str, most: int | None) -> None:
    assert limit(text) == most


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("x = f(aaaa, bbbb!)", ["x = f(", "    aaaa, bbbb, new=1", ")"]),
        (
            "    f(aaaa, b!, c)",
            ["    f(", "        aaaa,", "        b,", "        new=1,", "        c,", "    )"],
        ),
        ("x = f(aaa, g(1, 2), bb!)", ["x = f(", "    aaa,", "    g(1, 2),", "    bb,", "    new=1,", ")"]),
        ("x = ff(aa)[b](ccc!).d(e)", ["x = ff(aa)[b](", "    ccc, new=1", ").d(e)"]),
        ("x = f(aaaa, bbbb!) # w", ["x = f(", "    aaaa, bbbb, new=1", ") # w"]),
        ("x = f('(, # ', bb!)", ["x = f(", "    '(, # ', bb, new=1", ")"]),
        ("x = f(a, g(bbbb!))", ["x = f(", "    a, g(bbbb, new=1)", ")"]),
        # Commas of a comprehension and of a lambda separate no items.
        ("x = [a for b, c in (d!)]", ["x = [a for b, c in (", "    d, new=1", ")]"]),
        ("x = (lambda a, b: [b!])", ["x = (lambda a, b: [", "    b, new=1", "])"]),
        # It fits, or only a comment does not.
        ("x = f(a!)", None),
        ("x = f(a!)  # a comment", None),
        # Nothing to break, what does not fit anywhere, and what belongs to a line.
        ("x = aaaaaaaaaaaaaaaa!", None),
        ("x = fffffffffffffffffffffff(a!)", None),
        ("x = f(aaaaaaaaaaaaaaaaaaaaaaa!)", None),
        ("x = f(aaaa, bbbb!)  # noqa", None),
        ("x = f(aaaa, bbbb!) \\", None),
        ("x = f(aaaa, bbbb!, '''a'''", None),
        ("aaaa, bbbbbbbbb!)", None),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_broken_lines(line: str, made: list[str] | None, newline: str) -> None:
    before = f"a = 1{newline}"
    text = before + line.replace("!", "") + newline + "b"
    at = len(before) + line.index("!")
    edits = (Edit(Span(at, at), ", new=1"),)
    new = kept(text, edits, 23, "    ")
    if made is None:
        assert new == edits
    else:
        assert apply(text, new) == before + newline.join(made) + newline + "b"


@pytest.mark.parametrize(
    ("above", "line", "below", "made"),
    [
        ("x = [", "    f(aa!), g(bb),", "]", ["    f(aa, new=1),", "    g(bb),"]),
        ("x = [", "    f(aa!), g(bb)", "]", ["    f(aa, new=1),", "    g(bb),"]),
        ("x = [", "    f(aa!), g(bb),", "    c]", ["    f(aa, new=1),", "    g(bb),"]),
        ("x = (  # (\n    a, b,", "    f(aa!), g(bb)", "    + c)", ["    f(aa, new=1),", "    g(bb)"]),
        # The brackets around it are not those of a list of items, or not seen.
        ("x = 1,", "f(aa, bb!), g(bb)", "c", ["f(", "    aa, bb, new=1", "), g(bb)"]),
        ("x = [", "    f(a!) for a, b in", "c]", ["    f(", "        a, new=1", "    ) for a, b in"]),
        ("x = [", "    f(a!), g(bb), (ccc", "    )]", ["    f(", "        a, new=1", "    ), g(bb), (ccc"]),
        ("x = [(", "    a), f(aa!), g(b)", "]", ["    a), f(", "        aa, new=1", "    ), g(b)"]),
        (
            "x = (\n    lambda a,",
            "    b: f(a!), g(a)",
            ")",
            ["    b: f(", "        a, new=1", "    ), g(a)"],
        ),
        # An item is too long.
        (
            "x = [",
            "    f(aaaaaaaaa!), a,",
            "]",
            ["    f(", "        aaaaaaaaa,", "        new=1,", "    ), a,"],
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_items_of_brackets_that_an_earlier_line_opens(
    above: str, line: str, below: str, made: list[str], newline: str
) -> None:
    text = "\n".join([above, line, below, ""]).replace("\n", newline)
    at = text.index("!")
    new = kept(text.replace("!", ""), (Edit(Span(at, at), ", new=1"),), 21, "    ")
    expected = "\n".join([above, *made, below, ""]).replace("\n", newline)
    assert apply(text.replace("!", ""), new) == expected


def test_what_is_written_as_a_whole() -> None:
    text = "y = softmax(q @ k) @ v\n"
    edits = (Edit(Span(4, 22), "attention(q, k, v, scale=1)"),)
    made = "y = attention(\n    q, k, v, scale=1\n)\n"
    assert apply(text, kept(text, edits, 24, "    ")) == made


def test_lines_that_are_put_in_or_indented() -> None:
    text = "x = f(aaaa, bbbb)\n"
    for edits in [(Edit(Span(0, 0), " " * 9),), (Edit(Span(0, 0), "y = f(aaaa, bbbb, cccccc)\n"),)]:
        assert kept(text, edits, 24, "    ") == edits


def test_lines_that_go_on() -> None:
    text = "z = 1 + \\\n  f(aaaa, bbbb)\n"
    edits = (Edit(Span(24, 24), ", cccccc"),)
    assert kept(text, edits, 20, "    ") == edits

"""The edits that all fixes of a text come down to."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchlint import fixer
from torchlint.diagnostics import Impact
from torchlint.options import LintSettings
from torchlint.scope import Scope
from torchlint.server.jobs import difference, fix
from torchlint.source import Source

TEXTS = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r", "\x0c", "😋"]), max_size=30).map("".join)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, TEXTS)
def test_a_difference_makes_one_text_of_the_other(before: str, after: str) -> None:
    edits = list(difference(before, after))
    assert fixer.apply(before, edits) == after
    for edit in edits:
        for at in (edit.span.start, edit.span.end):
            assert before[max(at - 1, 0) : at + 1] != "\r\n", "within the end of a line"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("f(a)\n", "f(a, b=1)\n", [(3, 3, ", b=1")]),
        ("a\nb\nc\n", "a\nc\n", [(2, 4, "")]),
        ("a\nc\n", "import b\na\nc\n", [(0, 0, "import b\n")]),
        ("a\n", "a\n", []),
    ],
)
def test_a_difference_is_small(before: str, after: str, expected: list[tuple[int, int, str]]) -> None:
    found = [(edit.span.start, edit.span.end, edit.content) for edit in difference(before, after)]
    assert found == expected


@pytest.mark.parametrize(("least", "fixed"), [(Impact.LOW, 1), (Impact.MEDIUM, 0)])
def test_only_what_is_shown_is_fixed(least: Impact, fixed: int) -> None:
    source = Source(Path("a.py"), "import torch\n\nx = torch.FloatTensor(3)\n")
    settings = LintSettings(rules=("TL209",), fixable=frozenset({"TL209"}))
    edits = fix(source, settings, None, Scope(impact=least), lambda: None)
    assert len(edits) == fixed

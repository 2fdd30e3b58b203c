"""What a selector stands for, and what layers of them leave enabled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from torchlint import selectors
from torchlint.diagnostics import Severity
from torchlint.rule import Rule
from torchlint.selectors import Selection, UnknownSelectorError


def _check(node: object, module: object) -> Iterator[object]:
    yield from ()


def _rules(*declared: tuple[str, str, bool]) -> Mapping[str, Rule]:
    return {
        code: Rule(code, name, Severity.WARNING, "none", (), (), opt_in, _check)  # type: ignore[arg-type]
        for code, name, opt_in in declared
    }


RULES = _rules(
    ("TL101", "loader-without-workers", False),
    ("TL102", "loader-without-pinned-memory", False),
    ("TL201", "tensor-created-on-host", False),
    ("TL202", "item-in-hot-loop", False),
    ("TL311", "inference-under-no-grad", True),
    ("TLX1", "of-another-pack", False),
)
DEFAULT = Selection(select=("TL",))


@pytest.mark.parametrize(
    ("selector", "codes"),
    [
        ("ALL", {"TL101", "TL102", "TL201", "TL202", "TL311", "TLX1"}),
        ("TL", {"TL101", "TL102", "TL201", "TL202", "TL311"}),
        ("TL1", {"TL101", "TL102"}),
        ("TL10", {"TL101", "TL102"}),
        ("TL202", {"TL202"}),
        ("item-in-hot-loop", {"TL202"}),
        ("TLX", {"TLX1"}),
    ],
)
def test_a_selector_stands_for_rules(selector: str, codes: set[str]) -> None:
    assert selectors.expand(selector, RULES) == codes


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        ("TL2O2", "did you mean `TL202`?"),
        ("tl202", "did you mean `TL202`?"),
        ("item-in-hotloop", "did you mean `item-in-hot-loop`?"),
        ("all", "did you mean `ALL`?"),
        ("ZZZ9", "`torchlint rule --all` lists the rules"),
        ("T", "`torchlint rule --all` lists the rules"),
        ("TL9", "unknown rule selector `TL9`"),
        ("TL2077777", "the rules of `TL2` are `TL201` to `TL202`"),
        ("TL219", "unknown rule selector `TL219`; the rules of `TL2` are `TL201` to `TL202`"),
        ("TL29", "; the rules of `TL2` are `TL201` to `TL202`"),
        ("TL2022", "did you mean `TL202`?"),
        ("TLL202", "did you mean `TL202`?"),
        ("E202", "unknown rule selector `E202`; `torchlint rule --all` lists the rules"),
        ("TL311x", "did you mean `TL311`?"),
        ("", "unknown rule selector ``"),
    ],
)
def test_an_unknown_selector_is_named_with_the_closest(selector: str, hint: str) -> None:
    with pytest.raises(UnknownSelectorError) as caught:
        selectors.expand(selector, RULES)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("selected", "on"),
    [
        (("TL",), False),
        (("TL3",), False),
        (("TL311",), True),
        (("inference-under-no-grad",), True),
        (("ALL",), True),
    ],
)
def test_opt_in_rules_need_their_code_their_name_or_all(selected: tuple[str, ...], on: bool) -> None:
    assert ("TL311" in selectors.enabled([Selection(select=selected)], RULES)) is on


@pytest.mark.parametrize(
    ("layers", "codes"),
    [
        ([DEFAULT], ("TL101", "TL102", "TL201", "TL202")),
        ([DEFAULT, Selection(ignore=("TL2",))], ("TL101", "TL102")),
        ([DEFAULT, Selection(ignore=("TL2",), extend_select=("TL202",))], ("TL101", "TL102", "TL202")),
        ([DEFAULT, Selection(select=("TL202",), ignore=("TL2",))], ("TL202",)),
        ([DEFAULT, Selection(select=("TL2",), ignore=("TL202",))], ("TL201",)),
        ([DEFAULT, Selection(select=("TL2",), ignore=("TL2",))], ()),
        ([DEFAULT, Selection(select=("TL202",), ignore=("item-in-hot-loop",))], ()),
        ([DEFAULT, Selection(select=("ALL",), ignore=("TL",))], ("TLX1",)),
        (
            [DEFAULT, Selection(select=("TL1",)), Selection(extend_select=("TL202",))],
            ("TL101", "TL102", "TL202"),
        ),
        ([DEFAULT, Selection(ignore=("TL1",)), Selection(select=("TL1",))], ("TL101", "TL102")),
        ([DEFAULT, Selection(select=("TL1",)), Selection(ignore=("TL101",))], ("TL102",)),
        ([DEFAULT, Selection(select=())], ()),
    ],
)
def test_layers_of_selectors(layers: list[Selection], codes: tuple[str, ...]) -> None:
    assert selectors.enabled(layers, RULES) == codes


@pytest.mark.parametrize(
    ("layers", "codes"),
    [
        ([DEFAULT], set(RULES)),
        ([Selection(unfixable=("TL",))], {"TLX1"}),
        ([Selection(fixable=("TL2",))], {"TL201", "TL202"}),
        ([Selection(fixable=("TL2",), unfixable=("TL202",))], {"TL201"}),
        ([Selection(fixable=("TL202",), unfixable=("TL2",))], {"TL202"}),
        ([Selection(unfixable=("TL1",)), Selection(fixable=("TL101",))], {"TL101"}),
        ([Selection(fixable=())], set()),
    ],
)
def test_layers_of_fixable(layers: list[Selection], codes: set[str]) -> None:
    assert selectors.fixable(layers, RULES) == codes

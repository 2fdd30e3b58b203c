"""The contract of a rule: which files it is shown."""

from __future__ import annotations

from torchlint.registry import catalogue
from torchlint.rule import vocabulary
from torchlint.vocabulary import Words


def test_spaces_in_front_of_brackets_and_equals_signs_hide_nothing() -> None:
    rule = catalogue()["TL901"]
    shared = vocabulary(catalogue().values())
    for text in ("import torch\nf(range=1)", "import torch\nf(range = 1)"):
        assert rule.may_fire(text) and rule.may_fire(Words(text, shared)), text
    for text in ("import torch\nf(ranger=1)", "import torch\nf(range, 1)", "f(range = 1)"):
        assert not rule.may_fire(text) and not rule.may_fire(Words(text, shared)), text
    assert catalogue()["TL202"].may_fire("torch; loss.item ()")


def test_the_same_rules_share_what_is_remembered() -> None:
    rules = catalogue()
    assert vocabulary(rules.values()) is vocabulary(list(rules.values()))
    assert vocabulary([rules["TL202"]]) is not vocabulary(rules.values())

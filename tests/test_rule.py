"""The contract of a rule: which files it is shown."""

from __future__ import annotations

import re
import time
from random import Random

import pytest

from torchlint.registry import catalogue
from torchlint.rule import Words

_LETTERS = "ab_1.( \n\t\rü\u2028\x0c\x00"


def test_words_are_found_where_the_text_has_them() -> None:
    draw = Random(0)

    def text(longest: int) -> str:
        return "".join(draw.choices(_LETTERS, k=draw.randrange(longest)))

    answers = set()
    for _ in range(2000):
        whole = text(60)
        words = Words(whole)
        for word in (text(4), text(7), whole[3:6]):
            answers.add((word in words, word in whole))
            assert (word in words) is (word in words)
            assert word in words or word not in whole, (whole, word)
            assert word not in words or plain(word) in plain(whole), (whole, word)
    assert answers == {(True, True), (True, False), (False, False)}


def plain(text: str) -> str:
    """``text`` without what may stand between the parts of a word."""
    return re.sub(r"[\s()\\]", "", text)


@pytest.mark.parametrize(
    "text",
    ["x.to (d)", "(x.to)(d)", "x.to \\\n (d)", "(x  # it\n .to  # is\n (d))", "x.  to(d)", "x .to\t(d)"],
)
def test_words_are_found_in_any_layout(text: str) -> None:
    assert ".to(" in Words(text)
    assert ".to(" not in Words(text.replace("to", "too"))
    assert ".to(" not in Words(text.replace(".", ","))


def test_long_comments_are_no_burden() -> None:
    started = time.process_time()
    assert ".to(" not in Words("x.to" + "#" * 100_000 + "\n" * 1000 + ".to # " * 20_000)
    assert time.process_time() - started < 1


def test_words_of_every_rule_are_found_wherever_they_stand() -> None:
    for rule in catalogue().values():
        for word in {word for group in rule.mentions for word in group.split("|")}:
            for text in (word, f"x{word}y", f" {word} ", f"ü{word}ü", f"\n{word}\r", word[1:], word[:-1]):
                assert word in Words(text) or word not in text, (rule.code, word, text)
                assert word not in Words(text) or plain(word) in plain(text), (rule.code, word, text)


def test_spaces_in_front_of_brackets_and_equals_signs_hide_nothing() -> None:
    rule = catalogue()["TL901"]
    for text in ("import torch\nf(range=1)", "import torch\nf(range = 1)"):
        assert rule.may_fire(text) and rule.may_fire(Words(text)), text
    for text in ("import torch\nf(ranger=1)", "import torch\nf(range, 1)", "f(range = 1)"):
        assert not rule.may_fire(text), text
    assert catalogue()["TL202"].may_fire("torch; loss.item ()")

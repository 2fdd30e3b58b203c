"""The words of a text: found wherever they stand, however many texts were looked at before."""

from __future__ import annotations

import re
import time
from random import Random

import pytest

from torchlint import vocabulary as module
from torchlint.registry import catalogue
from torchlint.vocabulary import Identifiers, Vocabulary, Words

_LETTERS = "ab_1.( \n\t\rü\u2028\x0c\x00\ud800"


def words(text: str, *asked: str) -> Words:
    return Words(text, Vocabulary(asked))


def plain(text: str) -> str:
    """``text`` without what may stand between the parts of a word."""
    return re.sub(r"[\s()\\]", "", text)


def test_words_are_found_where_the_text_has_them() -> None:
    draw = Random(0)

    def text(longest: int) -> str:
        return "".join(draw.choices(_LETTERS, k=draw.randrange(longest)))

    answers = set()
    for _ in range(2000):
        whole = text(60)
        for word in (text(4), text(7), whole[3:6]):
            asked = words(whole, word)
            answers.add((word in asked, word in whole))
            assert (word in asked) is (word in asked)
            assert word in asked or word not in whole, (whole, word)
            assert word not in asked or plain(word) in plain(whole), (whole, word)
    assert answers == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("most", [0, 300, 1_000_000])
def test_what_is_remembered_of_other_texts_changes_no_answer(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", most)
    draw = Random(1)
    asked = ("ab", "b_", "a", "1", ".a", "b(", "a.b", "a b", "bab", ".")
    shared = Vocabulary(asked)
    answers = set()
    for _ in range(500):
        text = " ".join("".join(draw.choices("ab_1.(", k=draw.randrange(1, 5))) for _ in range(4))
        for word in asked:
            found = word in Words(text, shared)
            assert found is (word in words(text, word)), (text, word)
            answers.add((word, found))
    assert len(answers) == 2 * len(asked)


@pytest.mark.parametrize(
    "text",
    ["x.to (d)", "(x.to)(d)", "x.to \\\n (d)", "(x  # it\n .to  # is\n (d))", "x.  to(d)", "x .to\t(d)"],
)
def test_words_are_found_in_any_layout(text: str) -> None:
    assert ".to(" in words(text, ".to(")
    assert ".to(" not in words(text.replace("to", "too"), ".to(")
    assert ".to(" not in words(text.replace(".", ","), ".to(")


@pytest.mark.parametrize(
    ("word", "here", "not_here"),
    [
        ("item", "losses.items()", "losses.iter()"),
        ("import lu", "from torch import  lu", "import values"),
        ("for ", "[x for(x) in y]", "forward(x)"),
        ("range=", "f(range = 1)", "f(ranger=1)"),
        ("ensor(", "Tensor (x)", "tensors(x)"),
    ],
)
def test_identifiers_begin_and_end_where_a_word_says(word: str, here: str, not_here: str) -> None:
    assert word in words(here, word)
    assert word not in words(not_here, word)


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import transformers", True),
        ("import os, transformers.models as models", True),
        ("if torch:\n    from transformers import (\n        Trainer,\n    )", True),
        ("try: import transformers\nexcept ImportError: pass", True),
        ("import os; from transformers import Trainer", True),
        ("from \\\n    transformers import Trainer", True),
        ('"""\n>>> from transformers import Trainer\n"""', False),
        ("# import transformers", False),
        ("import os  # transformers", False),
        ("from .transformers_utils import x", False),
        ("name = 'transformers'", False),
    ],
)
def test_an_import_is_told_from_what_speaks_of_it(text: str, imported: bool) -> None:
    word = "import:transformers"
    assert (word in Words(text, Vocabulary([word]))) is imported


def test_long_comments_are_no_burden() -> None:
    started = time.process_time()
    assert ".to(" not in words("x.to" + "#" * 100_000 + "\n" * 1000 + ".to # " * 20_000, ".to(")
    assert time.process_time() - started < 1


def test_words_of_every_rule_are_found_wherever_they_stand() -> None:
    for rule in catalogue().values():
        for word in {word for group in rule.mentions for word in group.split("|")}:
            for text in (word, f"x{word}y", f" {word} ", f"ü{word}ü", f"\n{word}\r", word[1:], word[:-1]):
                assert word in words(text, word) or word not in text, (rule.code, word, text)
                assert word not in words(text, word) or plain(word) in plain(text), (rule.code, word, text)


def test_identifiers_of_many_texts_rule_out_none_that_has_a_word() -> None:
    draw = Random(2)
    texts = ["".join(draw.choices(_LETTERS, k=draw.randrange(40))) for _ in range(60)]
    identifiers = Identifiers()
    for place, text in enumerate(texts):
        identifiers.add(text, 1 << place)
    identifiers.forget(1 << 7)
    answers = set()
    for _ in range(2000):
        at = draw.randrange(30)
        word = draw.choice(texts)[at : at + draw.randrange(1, 5)] or draw.choice(_LETTERS)
        found, certain = identifiers.holding(word)
        for place, text in enumerate(texts):
            if place == 7:
                continue
            if certain:
                assert bool(found >> place & 1) is (word in text), (text, word)
            else:
                assert found >> place & 1 or word not in text, (text, word)
            answers.add((certain, bool(found >> place & 1)))
    assert len(answers) == 4

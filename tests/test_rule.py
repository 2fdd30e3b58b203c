"""The contract of a rule: which files it is shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchlint.registry import catalogue
from torchlint.rule import Words

_LETTERS = st.text(alphabet="ab_1.( \n\t\rü\u2028\x0c\x00", max_size=6)


@given(st.text(alphabet="ab_1.( \n\t\rü\u2028\x0c\x00", max_size=60), st.lists(_LETTERS, max_size=6))
def test_words_are_found_where_the_text_has_them(text: str, asked: list[str]) -> None:
    words = Words(text)
    assert [word in words for word in (*asked, *asked)] == [word in text for word in (*asked, *asked)]


def test_words_of_every_rule_are_found_wherever_they_stand() -> None:
    for rule in catalogue().values():
        for word in {word for group in rule.mentions for word in group.split("|")}:
            for text in (word, f"x{word}y", f" {word} ", f"ü{word}ü", f"\n{word}\r", word[1:], word[:-1]):
                assert (word in Words(text)) is (word in text), (rule.code, word, text)

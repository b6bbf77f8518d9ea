"""Characters: texts that look the same are the same, and every text can be written."""

from unicodedata import is_normalized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.text.characters import composed, folded, without_surrogates

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("aÅ\u030a\xad\n\u200bﬁ\uff21"))
ANY = st.text(st.characters() | st.sampled_from("\ud800\udfff"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A plain line.", "A plain line."),
        ("Mu\u0308ll", "Müll"),
        ("M\u00fcll", "Müll"),
        ("Donau\xaddampf", "Donaudampf"),
        ("Donau\xad\ndampf", "Donaudampf"),
        ("one\xad\n two", "one\n two"),
    ],
)
def test_letters_are_composed_and_soft_hyphens_left_out(text: str, expected: str) -> None:
    assert composed(text) == expected


@given(TEXTS)
def test_a_composed_text_stays_as_it_is(text: str) -> None:
    once = composed(text)

    assert is_normalized("NFC", once)
    assert "\xad" not in once
    assert composed(once) == once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("ﬁnds", "finds"),
        ("\uff21\uff22", "AB"),
        ("zero\u200bwidth", "zerowidth"),
        ("e\u0301l\u00e8ve", "eleve"),
        ("\u0130stanbul, Stra\u00dfe, \u0451\u0436", "Istanbul, Strasse, \u0435\u0436"),
        ("\u30ac\uc12c", "\u30ac\uc12c"),
    ],
)
def test_words_that_look_the_same_are_searched_alike(text: str, expected: str) -> None:
    assert folded(text) == expected


@given(TEXTS)
def test_a_text_is_searched_as_its_composed_form(text: str) -> None:
    assert folded(composed(text.replace("\xad\n", ""))) == folded(text.replace("\xad\n", ""))


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert without_surrogates("caf\ud800é") == "caf?é"


@given(ANY)
def test_every_text_can_be_written(text: str) -> None:
    mended = without_surrogates(text)

    assert len(mended) == len(text)
    mended.encode()
    assert mended == text or "\ud800" <= max(set(text) - set(mended)) <= "\udfff"

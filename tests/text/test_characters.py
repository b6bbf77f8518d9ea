"""Characters: texts that look the same are the same, and every text can be written."""

from unicodedata import is_normalized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.text.characters import composed, folded, paired, repaired

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("aÅ\u030a\xad\n\u200bﬁ\uff21"))
ANY = st.text(st.characters() | st.sampled_from("\ud800\udfff"))


LONE, WHOLE = "caf\ud800\0é", "\ud83d\ude00"


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (composed, "A plain line.", "A plain line."),
        (composed, "Mu\u0308ll", "Müll"),
        (composed, "M\u00fcll", "Müll"),
        (composed, "Donau\xaddampf", "Donaudampf"),
        (composed, "Donau\xad\ndampf", "Donaudampf"),
        (composed, "one\xad\n two", "one\n two"),
        (repaired, LONE, "caf\ufffdé"),
        (repaired, {"a": [WHOLE, 3, None]}, {"a": ["😀", 3, None]}),
        (folded, "plain", "plain"),
        (folded, "ﬁnds", "finds"),
        (folded, "\uff21\uff22", "AB"),
        (folded, "zero\u200bwidth", "zerowidth"),
        (folded, "e\u0301l\u00e8ve", "eleve"),
        (folded, "\u0130stanbul, Stra\u00dfe, \u0451\u0436", "Istanbul, Strasse, \u0435\u0436"),
        (folded, "\u30ac\uc12c", "\u30ac\uc12c"),
    ],
)
def test_texts_that_look_the_same_have_one_form(form, text, expected) -> None:
    assert form(text) == expected


@given(TEXTS)
def test_a_composed_text_stays_as_it_is(text: str) -> None:
    once = composed(text)

    assert is_normalized("NFC", once)
    assert "\xad" not in once
    assert composed(once) == once


@given(TEXTS)
def test_a_text_is_searched_as_its_composed_form(text: str) -> None:
    assert folded(composed(text.replace("\xad\n", ""))) == folded(text.replace("\xad\n", ""))


@given(ANY)
def test_every_text_can_be_written(text: str) -> None:
    mended = paired(text)
    mended.encode()
    assert mended == text or "\ud800" <= max(set(text) - set(mended)) <= "\udfff"

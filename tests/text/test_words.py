"""The language of a text."""

import pytest

from hierindex.text.words import is_foreign, known_language, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wann fährt das Schiff zur Insel?", "de"),
        ("¿Cuándo sale el barco a la isla?", "es"),
        ("去岛上的船什么时候开?", "zh"),
        ("島への船はいつ出ますか", "ja"),
        ("Πότε φεύγει το πλοίο;", "el"),
        ("What does 北京 mean?", "en"),
        ("What does Σίσυφος mean?", "en"),
    ],
)
def test_a_language_is_known_by_words_or_script(text: str, language: str) -> None:
    assert known_language(text) == language_of(text) == language


@pytest.mark.parametrize(
    "text", ["", "Los Angeles", "La La Land", "Die Hard actors", "Da Vinci", "När går båten?"]
)
def test_names_and_unlisted_languages_are_not_known(text: str) -> None:
    assert known_language(text) == ""


def test_japanese_and_chinese_are_not_told_apart_without_kana() -> None:
    assert not is_foreign({"language": "ja"}, known_language("東京都知事選挙"))
    assert is_foreign({"language": "zh"}, known_language("島への船はいつ出ますか"))

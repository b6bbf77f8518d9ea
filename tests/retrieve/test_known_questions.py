"""Which questions are about the whole, by their words."""

import pytest

from hierindex.retrieve.known_questions import _only_of_the_whole


@pytest.mark.parametrize(
    "question",
    [
        "Worum geht es hier?",
        "Zusammenfassung bitte",
        "¿De qué tratan los documentos?",
        "这些文件讲的是什么?",
        "Wovon handelt it?",  # as a question that names a document is asked again
    ],
)
def test_a_question_of_these_words_alone_is_about_the_whole(question: str) -> None:
    assert _only_of_the_whole(question)


@pytest.mark.parametrize(
    "question",
    [
        "Wo ist das Buch?",
        "Wann kommen die Ergebnisse?",
        "Worum geht es in Kapitel 3?",
        "¿Quién tiene los documentos?",
        "大学",
        "这个部件是什么材料?",
        "Inhalt",  # a word alone is looked up
        "important documents",
        "general manual",
        "general idea",
        "text conclusion",
        "",
    ],
)
def test_any_other_is_not(question: str) -> None:
    assert not _only_of_the_whole(question)

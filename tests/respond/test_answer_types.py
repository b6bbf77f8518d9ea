import pytest

from hierindex.respond.extract import has_what_is_asked_for

QUESTIONS = {
    "number": (
        "How many pumps failed?",
        "Wie viele Pumpen fielen aus?",
        "有几个水泵?",
        "多少水泵?",
    ),
    "time": ("When did it fail?", "In what year was it?", "Wann fiel sie aus?", "什么时候坏的?"),
    "person": (
        "Who closed it?",
        "Whose pump was it?",
        "Wer schloss sie?",
        "Wem gehört sie?",
        "谁?",
    ),
    "nothing": ("Why did it fail?", "The pump.", "", "Warum fiel sie aus?", "为什么?"),
}
TEXTS = {
    "number": ("It took 3 hours.", "Two pumps failed.", "Es waren zwölf Pumpen."),
    "time": ("It was in 1963.", "It began at 10:30.", "Im März fiel sie aus.", "It was in May."),
    "person": ("It was closed by Ada.", "Ada Byron was there.", "“It failed,” said Grace."),
    "nothing": ("The keeper was asleep.", "", "一切正常。"),
}


@pytest.mark.parametrize("kind", ["number", "time", "person"])
def test_a_text_has_what_every_such_question_asks_for(kind):
    for question in QUESTIONS[kind]:
        assert [t for t in TEXTS[kind] if not has_what_is_asked_for(question, t)] == []
        assert [t for t in TEXTS["nothing"] if has_what_is_asked_for(question, t)] == []


@pytest.mark.parametrize("question", QUESTIONS["nothing"])
def test_other_questions_ask_for_none_of_it(question):
    assert not any(has_what_is_asked_for(question, text) for of in TEXTS.values() for text in of)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When did it fail?", "It took 3 hours."),
        ("When did it fail?", "It may fail."),
        ("How many failed?", "None of them was left."),
        ("Who closed it?", "The pump was closed."),
        ("Who closed it?", "It was 1963."),
    ],
)
def test_what_is_not_asked_for_does_not_count(question, text):
    assert not has_what_is_asked_for(question, text)


@pytest.mark.parametrize(
    ("question", "has"), [("Who hired Ada Byron?", False), ("Who hired Ada?", True)]
)
def test_a_name_of_the_question_is_no_answer(question, has):
    assert has_what_is_asked_for(question, "Then they hired Ada Byron.") == has

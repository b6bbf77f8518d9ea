import pytest
from hypothesis import given
from hypothesis import strategies as st
from summarize.groups import children, group_of

from hierindex import Quote, Span
from hierindex.summarize.extractive import informative, weight_of
from hierindex.text.sentences import split_sentences

WHOLE = "The keeper of the lighthouse wrote a long letter to his wife in May."


def said(text, section="", name=""):
    """The sentences of a text in a section."""
    source = Span("d", 0, len(text), section=section)
    return split_sentences(text, [Quote(0, len(text), source)], name=name)


def weight(text, **place):
    return max(map(weight_of, said(text, **place)))


@given(children(), st.sampled_from(["", "1 Abstract", "Results › storm"]))
def test_weights_are_positive(texts, section):
    for text in texts:
        assert all(weight_of(sentence) > 0 for sentence in said(text, section, "storm"))


@given(children())
def test_what_is_kept_is_distinct_and_in_order(texts):
    group = group_of(*texts)
    kept, weights = informative(group)
    assert kept
    assert len({s.text for s in kept}) == len(kept) == len(weights)
    places = [group.index(sentence) for sentence in kept]
    assert places == sorted(places)
    first = {s.text: group.index(s) for s in reversed(group)}
    assert places == [first[s.text] for s in kept]


@pytest.mark.parametrize(
    "notice",
    [
        "This page is licensed under the Python Software Foundation License Version 2.",
        "Permission is hereby granted, free of charge, to any person obtaining a copy of it.",
        'The software is provided "as is", without warranty of any kind, express or implied.',
        "Copyright \u00a9 2024 by the wife of the keeper of the lighthouse at the harbour.",
    ],
)
def test_a_notice_of_a_licence_is_kept_only_alone(notice):
    of = "This program of the keeper requires a driver's license and knows Creative Commons."
    assert [s.text for s in informative(said(f"{notice} {WHOLE} {of}"))[0]] == [WHOLE, of]
    assert [s.text for s in informative(said(notice))[0]] == [notice]


WORSE = {
    "leans on this": "This keeper of the lighthouse wrote a long letter to his wife in May.",
    "on however": "However, the keeper of the lighthouse wrote a letter to his wife in May.",
    "on German": "Dieser lange Brief des alten Mannes kam im Mai nie bei seiner Frau an.",
    "figure": "The keeper wrote a letter to his wife, as can be seen in Figure 7.",
    "section": "The letters of the keeper, see Section 2, were long and sad and came in May.",
    "citation": "The letters of the keeper to his wife were long and sad [3, 14] in May.",
    "following": "The letters of the keeper to his wife in May were of the following kind.",
    "question": "Did the keeper of the lighthouse write a long letter in May?",
    "no start": "the keeper of the lighthouse wrote a long letter to his wife in May.",
    "no end": "The keeper of the lighthouse wrote a long letter to his wife in May",
    "colon": "The keeper of the lighthouse wrote all of the letter to his wife:",
    "short": "The keeper wrote to his wife.",
    "stop words": "So it is, and so it was, and you will have it as it was.",
    "speech": "Um, the keeper of the the lighthouse, er, wrote a letter to his wife.",
    "formula": "The keeper of |light| = {house} wrote $x < $y in a letter to his wife.",
    "tick labels": "0.1 0.2 0.3 0.4 0.5 0.6 keeper letter wife.",
    "stub": "Chapter 2.",
    "heading": "# The keeper of the lighthouse wrote a letter to his wife",
    "row": "| The keeper | wrote a letter | to his wife | in May. |",
    "caption": "Figure 7: The keeper of the lighthouse writes to his wife.",
    "code": "```py\nkeeper = letter(of, the, lighthouse, to, wife)\n```",
    "front matter": "---\ntitle: The keeper of the lighthouse and his wife\n---",
    "copyright": "\u00a9 The keeper of the lighthouse and his wife, all of May.",
    "address": "The keeper of the lighthouse wrote https://a.b in a letter to his wife.",
    "mail": "Write to the keeper of the lighthouse and his wife at keeper@light.org.",
}


@pytest.mark.parametrize("text", WORSE.values(), ids=WORSE)
def test_a_sentence_that_stands_alone_outweighs(text):
    kept, weights = informative([*said(text), *said(WHOLE)])
    assert kept[weights.index(max(weights))].text == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        "Chapter 2.",
        "# The keeper of the lighthouse wrote it",
        "```py\nkeeper = letter(of, the, lighthouse)\n```",
        "---\ntitle: The keeper of the lighthouse\n---",
        "1 2 3 4 5 6 7 8 9",
    ],
)
def test_some_are_left_out_unless_there_is_nothing_else(text):
    assert [s.text for s in informative([*said(text), *said(WHOLE)])[0]] == [WHOLE]
    assert [s.text for s in informative(said(text))[0]] == [text]


@pytest.mark.parametrize("title", ["References", "Contents", "5 Literatur"])
def test_lists_of_what_stands_elsewhere_say_nothing(title):
    assert weight(WHOLE, section=f"Mills › {title}") < weight("Chapter 2.")


@pytest.mark.parametrize("title", ["Abstract", "1. Introduction", "Mills › Summary of it", "Fazit"])
def test_sections_that_say_what_it_is_about_outweigh_others(title):
    assert weight(WHOLE, section=title) > weight(WHOLE, section="Mills")


def test_words_of_the_titles_outweigh_others():
    assert weight(WHOLE, section="The Keeper") > weight(WHOLE, section="Mills")
    assert weight(WHOLE, name="Letters of a keeper") > weight(WHOLE, name="Mills")


def test_the_beginning_of_a_document_tells_what_it_is_about():
    _, weights = informative(said(" ".join(f"{WHOLE[:-1]} {n}." for n in range(9))))
    assert weights[0] == weights[3] > weights[5] == weights[8]
    speech = " ".join(f"Ada: {WHOLE[:-1]} {n}." for n in range(9))
    assert len({*informative(said(speech))[1]}) == 1


@pytest.mark.parametrize("title", ["Keeper of lighthouses", "Lives › The keeper"])
def test_a_sentence_that_defines_what_a_title_names_outweighs_others(title):
    defines = "A keeper of the light is a man who tends the lamp of a lighthouse in winter."
    assert weight(defines, name=title) > weight(
        defines.replace("is a man", "finds one"), name=title
    )
    assert weight(defines, name="Mills") == weight(defines.replace("is a", "finds a"), name="Mills")


def test_a_speaker_s_name_is_no_part_of_a_sentence():
    assert weight(f"Project Manager: {WHOLE}") == weight(WHOLE)
    assert weight("Project Manager of Mills: Yes.") == weight("Yes.")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", []),
        ("The keeper wrote it. The keeper wrote it.", ["The keeper wrote it."]),
        ("雪が降った。", ["雪が降った。"]),
        ("One. Two. One.", ["One.", "Two."]),
        ("!? !?", ["!?"]),
    ],
)
def test_repeated_sentences_count_once(text, kept):
    assert [s.text for s in informative(split_sentences(text))[0]] == kept

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.core.titles import (
    LABEL,
    MAX_TITLE,
    NO_PROSE,
    UNSPACED,
    VERB,
    _known_phrases_of,
    _marked,
    _phrases,
    _phrases_of,
    distinctive_phrases,
    first_words,
)
from hierindex.text.stop_words import BEFORE_VERBS, UNTITLED

SPOKEN = (
    "Grad A: Yeah, um, the the crane is broken again, you know. Postdoc B: Mm - hmm. The cra crane "
    "needs a new chain. Project Manager C: I think the chain costs more than the crane did."
)
WORDS = st.sampled_from(
    "mill sails The the to of harbour: Ada: crane, Crane (chain) ``` 帆船 クレーン x_y".split()
)
TEXTS = st.lists(st.text() | st.lists(WORDS, max_size=30).map(" ".join), max_size=6)


@given(TEXTS)
def test_a_title_is_one_short_line_and_no_phrase_is_given_twice(texts):
    titles = distinctive_phrases(texts)
    assert len(titles) == len(texts)
    for text, title in zip(texts, titles, strict=True):
        assert len(title) <= MAX_TITLE
        assert bool(title) == bool(text.strip())
        assert title == " ".join(title.split())
    assert titles == distinctive_phrases(texts)


@given(st.lists(WORDS, max_size=30).map(" ".join) | st.text())
def test_phrases_do_not_depend_on_what_was_read_before(text):
    """They are remembered, and patterns are skipped in texts without what they are for."""
    _known_phrases_of.cache_clear()
    spaced = UNSPACED.sub(r" \1 ", NO_PROSE.sub(" ; ", text))
    marked = " ".join(map(_marked, spaced.split()))
    runs = VERB.sub("|", LABEL.sub("|", marked)).split("|")
    plain = [phrase for run in runs if run.strip() for phrase in _phrases_of(run)]
    assert _phrases(text) == _phrases(text) == plain


@given(st.lists(st.lists(WORDS, min_size=1, max_size=30).map(" ".join), max_size=6))
def test_phrases_have_words_of_their_text_and_differ(texts):
    titles = dict(enumerate(distinctive_phrases(texts)))
    phrases = [
        phrase.lower()
        for i, title in titles.items()
        if title != first_words(texts[i])
        for phrase in title.split(", ")
    ]
    assert len({*phrases}) == len(phrases)
    assert all({*title} <= {*texts[i], *", "} for i, title in titles.items())


@pytest.mark.parametrize(
    ("texts", "titles"),
    [
        ([], []),
        (["", " \n"], ["", ""]),
        (["The mill needs new sails."] * 2, ["new sails, mill", "The mill needs new sails."]),
        ([SPOKEN], ["crane, new chain"]),
        (["We must sail to New York."], ["New York"]),
        (["Rust and rust, rust."], ["rust"]),
        (["Rust, Rust and rust."], ["Rust"]),
        (["The mills. A mill; the mills!"], ["mills"]),
        (["The keeper's lamp. They'd go, quickly."], ["keeper lamp"]),
        (["The value function estimated."], ["value function"]),
        (["It is so."], ["It is so."]),
        (["x = f(y_1) + 3"], ["x = f(y_1) + 3"]),
        (["```\nprint(harbour)\n``` The harbour of [sec_3] https://a.b/crane"], ["harbour"]),
        (["IP, uh, mmm."], ["IP"]),
        (["one " * 30], ["one one one one one one one one one one one one one one one"]),
        (["Donaudampfschifffahrtsgesellschaft " * 3], ["Donaudampfschifffahrtsgesellschaft"]),
        (["y" * 99], ["y" * MAX_TITLE]),
        (["deep water harbour crane chain, crane."], ["crane, chain"]),
        (
            ["Constitutionalizations Internationalization Telecommunications"],
            ["Constitutionalizations Internationalization"],
        ),
        (["A new steel harbour crane."], ["steel harbour crane"]),
        (["Die Mühle und die Segel der Mühle."], ["Mühle, Segel"]),
        (["風車には新しい帆布が必要です。データ分析の結果。"], ["データ分析, 帆布"]),
        (["风车的帆已经破了。"], ["风车的帆已经破了"]),
        (["กังหันลมต้องการใบเรือใหม่เพราะใบเรือเก่าขาดแล้ว"], ["กังหันลมต้องการใบเรือใหม่เพราะใบเรือเก่าขาดแล้ว"]),
    ],
)
def test_titles(texts, titles):
    assert distinctive_phrases(texts) == titles


def test_what_the_others_say_too_tells_less():
    shared = "The harbour master wrote about the harbour."
    texts = [f"{shared} The {word} broke." for word in ("crane", "lamp", "pier")]
    titles = distinctive_phrases([*texts, f"{shared} {shared}"])
    assert [title.split(", ")[0] for title in titles[:3]] == ["crane", "lamp", "pier"]
    assert "harbour" in titles[3]


def test_two_phrases_fit_together():
    """The second is left out where both are too long."""
    long = "Constitutional Considerations Concerning", "Transcontinental Telecommunications Treaty"
    assert distinctive_phrases([f"{long[0]}. {long[1]}."]) in ([long[0]], [long[1]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("a  b\n c", "a b c"),
        ("abcd efgh", "abcd"),
        ("abcdefgh", "abcde"),
        ("abcde f", "abcde"),
    ],
)
def test_first_words(text, words):
    assert first_words(text, 5) == words


def test_words_before_verbs_are_no_titles():
    assert BEFORE_VERBS <= UNTITLED

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex import Quote, Span
from hierindex.text.sentences import MAX_CHARS, split_sentences

PIECES = (
    "Dr. No came. ",
    "He left!",
    "a" * 700,
    "word " * 200,
    "\n" * 50,
    " " * 700,
    "雪が降った。",
    "雪" * 601,
    "\U0001f600" * 300,
    "e\u0301\u200b",
    "\r\n\f\x1c\u2029\u3000",
    "def f(x):\n    return x.y\n",
    "1. 2. 3. ",
    "... ",
    "“Why?” ",
)


def texts():
    return st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@st.composite
def quoted_texts(draw):
    """A text, quotes that cover it, and the documents they stand on."""
    text = draw(texts())
    cuts = sorted([0, *draw(st.lists(st.integers(0, len(text)), max_size=4)), len(text)])
    quotes, documents = [], {}
    for at, to in pairwise(cuts):
        before = draw(st.integers(0, 3))
        start, end = before, before + to - at
        kind = draw(st.sampled_from(["verbatim", "rewritten", "unknown"]))
        name = f"{kind} {at} {to}"
        documents[name] = "#" * before + text[at:to]
        source = Span(name, start, end + (kind == "rewritten"), draw(st.none() | st.integers(1, 9)))
        quotes.append(
            Quote(at, to, None if kind == "unknown" else source, verbatim=kind == "verbatim")
        )
    return text, quotes, documents


@given(quoted_texts())
def test_sentences_are_all_of_the_text_once_and_know_their_source(quoted):
    text, quotes, documents = quoted
    sentences = split_sentences(text, quotes)
    owners = [-1] * len(text)
    for i, sentence in enumerate(sentences):
        at, to, source, *_ = sentence.quote
        assert sentence.text == text[at:to]
        assert sentence.text == sentence.text.strip() != ""
        assert len(sentence.text) <= MAX_CHARS
        assert set(owners[at:to]) == {-1}
        owners[at:to] = [i] * (to - at)
        (quote,) = (q for q in quotes if q.at <= at and to <= q.to)
        if source is None or source.document.startswith("rewritten"):
            assert source == quote.source
        else:
            assert documents[source.document][source.start : source.end] == sentence.text
            assert (source.document, source.page) == (quote.source.document, quote.source.page)
    assert all(
        owner >= 0 or character.isspace() for owner, character in zip(owners, text, strict=True)
    )
    assert [s.quote.at for s in sentences] == sorted(s.quote.at for s in sentences)


@given(texts())
def test_a_text_without_quotes_has_sentences_without_a_source(text):
    sentences = split_sentences(text)
    assert all(s.quote.source is None for s in sentences)
    assert "".join("".join(s.text.split()) for s in sentences) == "".join(text.split())


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\f\t\u3000"])
def test_a_blank_text_has_no_sentences(text):
    assert split_sentences(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He left. She stayed.", ["He left.", "She stayed."]),
        ("Is it 3.5 or 4? Ask Dr. Smith now.", ["Is it 3.5 or 4?", "Ask Dr. Smith now."]),
        ("雪が降った。道は閉ざされた。", ["雪が降った。", "道は閉ざされた。"]),
        ("今天下雪了。路封了\uff01為什麼\uff1f", ["今天下雪了。", "路封了\uff01", "為什麼\uff1f"]),
        ("def f(x):\n    return x.y", ["def f(x):\n    return x.y"]),
        ("# Title\n\nThe keeper wrote.", ["# Title", "The keeper wrote."]),
        ("no full stop", ["no full stop"]),
        ("!", ["!"]),
        ("One.\r\nTwo.\r\n\r\nThree", ["One.", "Two.", "Three"]),
        ("It cost $3.50. At 10.30 it ended.", ["It cost $3.50.", "At 10.30 it ended."]),
        ("Well... I think so. Wait… what?", ["Well... I think so.", "Wait… what?"]),
        ("“Why?” he said. “Go.” He left.", ["“Why?” he said.", "“Go.”", "He left."]),
        ("See https://a.b/c.html?x=1. It ran.", ["See https://a.b/c.html?x=1.", "It ran."]),
        ("He\nleft the\nbay. It was\nlate.", ["He\nleft the\nbay.", "It was\nlate."]),
        ("hello. how are you. fine.", ["hello.", "how are you.", "fine."]),
        ("lone \ud800 here. Then", ["lone \ud800 here.", "Then"]),
    ],
)
def test_sentences_of(text, expected):
    assert [s.text for s in split_sentences(text)] == expected


SENTENCES = {  # by what is between them
    " ": [
        ["Er ging usw. nach Hause.", "Es sind ca. 5 km."],
        ["¿Cómo estás?", "¡Muy bien!", "El Sr. García llegó."],
        ["M. Dupont est venu.", "Il a dit « Bonjour. »", "Puis il partit."],
        ["Это т.е. так.", "В 1990 г. он родился."],
        ["Πού πας;", "Πάω σπίτι."],
        ["मैं घर गया।", "वह आया था।", "क्या हुआ?"],
        ["ذهبت إلى البيت.", "هل جاء؟", "نعم، جاء."],
        ["میں گھر گیا۔", "وہ آیا۔"],
        ["שלום.", "מה שלומך?"],
        ["እኔ ሄድኩ።", "እሱ መጣ።"],
        ["ငါသွားသည်။", "သူလာသည်။"],
        ["今天下雪了. ", "路封了! "],
        ["Let α; β and γ be.", "They are."],
        ["Speculation.--The pump was old.", "It failed."],
        ["Finding.\u2014No pump failed.", "It was closed."],
        ["Note: The pump is old.", "It is closed."],
        ["Q. Did it fail?", "It was old.", "A. Yes."],
        ["MR. SMITH: I saw it.", "It ran."],
        ["Mr. BALL. Did you see it?", "Mr. SMITH. Yes."],
        ["(d) The pump is closed.", "It failed.", "(iv) It is old."],
        ["\u2022 The pump is closed.", "It failed."],
        ["(1) The pump is closed.", "It failed."],
        ["7.9. Pumps are old.", "They fail."],
        ["Use Python 3.11.2.", "Python 3.12 is next."],
        ["Call open(file, mode='r').", "It reads."],
        ["See os.Path and :class:`.Pump` or `~.Valve`.", "They are names."],
        ["It stands in /etc/../pump.d/*.Conf and x.You.", "Read it."],
        ["Ask J. D. Smith of Port St. John.", "He knows."],
        ["He lives in the Dallas-Ft. Worth area.", "It is dry."],
        ["See vol. 3, Ch. VII and eq. (5).", "It is approx. Five."],
        ["Smith et al. (2003) say so.", "Cf. Fig. 3 and No. 5, e.g. Pumps."],
        ["Siehe Abb. 3 bzw. Kap. 2.", "Am 5. Mai fiel sie aus.", "Vgl. Bd. 2."],
        ["(It is old.)", "It failed.", "(It (the pump) is closed.)", "Then it ran."],
        ["[It (the pump) is closed.]", "It failed. */", "It ran."],
    ],
    "": [
        ["雪が降った。", "「行こう。」と彼は言った。", "道は閉ざされた\uff01", "本当\uff1f"],
        ["今天下雪了。", "他說\uff1a「走吧。」", "然後離開了。"],
    ],
    "\n": [
        ["# Title", "The keeper wrote.", "## Next"],
        ["Title\n=====", "The keeper wrote.", "Next\n----", "- one"],
        ["A title alone", "The keeper wrote a long letter to his wife.", "a) one", "b) two"],
        ["1. The first\n   goes on.", "2. The second", "(3) third", "12. last"],
        ["Shopping:", "- eggs", "* milk", "+ bread", "• tea", "    - green tea"],
        ["It is below", "| a | b |", "|---|---|", "| 1. | 2. Two |", "It was above. "],
        ["id\ttext", "1\tIt is so. It was.", "2\tNo"],
        ["So", "```py\nx = f(1). \nprint('Oh. No')\n```", "Then"],
        ["rest of code", "```", "Then he left"],
        ["It is:\n", "    x = y.z()\n    print('Oh. No')\n", "And so on"],
        ["Professor B: and so", "Grad E: Uh - huh", "Project Manager: yes"],
        ["\uff11\uff0e一", "2、二"],
        ["---\ntitle: The log\ntags:\n  - road\n- pier\n---", "It was. ", "---", "So: it is."],
        ["DESCRIPTION", "       pump closes the valve, see valve(7)."],
        ["  -a, --all", "         Close all, as with fork(2).\n\n", "         It returns x=1."],
        ["  -a, --all\n         closes all the valves of the old pump.", "It returns 1."],
        ["Pumps and their many valves", "They are opened at noon and closed in the evening."],
        ["It is closed.", "valve.close(all=False)", "Return the number of valves."],
        ["It is closed.", "int close(Valve *v)", "Return the number of valves."],
        ["It is closed.", "pumps.valves.CLOSED", "Whether it is closed."],
        ["It is closed.", "valve", "The valve to close."],
        ["So run:", "import pump\nfor v in valves:\n    close(v)\n    v = 1", "It closes them."],
        ["So run:", ">>> pump.state()\n'It is. Old'", "It is old."],
        ["iv. The pump", "v. The valve"],
        ["It returns\nvalve.close() at once."],
        ["It is closed by\nvalve.close()\nat once."],
        ["The valve may be one of the old\nones (see there);\nit is closed."],
        ["Each, a valve of the first kind and\na pump of the second, is old."],
        ["```rust\nlet a = 1;\n", 'let b = "Oh. No";\n```', "Then."],
    ],
}


@pytest.mark.parametrize(
    ("between", "expected"),
    [(between, each) for between, texts in SENTENCES.items() for each in texts],
)
def test_sentences_of_languages_technical_text_and_blocks(between, expected):
    found = split_sentences(between.join(expected))
    assert [sentence.text for sentence in found] == [each.strip() for each in expected]


UNITS = ("a", "word ", "雪", "1,2;\n", "\U0001f600", "a.b", " ", ".", "\n", "e\u0301", "\ud800")
NESTED = ("`", "«", "“a. ", "([{", '"(', "1.\n")


@pytest.mark.parametrize("unit", [*UNITS, *NESTED])
def test_a_long_text_of_anything_comes_in_pieces(unit):
    text = unit * (50_000 // len(unit.encode("utf-8", "replace")))
    sentences = split_sentences(text)
    assert sum(len("".join(s.text.split())) for s in sentences) == len("".join(text.split()))
    assert all(len(s.text) <= MAX_CHARS for s in sentences)


def test_a_long_sentence_is_cut_at_blanks():
    words = ["lighthouse"] * 200
    sentences = split_sentences(" ".join(words))
    assert len(sentences) > 1
    assert [word for s in sentences for word in s.text.split()] == words


@pytest.mark.parametrize(
    "unit", ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "e\u0301"]
)
def test_a_character_made_of_several_is_not_cut(unit):
    sentences = split_sentences(unit * 500)
    assert len(sentences) > 1
    assert {s.text.replace(unit, "") for s in sentences} == {""}


def test_sentences_know_their_block_and_what_they_are_called_with():
    text = "# Title\n\nHe left. She stayed.\n\n| a | b |\n"
    sentences = split_sentences(text, child=3, name="The log", size=7)
    assert [s.kind for s in sentences] == ["heading", "paragraph", "paragraph", "row"]
    assert {(s.child, s.name, s.size) for s in sentences} == {(3, "The log", 7)}


def test_a_title_of_the_quote_s_section_is_a_heading():
    text = "Title\nHe left."
    (quote,) = [Quote(0, len(text), Span("d", 0, len(text), section="Title"))]
    assert [s.kind for s in split_sentences(text, [quote])] == ["heading", "paragraph"]


@pytest.mark.parametrize("blank", ["\x85", "\xa0", "\u2003", "\u2028", "\u3000"])
def test_an_initial_after_a_blank_that_is_not_ascii(blank):
    """At which sentencex panics."""
    text = f"Ask{blank}B.\u201d{blank}C.\u201d Then go."
    assert [word for s in split_sentences(text) for word in s.text.split()] == text.split()


OF_LANGUAGES = {
    "ru": [
        "Музей открыт по просп. Мира, д. 12 во дворе.",
        "Доклад акад. Павлова и доц. Климова лежит на столе.",
        "Школа построена в 1980 г. Ремонт начался не скоро.",
    ],
    "nl": [
        "De brief is van mr. Bos en van drs. Smit uit het dorp.",
        "Het pad loopt langs o.a. Breda en de rivier.",
    ],
    "pl": [
        "Spotkanie jest na os. Jasnym przy szkole nr. Pięć.",
        "List do ks. Adama i do mgr. Kowal leży na stole.",
    ],
    "cs": ["Pan ing. Kos a doc. Sova se sešli na nám. Republiky.", "Viz obr. Alfa je na str. B."],
    "it": [
        "La lettera è del geom. Riva e del rag. Neri di Como.",
        "Il museo di S. Marco non è lontano.",
    ],
    "de": [
        "Der Bericht lag bei Hr. Lang und bei Fr. Kurz in der Abt. Bau.",
        "Das Fest ist am 7. 9. und kostet 2 Mio. Euro.",
    ],
    "en": ["It was ok. Then the train came at st. Al. Nobody was on it."],
}


@pytest.mark.parametrize("language", OF_LANGUAGES)
def test_an_abbreviation_of_the_language_ends_no_sentence(language):
    sentences = OF_LANGUAGES[language]
    found = [sentence.text for sentence in split_sentences(" ".join(sentences))]
    if language == "ru":
        *sentences, last = sentences
        sentences += ["Школа построена в 1980 г.", "Ремонт начался не скоро."]
        assert last == " ".join(sentences[-2:])
    if language == "en":
        assert found[0] == "It was ok."
        assert len(found) > 1
    else:
        assert found == sentences

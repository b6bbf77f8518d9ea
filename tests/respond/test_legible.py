import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.node import Quote, Span
from hierindex.respond.legible import Pool

DOCUMENT = "The pump failed. It was old.\n\nThe valve is new. Nobody saw the keeper that night."


def pool_of(*texts):
    return Pool.of((text, ()) for text in texts)


def own(text):
    pool = pool_of(text)
    return [s.text for s, says in zip(pool.sentences, pool.own, strict=True) if says]


def needs(text):
    """The sentences that each sentence cannot be read without, by its text."""
    pool = pool_of(text)
    texts = [sentence.text for sentence in pool.sentences]
    return {texts[i]: [texts[j] for j in needs] for i, needs in enumerate(pool.needs)}


def part(start, end, document="d", text=DOCUMENT):
    """A chunk of a document, with its quotes."""
    return text[start:end], (Quote(0, end - start, Span(document, start, end)),)


def extract(*parts):
    """A pool of an extract of a document: sentences, each with its start there."""
    text, quotes = " ".join(sentence for sentence, _ in parts), []
    for sentence, start in parts:
        at, n = text.index(sentence), len(sentence)
        quotes.append(Quote(at, at + n, Span("d", start, start + n)))
    return Pool.of([(text, quotes)])


def joined(*texts):
    return Pool.of(texts).joined.tolist()


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Speculation.--The rifle was old. Somebody else bought it.", "Speculation.--The"),
        ("Speculation.\u2014The rifle was old. Somebody else bought it.", "Speculation.\u2014The"),
        ("Project Manager: The pump is old. Somebody else bought it.", "Project Manager: The"),
        ("**Note:** The pump is old. Somebody else bought it.", "**Note:** The"),
    ],
    ids=["two hyphens", "a dash", "a speaker", "marked up"],
)
def test_a_paragraphs_label_is_quoted_with_each_of_its_sentences(text, label):
    first, second = needs(text)
    assert first.startswith(label)
    assert needs(text) == {first: [], second: [first]}


def test_a_label_that_is_split_off_is_quoted():
    found = needs("Speculation. -- The rifle was old. Somebody else bought it.")
    assert [*found.values()] == [[], ["Speculation."], ["Speculation."]]


def test_a_few_words_before_a_paragraph_are_its_label():
    found = needs("Ticket 12. The pump failed at night. Nobody repaired the pump.")
    assert [*found.values()] == [[], ["Ticket 12."], ["Ticket 12."]]
    found = needs("was closed. The pump failed at night.")  # the end of a cut sentence
    assert not any(found.values())


def test_a_label_ends_with_its_paragraph():
    text = "Speculation.--The rifle was old.\n\nNobody ever sold one of them."
    assert needs(text)["Nobody ever sold one of them."] == []


def test_the_label_is_that_of_the_own_paragraph():
    speculation, finding = "Speculation.--It was old.", "Commission finding.--It was new."
    found = needs(f"{speculation} Nobody sold one.\n\n{finding} Somebody made it.")
    assert found["Nobody sold one."] == [speculation]
    assert found["Somebody made it."] == [finding]


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        ("The pump failed.", "This closed the bay."),
        ("The keeper slept.", "He was tired."),
        ("The keeper slept.", "“He was tired,” said Ada."),
        ("The keeper slept.", "However, the pump ran on."),
        ("Der Wärter schlief.", "Er war müde."),
        ("昨天下雨。", "这座桥被关闭了。"),
    ],
)
def test_a_sentence_that_refers_back_needs_the_one_before(before, sentence):
    assert needs(f"Nobody said a word. {before} {sentence}")[sentence] == [before]


@pytest.mark.parametrize("sentence", ["The pump ran on.", "Helen was tired.", "Items are old."])
def test_a_sentence_that_refers_to_nothing_needs_none(sentence):
    assert needs(f"The keeper slept. {sentence}")[sentence] == []


def test_the_rest_of_a_sentence_that_was_cut_needs_its_beginning():
    first, second = needs(f"In short, {'it was said that ' * 40}well-known pumps failed.").items()
    assert second[0].endswith("well-known pumps failed.")
    assert (first[1], second[1]) == ([], [first[0]])


def test_the_first_sentence_needs_none():
    assert needs("This is all. He slept.") == {"This is all.": [], "He slept.": ["This is all."]}


@pytest.mark.parametrize("marks", ["-*", ["1.", "(2)"], ["(i)", "(ii)"], "\u2022\u25aa"])
def test_an_item_needs_the_line_that_announces_its_list(marks):
    line, parts = "The pump has these parts:", ["A valve closes it.", "A handle turns it."]
    items = [f"{mark} {part}" for mark, part in zip(marks, parts, strict=True)]
    found = needs("\n".join(["# Parts", "", line, "", *items, "", "Nobody repaired the pump."]))
    assert [found[item] for item in items] == [[line], [line]]
    assert found["Nobody repaired the pump."] == []


def test_a_list_that_nothing_announces_needs_nothing():
    text = "The pump is old.\n\n- A valve closes it.\n- A handle turns it."
    assert not any(needs(text).values())


@pytest.mark.parametrize(
    ("table", "n"),
    [
        ("| pump | hours |\n|---|---|\n| north | 12 |\n| south | 13 |", 2),
        ("pump\thours\nnorth\t12\nsouth\t13", 1),
    ],
    ids=["Markdown", "tabs"],
)
def test_a_row_needs_the_head_of_its_table(table, n):
    """Without a rule below it, the head may be a row like others."""
    rows = table.split("\n")
    assert {row: needs(table)[row] for row in rows[-2:]} == dict.fromkeys(rows[-2:], rows[:n])
    assert own(table) == (rows[n:] if n > 1 else rows)


def test_a_row_needs_what_announces_its_table_and_not_the_head_of_another():
    line, first, second = "The hours:", "| a | b |\n| 1 | 2 |", "| c | d |\n| 3 | 4 |"
    found = needs(f"{line}\n\n{first}\n\nThe pump is old.\n\n{second}")
    assert found["| 1 | 2 |"] == [line, "| a | b |"]
    assert found["| 3 | 4 |"] == ["| c | d |"]


@pytest.mark.parametrize(
    "code",
    ["    close(valve)\n    open(pump)", "close(valve)\nopen(pump)", "```\nclose(valve)\n```"],
    ids=["indented", "recognised", "fenced"],
)
def test_code_is_quoted_whole_and_with_what_announces_it(code):
    line = "The valve is closed like this:"
    text = f"{line}\n\n{code}\n\nNothing else is needed."
    whole = code.strip("`\n ")
    assert own(text) == [whole, "Nothing else is needed."]
    assert needs(text)[whole] == [line]


def test_a_piece_of_code_that_is_too_long_for_a_sentence_is_not_quoted():
    code = "\n".join(f"    valve_{i} = close({i})" for i in range(40))
    assert own(f"It is closed:\n\n{code}\n\nNothing else is needed.") == ["Nothing else is needed."]


@pytest.mark.parametrize(
    "line",
    [
        "# Is the pump closed?",
        "Repairs of the Pump",
        "The pump\n========",
        "The pumps of the harbour .......... 3",
        "The parts are:",
        "1. **Pump size**.",
        "[n 1]",
        "(Exodus 1: 15-19)",
        "Keeper, Ada B. Head of the harbour Vol. V, p. 561.",
        "Home | Valves | Pumps of all kinds.",
        "|---|---|",
        "\\centering\n\\label{pump}",
    ],
)
def test_what_is_no_sentence_is_not_quoted_alone(line):
    assert own(f"{line}\n\nThe keeper slept all night.") == ["The keeper slept all night."]


@pytest.mark.parametrize(
    "text",
    [
        "name: Ada; office: Works",
        "Name: Ada",
        "wifi guest network: fjord-guest, password herring7",
        "pump failed at night",
        "- 14 mm rope",
        "* milk",
        "Sail cloth ..... 210.00",
    ],
)
def test_what_is_no_sentence_but_has_content_is_quoted(text):
    assert own(f"{text}\n\nThe keeper slept all night.") == [text, "The keeper slept all night."]


@pytest.mark.parametrize(("n", "end"), [(3, ""), (30, ""), (30, ".")])
def test_plain_lines_are_quoted_by_line_unless_they_are_few(n, end):
    lines = [f"pump {i} stopped at {i}.30 by ada{end}" for i in range(n)]
    assert own("\n".join(lines)) == (["\n".join(lines)] if n == 3 else lines)


def test_a_row_of_columns_needs_the_line_above_that_has_no_numbers():
    rows = ["Town Boats Berths", *(f"Vik{i} {i},514 {i},243" for i in range(20))]
    assert needs("\n".join(rows))["Vik7 7,514 7,243"] == rows[:1]
    assert not any(needs("\n".join(rows[1:])).values())


def test_wrapped_prose_is_not_split_at_its_lines():
    lines = ["Nobody ever saw the keeper of the pump in the night, as", "he slept until the"]
    lines[0] = f"{'The pump of the station was old and had not been mended. ' * 4}{lines[0]}"
    assert own("\n".join(lines))[-1] == f"Nobody {lines[0].partition('Nobody ')[2]}\n{lines[1]}"


def test_numbers_after_dots_are_those_of_pages_if_they_only_rise():
    names, text = ["Rope", "Lamp oil", "Anchor"], "The keeper slept all night."
    for pages, told in (([3, 12, 90], False), ([12, 3, 90], True)):
        lines = "\n".join(f"{a} ..... {b}" for a, b in zip(names, pages, strict=True))
        assert own(f"{lines}\n\n{text}") == ([lines] if told else []) + [text]


def test_a_passage_does_not_go_on_in_the_next_chunk():
    pool = Pool.of([part(0, 28), part(30, len(DOCUMENT))])  # the white space is not known
    assert pool.joined.tolist() == [False, True, False, True]
    assert [pool.text(0, 1), pool.text(2, 3)] == [DOCUMENT[:28], DOCUMENT[30:]]
    assert pool.node.tolist() == [0, 0, 1, 1]


def test_a_reference_needs_what_the_sentence_before_needs():
    pool = Pool.of([("The rifle was found. It was old. It had a sling.", ())])
    assert pool.needs == [(), (0,), (0, 1)]


@pytest.mark.parametrize(
    "chunks",
    [
        [part(30, len(DOCUMENT)), part(0, 28)],
        [part(0, 28), part(30, len(DOCUMENT), "e")],
        [part(0, 16), part(30, len(DOCUMENT))],
        [part(0, 28), part(17, len(DOCUMENT))],
        [part(0, 28), ("The valve is new.", ())],
        [("The pump failed.", ()), ("The valve is new.", ())],
    ],
    ids=["order", "documents", "a gap", "an overlap", "unknown place", "unknown places"],
)
def test_sentences_of_other_chunks_do_not(chunks):
    split = Pool.of(chunks)
    first_of_second = [*split.node].index(1)
    assert not split.joined[first_of_second]


def test_sentences_of_a_summary_follow_each_other_where_they_do_in_their_document():
    text = "The pump failed. It was old. Nobody saw the keeper that night."
    spans = [(0, 16, 0), (17, 28, 17), (29, 62, 48)]
    quotes = tuple(Quote(at, to, Span("d", start, start + to - at)) for at, to, start in spans)
    assert joined((text, quotes)) == [False, True, False]


def test_a_sentence_of_an_extract_does_not_need_a_label_from_elsewhere():
    turns = ("Ada: Good morning.", 0), ("Bo: The pump is old.", 90), ("Nobody repaired it.", 111)
    assert extract(*turns).needs == [(), (), (1,)]
    assert extract(*turns[:2], ("The keeper slept.", 300)).needs == [(), (), ()]


@pytest.mark.parametrize("start", [17, 300])
def test_a_sentence_of_an_extract_that_refers_to_what_is_left_out_says_nothing(start):
    pool = extract(("The pump failed.", 0), ("It was very old.", start))
    assert pool.own.tolist() == [True, start == 17]
    assert pool.needs == [(), (0,) if start == 17 else ()]


def test_rewritten_sentences_refer_to_each_other():
    text = "The pump failed. It was very old."
    spans = [(0, 16, Span("d", 0, 90)), (17, 33, Span("d", 300, 390))]
    pool = Pool.of([(text, [Quote(*span, verbatim=False) for span in spans])])
    assert pool.needs == [(), (0,)]
    assert pool.own.all()


def test_rewritten_sentences_follow_each_other_in_their_text():
    text = "The pump failed. It was old."
    assert joined((text, ())) == [False, True]


LINES = (
    "The pump failed.|It was old.|# Parts|It has:|- A valve closes it.||x|a\tb|    close(valve)"
    "|Note: It is new.|Ada: Why?|```|他很高兴。"
)
texts = st.lists(st.sampled_from(LINES.split("|")), max_size=12)


@given(st.lists(texts, max_size=3))
def test_what_a_sentence_needs_is_before_it_in_its_text(nodes):
    pool = pool_of(*("\n\n".join(lines) for lines in nodes))
    n = len(pool.sentences)
    assert len(pool.own) == len(pool.joined) == len(pool.needs) == n
    assert not pool.joined[:1].any()
    for i, needs in enumerate(pool.needs):
        assert list(needs) == sorted(set(needs))
        assert all(j < i and pool.node[j] == pool.node[i] for j in needs)
        assert pool.text(i, i) == pool.sentences[i].text


def test_a_paragraph_has_the_headings_above_it():
    pool = pool_of(
        "# Ticket 12\n\nStation: 7\n\nThe pump failed. It was old.\n\nThe end came.", "x y z."
    )
    assert np.diff(pool.paragraph).tolist() == [0, 0, 0, 1, 1]


def test_pieces_are_quoted_one_by_one():
    pool = pool_of("The pump failed. It was old.")
    pieces = pool.in_pieces(pool.sentences[1:])
    assert np.array_equal(pieces.own, [True])
    assert not pieces.joined.any()
    assert pieces.needs == [()]
    assert pieces.text(0, 0) == "It was old."


@pytest.mark.parametrize("unit", ["(", "a.", "- ", "a ....", " .", ". ", "=\n", "a b\n", "a: 1\n"])
def test_a_long_text_is_read_at_once(unit):
    assert len(pool_of(unit * (20_000 // len(unit)) + " a b").sentences) > 0

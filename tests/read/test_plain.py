"""Texts by lines: headings of plain text, reStructuredText and source code, and subtitles."""

import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from read.conftest import headings

from hierindex import read_documents, sentence_splitter
from hierindex.node import HEADINGS, SECTION
from hierindex.read.plain import DEEPEST, MAX_PARSED, SUFFIXES, plain_headings, rst_headings

BODY = "\n\n" + "It is told in full.\n" * 9 + "\n"


def text_of(*lines: str, body: str = BODY) -> str:
    return "".join(line + body for line in lines)


@pytest.mark.parametrize(
    ("lines", "levels"),
    [
        (["1. Aims", "2. Means", "3. Ends"], [1, 1, 1]),
        (["0 Aims", "1 Means", "1.1 Tools", "1.2 Costs", "1.2.1 Rent", "2 It"], [1, 1, 2, 2, 3, 1]),
        (["Chapter 1 Aims", "CHAPTER 2: Means", "Chapter 3. Ends"], [1, 1, 1]),
        (["1. Aims", "6 December 1963", "2. Means", "3. Ends"], [1, 1, 1]),
    ],
)
def test_lines_that_count_are_headings(lines, levels):
    text = text_of(*lines)
    found = plain_headings(text)
    assert [heading.level for heading in found] == levels
    for heading in found:
        assert text[heading.start :].startswith(heading.title + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        text_of("1. Aims", "2. Means"),
        text_of("3. Aims", "4. Means", "5. Ends"),
        text_of("1. Aims", "3. Means", "5. Ends"),
        text_of("1. Aims", "2. Means", "3. Ends", body="\n\nShort.\n\n"),
        text_of("1. Aims", "2. Means", "3. Ends", body="\n\n") + BODY * 9,
        text_of("1. Aims", "2. Means", "3. Ends", body="\n") + BODY * 9,
        text_of("1. Aims;", "2. Means:", "3. Ends,"),
        text_of(*(f"{i}. The keeper of the light wrote to her on day one of it." for i in "123")),
        text_of("1. 100", "2. 200", "3. 300"),
        text_of("VIEW FROM THE TOWER", "COMMISSION EXHIBIT", "FLOOR PLAN"),
        text_of("Ada: Yes.", "Bo: No.", "Ada: One."),
        text_of("  1. Aims", "  2. Means", "  3. Ends"),
    ],
)
def test_where_it_is_not_sure_there_are_none(text):
    assert plain_headings(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "One\n===\n\nTwo\n---\n\nThree\n=====\n",
            [(1, "One", 0), (2, "Two", 9), (1, "Three", 18)],
        ),
        ("=====\n One\n=====\n\nTwo\n=====\n", [(1, "One", 0), (2, "Two", 18)]),
        ("One\n===\nTwo\n===\n", [(1, "One", 0), (1, "Two", 8)]),
        (".. _label:\n\n1. One\n======\n", [(1, "1. One", 12)]),
        (".. comment\nOne\n===\n", [(1, "One", 11)]),
        ("Too long a title\n====\n", [(1, "Too long a title", 0)]),
        (":mod:`log` --- *The* ``x``\n####", [(1, "log --- The x", 0)]),
        ("`One <u>`_ :class:`Two <a.b>`\n~~~~", [(1, "One Two", 0)]),
        ("   \nOne\n===\n", [(1, "One", 4)]),
        ("Text\nand more.\n----\n", []),
        ("Text\n==\n", []),
        ("  One\n  ===\n", []),
        ("One\n=-=\n", []),
        ("====  ====\na     b\n====  ====\n", []),
        ("Text::\n\n    One\n    ===\n", []),
        ("-----\n\nText.\n\n-----\n", []),
        ("=====\nOne\n---\n", []),
        ("", []),
    ],
)
def test_headings_are_those_of_docutils(text, found):
    assert [heading[:3] for heading in rst_headings(text)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"TRIGGERS\n========\n{BODY}Use\n---{BODY}", [(1, "TRIGGERS"), (2, "Use")]),
        (f"{BODY}One\n====={BODY}Two\n====={BODY}", [(1, "One"), (1, "Two")]),
        (
            "LEASE\n=====\n\n"
            + text_of("1. Term", "2. Rent", "2.1 Deposit", "3. End")
            + "Signed\n------",
            [
                (1, "LEASE"),
                *[(2, "1. Term"), (2, "2. Rent"), (3, "2.1 Deposit"), (2, "3. End")],
                (2, "Signed"),
            ],
        ),
        (f"1. Aims\n=======\n{BODY}2. Means\n========{BODY}", [(1, "1. Aims"), (1, "2. Means")]),
        (f"{BODY}Name of a column\n----\nAda\n{BODY}12345\n-----{BODY}-- \nAda", []),
        (f"{BODY}foo(bar)\n^^^^^^^^{BODY}On Monday Bo wrote:\n____{BODY}", []),
        (f"It goes on\nand on\n------{BODY}", []),
    ],
)
def test_rules_as_long_as_a_line_make_it_a_heading_of_plain_text(read_one, text, found):
    document = read_one("a.txt", text)
    assert [tuple(each[:2]) for each in document.metadata.get("headings", ())] == found
    assert document.text == text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Aims\n====\nTo go on.\n\nMeans\n=====\nA boat.\n", "Aims"),
        ("For Vim 9.\n\nAims\n====\nTo go on.\n\nMeans\n=====\nA boat.\n", "a.txt"),
        ("For Vim 9.\n\nBoats\n=====\nOf all kinds.\n\nMeans\n-----\nA boat.\n", "Boats"),
    ],
)
def test_the_heading_of_a_section_is_no_title(read_one, text, title):
    assert read_one("a.txt", text).metadata["title"] == title


def test_a_document_has_its_title(read_one):
    document = read_one("a.rst", "One\n===\n\nText.\n")
    (heading,) = document.metadata["headings"]
    assert (document.metadata["title"], heading[:3]) == ("One", [1, "One", 0])


@pytest.mark.parametrize(
    ("text", "read", "left_out"),
    [
        (".. to do: ask Ash\n   and Elm\n\nThe pier.\n", "\nThe pier.\n", ["1 comment"]),
        ("The pier.\n\n..\n   Ask Ash.\n\n   And Elm.\n", "The pier.\n\n", ["1 comment"]),
        (".. one\n.. two\n\nThe pier.", "\nThe pier.", ["2 comments"]),
        (".. note:: It is closed.\n\nThe pier.\n", None, None),
        (".. _pier:\n.. [1] A note.\n.. |rope| replace:: hemp\n\nThe pier.\n", None, None),
        ("..\n\n   A quotation.\n", None, None),
        ("The pier::\n\n   .. is code\n", None, None),
    ],
)
def test_comments_are_left_out(read_one, text, read, left_out):
    document = read_one("a.rst", text)
    assert document.text == (text if read is None else read)
    assert document.metadata.get("left_out") == left_out


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:04,000\n<i>The boat</i>\nis late.\n\n"
            "2\n00:01:05,500 --> 00:01:07,000\n{\\an8}No.\n\n"
            "3\n00:01:08,000 --> 00:01:09,000\nNo.\n",
            "00:00:01 The boat is late.\n00:01:05 No.\n00:01:08 No.",
        ),
        (
            "a.vtt",
            "WEBVTT - A talk\n\nSTYLE\n::cue { color: red }\n\nNOTE by hand\n\n"
            "intro\n00:01.000 --> 00:04.000 line:0\n<v.loud Ada>Tom &amp; <b>I</b> say 2 < 3\n\n"
            "01:00:04.500 --> 01:00:07.000\n<v Bo Li>Yes.</v>\n",
            "00:01 Ada: Tom & I say 2 < 3\n01:00:04 Bo Li: Yes.",
        ),
        (
            "a.vtt",
            "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n \nso<00:00:01.500><c> we</c>\n\n"
            "00:00:02.000 --> 00:00:03.000\nso we\nbegin<00:00:02.500><c> now</c>\n\n"
            "00:00:03.000 --> 00:00:03.100\nbegin now\n",
            "00:00:01 so we\n00:00:02 begin now",
        ),
        ("a.srt", "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\nÇa va?\r\n", "00:00:01 Ça va?"),
        ("a.srt", "No cue at all.\n", "No cue at all.\n"),
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\n\nThe boat\n \nNOTE it\n\nis late.\n\n\n"
            "2\n00:00:03,000 --> 00:00:04,000\n12\n",
            "00:00:01 The boat NOTE it is late.\n00:00:03 12",
        ),
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:02,000\nOne.\n2\n00:00:03,000 --> 00:00:04,000\n\nTwo.\n"
            "00:00:05,000 --> 00:00:06,000\nAt 00:00:01,000 --> it.\n\nIn\n"
            "00:00:07,000 --> 00:00:08,000\nall.",
            "00:00:01 One.\n00:00:03 Two.\n00:00:05 At 00:00:01,000 --> it. In\n00:00:07 all.",
        ),
        (
            "a.vtt",
            "WEBVTT\n\n1\n00:01.000 --> 00:02.000\nOne.\n2\n00:03.000 --> 00:04.000\nTwo,\n\n"
            "three.\n\n00:05.000 --> 00:06.000\nFour.\n\nlast\n00:07.000 --> 00:08.000\nFive.\n",
            "00:01 One.\n00:03 Two, three.\n00:05 Four.\n00:07 Five.",
        ),
    ],
    ids="srt vtt growing crlf none blank near web".split(),
)
def test_what_is_said_has_its_time(read_one, name, data, text):
    assert read_one(name, data).text == text


def test_notes_are_told(read_one):
    cue = "00:0{}.000 --> 00:09.000\nOne\n\n"
    note = "NOTE by\nhand\n00:01.000 --> 00:02.000\n\n"
    document = read_one("a.vtt", f"WEBVTT\n\n{note}{cue.format(1)}NOTE\n\n{cue.format(3)}{note}")
    assert document.text == "00:01 One\n00:03 One"
    assert document.metadata["left_out"] == ["3 notes"]


@pytest.mark.parametrize("name", ["meetings", "warren-report"])
def test_transcripts_and_captions_have_none(corpus, name):
    for path in sorted(corpus(name).iterdir()):
        assert plain_headings(path.read_text(encoding="utf-8")) == []


STORE = '''\
"""Stores of texts.

They are small.
"""

import os

MOST = 9


# The only one.
@final
class Store(Base):
    """Holds texts."""

    n: int = 0

    def query(self, text):
        def inner():
            return text

        return inner()

    class Row:
        # One.
        @property
        async def text(self):
            class Deep:
                def too(self): ...

    n_rows = 3


def load(path):
    return Store(path)

if __name__ == "__main__":
    load(".")
    load("..")
'''


def test_definitions_of_python_are_headings(read_one):
    document = read_one("a.py", STORE)
    assert document.text == STORE
    assert headings(document) == [
        (1, "class Store", "# The only one."),
        (2, "query", "    def query(self, text):"),
        (2, "class Row", "    class Row:"),
        (3, "text", "        # One."),
        (1, "load", "def load(path):"),
        (1, "", 'if __name__ == "__main__":'),
    ]
    assert document.metadata["title"] == "Stores of texts."


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    print x\n\n\nclass A:\n    pass\n",
        "X = [\n" + "1,\n" * (MAX_PARSED // 3) + "]\n\nclass A:\n",
    ],
    ids=["another version", "long"],
)
def test_python_that_is_not_parsed_is_cut_at_blank_lines(read_one, text):
    assert headings(read_one("a.py", text)) == [(1, "", "class A:")]


JS = """\
import x from "x";

/** A store. */
class Store {

    query(text) {
    }
   \t
}

"""


def test_other_code_is_cut_at_blank_lines(read_one):
    assert headings(read_one("a.js", JS)) == [
        (1, "", "/** A store. */"),
        (1, "", "    query(text) {"),
        (1, "", "}"),
    ]


LINES = st.sampled_from("|  |class A {|  class B:|def f(x):|  f(x) {|}|# x".split("|")) | st.text(
    "{}(;=*&a <:", max_size=600
)


@given(st.lists(LINES, max_size=20).map("\n".join).filter(str.strip), st.sampled_from(SUFFIXES))
def test_any_code_has_headings_in_order(read_one, text, suffix):
    found = read_one(f"a{suffix}", text).metadata.get(HEADINGS, [])
    starts = [start for _, _, start, _ in found]
    assert starts == sorted({*starts})
    assert all(at == 0 or text[at - 1] == "\n" for at in starts)
    assert {level for level, *_ in found} <= {*range(1, DEEPEST + 1)}


def test_a_file_of_code_is_titled_by_its_name_and_cut_at_definitions(tmp_path):
    (tmp_path / "store.py").write_text(STORE.replace('"""', "'''"))
    (tmp_path / "store.js").write_text(JS)
    (tmp_path / "empty.py").write_text("x = 1\n")
    documents, _ = read_documents(tmp_path)
    assert [document.metadata.get("title") for document in documents] == [
        *(None, "store.js", "Stores of texts.")
    ]
    chunks = sentence_splitter(HashingEmbedding(), 60)(documents[2:])
    assert [chunk.metadata.get(SECTION) for chunk in chunks] == [
        *(None, "class Store", "class Store › query", "class Store › class Row › text", None)
    ]

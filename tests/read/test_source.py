"""Source code, whose classes and functions are headings."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex import read_documents
from hierindex.node import SECTION
from hierindex.read.documents import READERS
from hierindex.read.plain import DEEPEST, MAX_PARSED, SUFFIXES
from hierindex.read.split import PlacedSentenceSplitter, split_documents

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


def read(suffix, text):
    return READERS[suffix](BytesIO(text.encode()))


def headings(suffix, text):
    """Level, title and first line of each."""
    reading = read(suffix, text)
    assert reading.text == text
    return [(h.level, h.title, text[h.start :].split("\n")[0]) for h in reading.headings]


def test_definitions_of_python_are_headings():
    assert headings(".py", STORE) == [
        (1, "class Store", "# The only one."),
        (2, "query", "    def query(self, text):"),
        (2, "class Row", "    class Row:"),
        (3, "text", "        # One."),
        (1, "load", "def load(path):"),
        (1, "", 'if __name__ == "__main__":'),
    ]
    assert read(".py", STORE).metadata == {"title": "Stores of texts."}


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    print x\n\n\nclass A:\n    pass\n",
        "X = [\n" + "1,\n" * (MAX_PARSED // 3) + "]\n\nclass A:\n",
    ],
    ids=["another version", "long"],
)
def test_python_that_is_not_parsed_is_cut_at_blank_lines(text):
    assert headings(".py", text) == [(1, "", "class A:")]


JS = """\
import x from "x";

/** A store. */
class Store {

    query(text) {
    }
   \t
}

"""


def test_other_code_is_cut_at_blank_lines():
    assert headings(".js", JS) == [
        (1, "", "/** A store. */"),
        (1, "", "    query(text) {"),
        (1, "", "}"),
    ]


LINES = st.sampled_from("|  |class A {|  class B:|def f(x):|  f(x) {|}|# x".split("|")) | st.text(
    "{}(;=*&a <:", max_size=600
)


@given(st.lists(LINES, max_size=20), st.sampled_from(SUFFIXES))
def test_any_code_has_headings_in_order(lines, suffix):
    text = "\n".join(lines)
    found = read(suffix, text).headings
    starts = [heading.start for heading in found]
    assert starts == sorted({*starts})
    assert all(at == 0 or text[at - 1] == "\n" for at in starts)
    assert {heading.level for heading in found} <= {*range(1, DEEPEST + 1)}


def test_a_file_of_code_is_titled_by_its_name_and_cut_at_definitions(tmp_path):
    (tmp_path / "store.py").write_text(STORE.replace('"""', "'''"))
    (tmp_path / "store.js").write_text(JS)
    (tmp_path / "empty.py").write_text("x = 1\n")
    documents, _ = read_documents(tmp_path)
    assert [document.metadata.get("title") for document in documents] == [
        *(None, "store.js", "Stores of texts.")
    ]
    splitter = PlacedSentenceSplitter(chunk_size=30, chunk_overlap=0, tokenizer=str.split)
    chunks = split_documents(documents[2:], splitter)
    assert [chunk.metadata.get(SECTION) for chunk in chunks] == [
        *(None, "class Store", "class Store › query", "class Store › class Row › text", None)
    ]

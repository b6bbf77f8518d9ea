"""Text files in any encoding."""

import codecs
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.errors import SourceError
from hierindex.read.documents import (
    MAX_LINE,
    read_documents,
)

GERMAN = "Der Schlüssel für die Tür hängt an der Wand. Über das Café läuft ein müder Kater.\n"


QUOTED = (
    "\u201cThe café\u2019s elder owner\u201d, he said \u2026 and that once again, "
    "\u201cis late for his own déjeuner.\u201d\n"
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("plain", "plain"),
        (GERMAN, GERMAN),
        (codecs.BOM_UTF8 + GERMAN.encode(), GERMAN),
        (GERMAN.encode("utf-16"), GERMAN),
        (codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"), GERMAN),
        (GERMAN.encode("latin-1"), GERMAN),
        (QUOTED.encode("cp1252"), QUOTED),
        ("café\n".encode("latin-1"), "café\n"),
        (GERMAN.replace("\n", "\r\n").encode("latin-1"), GERMAN),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("雪\u2028\x85\x0c\U0001f600", "雪\u2028\x85\x0c\U0001f600"),
        ("no end of line \n\n", "no end of line \n\n"),
        ("x" * MAX_LINE, "x" * MAX_LINE),
    ],
    ids=[
        "ascii",
        "utf-8",
        "bom",
        "utf-16",
        "utf-16-be",
        "latin-1",
        "cp1252",
        "short latin-1",
        "latin-1 crlf",
        "line ends",
        "odd characters",
        "blanks at the end",
        "longest line",
    ],
)
def test_text_is_what_the_file_says(read_one, data, text):
    assert read_one("a.txt", data).text == text


@given(st.lists(st.text(max_size=20), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_text_equals_what_open_reads(tmp_path_factory, lines, end):
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_bytes(("x" + end.join(lines)).replace("\0", "").encode())
    if not path.read_bytes().startswith(codecs.BOM_UTF8):
        assert read_documents(path)[0][0].text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["a.txt", "a.html", "a.pdf"])
@pytest.mark.parametrize("begin", [b"", b"text", b"%PDF-1.7\n"])
def test_a_file_that_does_not_begin_like_text_is_not_loaded(tmp_path, name, begin):
    (tmp_path / name).write_bytes(begin)
    os.truncate(tmp_path / name, 2**40)
    with pytest.raises(SourceError, match=r"is not text|cannot be read as PDF"):
        read_documents(tmp_path)

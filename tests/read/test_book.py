"""Books: chapters as one text, their marks and merged cells."""

from io import BytesIO
from zipfile import ZipFile

import pytest
from office_files import epub, zipped

from hierindex.errors import SourceError
from hierindex.node import HEADINGS


def test_chapters_are_read_in_their_order_and_headings_are_where_they_stand(read_one):
    chapters = {
        "b.xhtml": "<?xml version='1.0'?><html><head><title/></head><body><h1>First</h1>"
        "<p>An <em>odd</em> day.</p></body></html>",
        "the%20end.xhtml": "<html><head><title>No</title></head><body><h2 id='x'>Second</h2>"
        "<ol><li>one</li><li>two</li></ol></body></html>",
        "gone.xhtml": "",
    }
    document = read_one("a.epub", epub(chapters))
    assert document.text == "First\nAn odd day.\nSecond\n1. one\n2. two"
    assert document.metadata[HEADINGS] == [[1, "First", 0, ""], [2, "Second", 18, ""]]
    about = [document.metadata[key] for key in ("title", "author", "date")]
    assert about == ["A book", "Ada", "1901-02-03"]


def test_each_chapter_is_read_once_and_pictures_are_not(read_one):
    with ZipFile(BytesIO(epub({"a.html": "<p>Once.", "b.png": "\0"}))) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    package = parts["OEBPS/book.opf"].replace(b'"b.png"', b"'b.png' media-type='image/png'")
    again = b"<itemref idref='i0'/>" * 1000 + b"</spine>"
    parts["OEBPS/book.opf"] = package.replace(b"</spine>", again)
    assert read_one("a.epub", zipped(parts)).text == "Once."


def test_chapters_beside_an_article_are_content(read_one):
    article = f"<article><p>{'It is so. ' * 50}</article>"
    book = epub({"a.html": "<p><a href='b.html'>Ada</a>", "b.html": article})
    assert read_one("a.epub", book).text.startswith("Ada\nIt is so.")


def test_protected_books_are_skipped(read_one):
    lock = {"META-INF/encryption.xml": '<CipherReference URI="OEBPS/font.otf"/>'}
    assert read_one("a.epub", epub({"a.xhtml": "<p>Open."}, lock)).text == "Open."
    lock = {"META-INF/encryption.xml": '<CipherReference URI="OEBPS/a.xhtml"/>'}
    with pytest.raises(SourceError, match="is an encrypted book"):
        read_one("a.epub", epub({"a.xhtml": "<p>\x01\x02"}, lock))

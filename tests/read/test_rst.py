"""Headings of reStructuredText."""

import pytest

from hierindex.read.documents import read_documents
from hierindex.read.plain import rst_headings


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


def test_a_document_has_its_title(tmp_path):
    (tmp_path / "a.rst").write_text("One\n===\n\nText.\n")
    ((document,), _) = read_documents(tmp_path)
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
def test_comments_are_left_out(tmp_path, text, read, left_out):
    (tmp_path / "a.rst").write_text(text)
    (document,), _ = read_documents(tmp_path)
    assert document.text == (text if read is None else read)
    assert document.metadata.get("left_out") == left_out

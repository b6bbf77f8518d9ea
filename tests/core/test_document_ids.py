"""Documents that are parts of files, by their ids."""

import pytest

from hierindex.core.document_ids import file_of, name_of, wholes


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ("a.txt#b.txt", []),
        ("C#/a.txt", []),
        ("a.eml", []),
        ("a.eml#", []),
        ("a.eml#b/c.txt", []),
        ("/x/A.EML#b", ["b"]),
        ("x#1/a.Mbox#line\nbreak.eml#c.pdf", ["line\nbreak.eml", "c.pdf"]),
        ("a.eml#x/b.msg#c.eml#d.eml", ["c.eml", "d.eml"]),
    ],
)
def test_parts_are_those_after_a_mail_or_a_mailbox(document, parts):
    every = wholes(document)
    assert every[0] == document
    assert "#".join([file_of(document), *parts]) == document
    assert len(every) == 1 + len(parts)
    assert [name_of(each) for each in every[-2::-1]] == parts

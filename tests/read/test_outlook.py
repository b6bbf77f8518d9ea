"""Messages that Outlook saved."""

import sys
from datetime import UTC, datetime

import pytest
from outlook import ADDRESS, BODY, FROM, HEADERS, HTML, SENT, SUBJECT, TO, compound, outlook

from hierindex import Skipped, read_documents
from hierindex.node import HEADINGS
from hierindex.read import office

FIELDS = {
    SUBJECT: "Grüße aus dem Büro",
    FROM: "Ada Lovelace",
    ADDRESS: "ada@example.org",
    TO: "Bob; Eve",
    SENT: datetime(2026, 11, 22, 17, tzinfo=UTC),
}


@pytest.fixture
def read(read_one):
    return lambda values, attachments=(): read_one("a.msg", outlook(values, attachments))


def test_a_message_is_its_subject_its_plain_text_and_the_names_of_its_attachments(read):
    text = "Hello.\r\n\r\n# No heading.\0"
    reading = read({**FIELDS, BODY: text, HTML: b"<p>Hello."}, ("plan.png", "a \u2014 b.pdf"))
    assert reading.text == (
        "Grüße aus dem Büro\n\nHello.\n\n# No heading.\n\n\nAttachments: plan.png, a \u2014 b.pdf"
    )
    assert reading.metadata[HEADINGS] == [[1, "Grüße aus dem Büro", 0, ""]]
    names = ("title", "from", "to", "date")
    assert [reading.metadata[name] for name in names] == [
        "Grüße aus dem Büro",
        "Ada Lovelace <ada@example.org>",
        "Bob, Eve",
        "2026-11-22T17:00:00+00:00",
    ]


def test_a_message_that_was_received_has_the_addresses_of_its_header(read):
    header = "From: Ada <ada@example.org>\r\nTo: =?utf-8?q?J=C3=B6rg?=\r\n <j@example.org>\r\n\r\n"
    metadata = read({**FIELDS, HEADERS: header, BODY: "Hello."}).metadata
    assert metadata["from"] == "Ada <ada@example.org>"
    assert metadata["to"] == "Jörg <j@example.org>"


def test_html_beside_a_stub_is_read(read):
    html = b"<p>The pier closes on Friday at noon."
    assert read({SUBJECT: "x", BODY: "See in a browser.", HTML: html}).text.endswith("at noon.")


def test_messages_beside_other_files(tmp_path, monkeypatch):
    """Other files with the suffix are text, and malformed ones are skipped with the reason."""
    message = outlook({**FIELDS, BODY: "The oil is low."})
    files = {
        "bare.msg": compound({}),
        "cut.msg": message[:700],
        "good.msg": message,
        "large.msg": outlook({BODY: "x" * 1900}),
        "text.msg": b"Plain text.",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(office, "MAX_GROWTH", 1000)
    documents, skipped = read_documents(tmp_path)
    assert [document.id_ for document in documents] == ["good.msg", "text.msg"]
    assert documents[0].metadata["title"] == "Grüße aus dem Büro"
    assert documents[1].text == "Plain text."
    reasons = {each.path: each.reason for each in skipped}
    assert reasons.pop("large.msg").endswith("bytes when unpacked")
    assert {*reasons.values()} == {"cannot be read as an Outlook message"}
    monkeypatch.setitem(sys.modules, "oxmsg", None)
    _, skipped = read_documents(tmp_path)
    assert Skipped("good.msg", "needs `pip install 'hierindex[office]'`") in skipped

from email.message import EmailMessage
from io import BytesIO

import pytest

from hierindex.node import Heading
from hierindex.read.documents import read_documents
from hierindex.read.mail import read_mail


def mail(text="", html="", **header):
    message = EmailMessage()
    for name, value in header.items():
        message[name] = value
    message.set_content(text)
    if html:
        message.add_alternative(html, subtype="html")
    return message


HEADER = {
    "Subject": "Grüße aus dem Büro",
    "From": "Ada <ada@example.org>",
    "To": "Bob <bob@example.org>, Eve <eve@example.org>",
    "Date": "Sun, 22 Nov 2026 18:00:00 +0100",
}


def read(message):
    return read_mail(BytesIO(bytes(message)))


def test_a_mail_is_its_subject_and_its_plain_part():
    reading = read(mail("Hello.\n\n# No heading.\n", "<p>Hello.</p>", **HEADER))
    assert reading.text == "Grüße aus dem Büro\n\nHello.\n\n# No heading.\n"
    assert list(reading.headings) == [Heading(1, "Grüße aus dem Büro", 0)]
    assert reading.metadata == {
        "title": "Grüße aus dem Büro",
        "from": "Ada <ada@example.org>",
        "to": "Bob <bob@example.org>, Eve <eve@example.org>",
        "date": "2026-11-22T18:00:00+01:00",
    }


def test_without_a_plain_part_the_html_part_is_read():
    html = "<meta charset='koi8-r'><h1>Où?</h1><p>Ici &amp; là.</p>"
    message = mail(" \n", html, Subject="Question")
    reading = read(b"Date: yesterday\n" + bytes(message))
    assert reading.text == "Question\n\nOù?\nIci & là."
    assert reading.metadata == {"title": "Question", "date": "yesterday"}
    assert [h.level for h in reading.headings] == [1, 2][: len(reading.headings)]
    for heading in reading.headings:
        assert reading.text[heading.start :].startswith(heading.title)


def test_attachments_are_named():
    message = mail("See below.\n", **HEADER)
    message.add_attachment(b"\0" * 99, maintype="image", subtype="png", filename="plan.png")
    message.add_attachment(b"\0", maintype="application", subtype="pdf")
    reading = read(message)
    assert reading.text.endswith("See below.\n\n\nAttachments: plan.png, application/pdf")
    assert reading.metadata["left_out"] == ["2 attachments"]


@pytest.mark.parametrize(
    "text", ["No header at all.\n", "X-Other: x\n\nBody.\n", "", "Grüße\n"], ids=repr
)
def test_what_has_no_header_is_read_as_text(text):
    assert read(text.encode()) == (text, {}, ())


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Type: text/plain; charset=no-such\n",
        b"Content-Type: text/plain; charset=utf-16\nContent-Transfer-Encoding: base64\n",
        b"Content-Type: multipart/mixed; boundary=\n",
        b"Content-Type: multipart/mixed; boundary=x\n\n--x\n" * 300,
        b"From: =?utf-8?q?=ff=fe?= <\xff>\nTo: " + b"a@b, " * 50_000 + b"\n",
        b"Date: Sun, 99 Nov 99999 99:99:99\n",
        b"Date: 1 Jan 99999999999999999999 10:00:00 +0000\n",
        b"Content-Type: message/rfc822\n\nSubject: x\n" * 500,
    ],
    ids="charset utf-16 boundary nested recipients date year forwarded".split(),
)
def test_odd_mails_are_read_or_skipped_with_a_reason(tmp_path, header):
    (tmp_path / "a.eml").write_bytes(b"Subject: Odd\n" + header + b"\nThe body.\n")
    (tmp_path / "good.txt").write_text("good")
    documents, skipped = read_documents(tmp_path)
    assert len(documents) + len(skipped) == 2
    assert {each.reason for each in skipped} <= {"cannot be read as an e-mail"}

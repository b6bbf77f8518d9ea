import re
from email.message import EmailMessage

import pytest
from read.conftest import placed_headings

from hierindex import read_documents
from hierindex.node import HEADINGS, Heading


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
    "Cc": "Kim <kim@example.org>",
    "Date": "Sun, 22 Nov 2026 18:00:00 +0100",
}


@pytest.fixture
def read(read_one):
    return lambda message: read_one("a.eml", bytes(message))


def test_a_mail_is_its_subject_and_its_plain_part(read):
    reading = read(mail("Hello.\n\n# No heading.\n", "<p>Hello.</p>", **HEADER))
    assert reading.text == "Grüße aus dem Büro\n\nHello.\n\n# No heading.\n"
    assert placed_headings(reading) == [Heading(1, "Grüße aus dem Büro", 0)]
    names = ("title", "from", "to", "cc", "date")
    assert [reading.metadata[name] for name in names] == [
        *[*HEADER.values()][:4],
        "2026-11-22T18:00:00+01:00",
    ]


@pytest.mark.parametrize("cte", ["8bit", "base64"])
def test_a_mail_that_begins_with_a_byte_order_mark_is_a_mail(cte, read_one):
    message = EmailMessage()
    message["Subject"] = "Opening hours"
    message.set_content("The café opens at nine.\n", cte=cte)
    document = read_one("a.eml", bytes(message).decode().encode("utf-8-sig"))
    assert document.text == "Opening hours\n\nThe café opens at nine.\n"
    assert document.metadata["title"] == "Opening hours"


def test_without_a_plain_part_the_html_part_is_read(read):
    html = "<meta charset='koi8-r'><h1>Où?</h1><p>Ici &amp; là.</p>"
    message = mail(" \n", html, Subject="Question")
    reading = read(b"Date: yesterday\n" + bytes(message))
    assert reading.text == "Question\n\nOù?\nIci & là."
    assert (reading.metadata["title"], reading.metadata["date"]) == ("Question", "yesterday")
    assert [heading.level for heading in placed_headings(reading)] == [1, 2]


def test_attachments_are_named(read):
    message = mail("See below.\n", **HEADER)
    message.add_attachment(b"\0" * 99, maintype="image", subtype="png", filename="plan.png")
    message.add_attachment(b"\0", maintype="application", subtype="pdf")
    reading = read(message)
    assert reading.text.endswith("See below.\n\n\nAttachments: plan.png, application/pdf")


def test_an_attached_page_of_xhtml_is_an_attachment(read):
    message = mail("See below.\n", Subject="x")
    message.add_attachment(b"", maintype="application", subtype="xhtml+xml", filename="a.xhtml")
    assert read(message).text == "x\n\nSee below.\n\n\nAttachments: a.xhtml"


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


def parts(subtype, *inside, **header):
    """Return a mail of parts: pairs of a content type and a body, or mails."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in header.items()]
    lines += [f'Content-Type: multipart/{subtype}; boundary="B{len(inside)}{subtype}"', ""]
    for kind, body in inside:
        lines += [f"--B{len(inside)}{subtype}", f"Content-Type: {kind}", "", body]
    return "\n".join([*lines, f"--B{len(inside)}{subtype}--", ""])


def inner(whole):
    """Return a mail of parts as a part."""
    header, _, body = whole.partition("\n\n")
    return header.rpartition("Content-Type: ")[2], body


PLAIN, HTML, PICTURE = (
    "text/plain; charset=utf-8",
    "text/html; charset=utf-8",
    "image/png; name=a.png",
)
INVITATION = """BEGIN:VCALENDAR
METHOD:REQUEST
BEGIN:VTIMEZONE
TZID:Europe/Oslo
DTSTART:19700101T000000
END:VTIMEZONE
BEGIN:VEVENT
SUMMARY:Review of
  the pier
DTSTART;TZID=Europe/Oslo:20240514T100000
DTEND;TZID=Europe/Oslo:20240514T113000
LOCATION:Room 2\\, first floor
ORGANIZER;CN=Ada:mailto:ada@example.org
BEGIN:VALARM
TRIGGER:-PT15M
END:VALARM
END:VEVENT
END:VCALENDAR
"""


@pytest.mark.parametrize(
    ("mixed", "said"),
    [
        (
            parts("mixed", (PLAIN, "One."), (PICTURE, "x"), (PLAIN, "Two.")),
            ["One.", "Two.", "a.png"],
        ),
        (parts("mixed", (PLAIN, "One."), (HTML, "<p>Two <b>bold</b>.")), ["One.", "Two bold."]),
        (
            parts(
                "mixed",
                inner(parts("alternative", (PLAIN, "One."), (HTML, "<p>One."))),
                (PLAIN, "The list's footer."),
            ),
            ["One.", "The list's footer."],
        ),
        (
            parts("mixed", ("message/rfc822", "Subject: Inner\nFrom: Bo\nDate: 1 May\n\nHidden.")),
            ["Inner", "From: Bo", "Date: 1 May", "Hidden."],
        ),
        (
            parts("alternative", (PLAIN, "Come."), ("text/calendar; charset=utf-8", INVITATION)),
            [
                "Come.",
                "Summary: Review of the pier",
                "Start: 2024-05-14 10:00 (Europe/Oslo)",
                "End: 2024-05-14 11:30 (Europe/Oslo)",
                "Place: Room 2, first floor",
                "Organiser: Ada",
            ],
        ),
    ],
    ids="picture html footer forwarded invitation".split(),
)
def test_all_texts_of_a_mail_are_read(read, mixed, said):
    text = read(("Subject: All\n" + mixed).encode()).text
    at = [text.index(part) for part in said]
    assert at == sorted(at)
    assert "<" not in text
    assert text.count("One.") <= 1


PAGE = "<p>The pier closes on Friday at noon. Bring your keys to the harbour office.</p>"


@pytest.mark.parametrize(
    ("plain", "html", "kept"),
    [
        ("View this mail in a browser: https://x.example/1", PAGE, [False, True]),
        ("Your client cannot show HTML.", PAGE, [False, True]),
        (
            "This mail is in HTML. " + "Use a client that can show it, please. " * 3,
            "<p>Noon.",
            [1, 1],
        ),
        (
            "The pier closes on Friday at noon. Bring keys to the harbour office.",
            PAGE,
            [True, False],
        ),
    ],
)
def test_html_is_read_beside_a_stub(read, plain, html, kept):
    message = mail(plain, html, Subject="News")
    text = " ".join(read(message).text.split())
    html_said = html.replace("<p>", "").replace("</p>", "")
    assert [plain.strip() in text, html_said in text] == kept


@pytest.mark.parametrize(
    ("plain", "html", "left_out"),
    [
        ("The pier closes at noon.", "<p>The pier closes at <b>noon</b>.", None),
        ("The pier closes at noon.", "<p>The pier closes at noon today.", ["1 word"]),
        (
            "The pier closes at noon.",
            "<p>The pier closes at noon.<p>Bring keys, keys!",
            ["2 words"],
        ),
        ("Noon", "<p>The pier closes.", None),
        ("The pier closes at one.", "<h1>Bye", None),
    ],
)
def test_words_that_only_the_html_has_are_read_or_told(read, plain, html, left_out):
    reading = read(mail(plain, html, Subject="News"))
    said = left_out and [f"{words} that only the HTML has" for words in left_out]
    assert reading.metadata.get("left_out") == said
    assert ("Bye" in html) == ("Bye" in reading.text)
    assert ("The pier closes." in html) == ("The pier closes." in reading.text)


@pytest.mark.parametrize("label", ["utf8mb4", "x-unknown", "unknown-8bit", "_", "iso-8859-8-i"])
def test_unknown_labels_of_encodings_do_not_matter(read, label):
    header = f"Subject: x\nContent-Type: text/plain; charset={label}\n\n"
    assert "Überfahrt – täglich" in read(header.encode() + "Überfahrt – täglich\n".encode()).text


POSTED = "From ada@example.org Tue May 14 10:00:00 2024\n"


def without_digest(document_id):
    return re.sub(r" \([0-9a-f]{6}\)\.eml$", ".eml", document_id)


def test_each_mail_of_a_mailbox_is_a_document(written):
    first = mail("From 2019 on.\n\nFrom here on.\n", **HEADER)
    second = mail("See it.\n", From="Bo <bo@example.org>", Date="Mon, 2 Nov 2026 08:05:00 -0000")
    second.add_attachment(b"x\0", maintype="image", subtype="png", filename="a.png")
    third = mail("Café\n", Subject="Re: one/#2", Date="soon")
    mails = [POSTED + each.as_string(unixfrom=False) + "\n" for each in (first, second, third)]
    data = "".join(mails).replace("\nFrom here", "\n>From here")
    documents, skipped = read_documents(written({"in/a.mbox": data + POSTED + "\n"}))
    assert [without_digest(d.doc_id) for d in documents] == [
        "in/a.mbox#2026-11-22 17:00 Grüße aus dem Büro.eml",
        "in/a.mbox#2026-11-02 08:05.eml",
        "in/a.mbox#Re: one__2.eml",
    ]
    assert [(without_digest(each.path), each.reason) for each in skipped] == [
        ("in/a.mbox#e-mail.eml", "contains only white space")
    ]
    one, two, three = documents
    assert one.text == "Grüße aus dem Büro\n\nFrom 2019 on.\n\nFrom here on.\n"
    assert (one.metadata["file_path"], one.metadata["folder"]) == ("in/a.mbox", "in")
    assert one.metadata["file_name"] == one.doc_id.partition("#")[2]
    assert one.metadata["title"] == "Grüße aus dem Büro"
    assert one.metadata["from"] == HEADER["From"]
    assert (two.metadata["left_out"], "left_out" in one.metadata) == (["a.png is not text"], False)
    assert "Café" in three.text


@pytest.fixture
def read_mails(written):
    def read_mails(*mails):
        folder = written({"a.mbox": "".join(f"{POSTED}{each}\n" for each in mails)})
        documents, skipped = read_documents(folder)
        assert not skipped
        return {document.doc_id: document for document in documents}

    return read_mails


def test_mails_keep_their_ids_when_others_come_and_go(read_mails):
    def ids(*mails):
        return [*read_mails(*mails)]

    one, two = (mail(f"{word}\n", Subject=word, Date=HEADER["Date"]) for word in ("One", "Two"))
    assert ids(two) == ids(one, two, one)[1:2]
    assert ids(one, two, one) == ids(one, two)
    other = mail("Other words.\n", Subject="One", Date=HEADER["Date"])
    assert ids(other, one) == [*ids(other), *ids(one)] != ids(one) * 2
    assert ids(mail("One\n", **HEADER), mail("One\n", **HEADER | {"To": "Bo"}))[1:]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("Date: 1 Jan 99999999999999999999 10:00:00 +0000\nSubject: Tea", "Tea"),
        ("Date: 31 Dec 9999 23:00:00 -0500\nSubject: Tea", "Tea"),
        (
            "Date: 14 May 2024 10:00\nSubject: =?utf-8?q?Caf=C3=A9?=\r\n  and\n\ttea",
            "2024-05-14 10:00 Café and tea",
        ),
        ("SUBJECT: " + "x" * 90, "x" * 80),
        ("X-Subject: Tea\nFrom: Bo", "e-mail"),
        ("To: Bo\n\nSubject: Tea", "e-mail"),
    ],
)
def test_a_mail_in_a_mailbox_is_named_by_time_and_subject(read_mails, header, name):
    ((document_id, document),) = read_mails(f"{header}\n\nText.\n").items()
    assert without_digest(document_id) == f"a.mbox#{name}.eml"
    assert document.text.endswith("Text.\n")


@pytest.mark.parametrize("data", ["No mail.\n", "From here on it is text.\n", ">From me\n"])
def test_a_mailbox_without_mails_is_text(read_one, data):
    assert read_one("a.mbox", data).text == data


@pytest.mark.parametrize("name", ["a.mht", "a.mhtml"])
def test_a_web_archive_is_its_page(read_one, name):
    page = "<title>Café</title><h1>Menu</h1><p>Tea &amp; cake"
    whole = parts("related", ("text/css", "p {}"), (HTML, page), (PICTURE, "x"), Subject="x")
    document = read_one(name, whole)
    assert document.text == "Menu\nTea & cake"
    assert document.metadata["title"] == "Café"
    assert read_one(name, "Nothing.\n").text == "Nothing.\n"


XHTML = "application/xhtml+xml; charset=utf-8"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (
            [(HTML, "<title>T</title><frameset>"), (HTML, "<h1>Tea</h1>"), (HTML, "<p>One")],
            "Tea\n\nOne",
        ),
        ([(HTML, "<p>One"), (PLAIN, "log"), (HTML, " "), (HTML, "<p>Two")], "One\n\nTwo"),
        ([(XHTML, "<html><head><title>T</title></head><body><p>One</p></body></html>")], "One"),
        ([("text/css", "p {}"), (PLAIN, "One & two")], "One & two"),
    ],
)
def test_all_pages_of_a_web_archive_are_read(read_one, inside, text):
    document = read_one("a.mht", parts("related", *inside, Subject="x"))
    assert document.text.strip() == text
    assert ("<title>" in inside[0][1]) == (document.metadata.get("title") == "T")
    placed_headings(document)


def test_a_calendar_is_its_events(read_one):
    day = "BEGIN:VEVENT\r\nSUMMARY:Tea\r\nDTSTART;VALUE=DATE:20240514\r\nEND:VEVENT\r\n"
    assert read_one("a.ics", day * 2).text == "\n\n".join(["Summary: Tea\nStart: 2024-05-14"] * 2)
    assert read_one("a.ics", "No event.\n").text == "No event.\n"


TEA = "SUMMARY:Tea\nDTSTART:20240514T100000Z\n"
TEA_LINES = "Summary: Tea\nStart: 2024-05-14 10:00 UTC"
ALARM = "BEGIN:VALARM\nDESCRIPTION:Reminder\nDURATION:PT5M\nEND:VALARM\n"
ZONE = (
    "BEGIN:VTIMEZONE\nBEGIN:STANDARD\nDTSTART:19701025T030000\nRRULE:FREQ=YEARLY\n"
    "END:STANDARD\nEND:VTIMEZONE\n"
)


@pytest.mark.parametrize(
    ("before", "fields", "after", "lines"),
    [
        ("", "", "", []),
        (ZONE, f"{ALARM}LOCATION:Hall\n", ZONE, ["Place: Hall"]),
        ("", "BEGIN:X\nSTATUS:Odd\nEND:X\nLOCATION:Hall\n", "", ["Place: Hall"]),
        ("BEGIN:VALARM\n" * 100_000, "", "", []),
        ("", 'DESCRIPTION;ALTREP="cid:a;b":Bring: cake\n', "", ["Description: Bring: cake"]),
        ("", 'DESCRIPTION;X="a:Bring cake\n', "", ["Description: Bring cake"]),
        (
            "",
            "RRULE:FREQ=WEEKLY;COUNT=3;BYDAY=TU\nEXDATE;TZID=Europe/Oslo:20240521T100000,20240528\n",
            "",
            [
                "Repeats: FREQ=WEEKLY;COUNT=3;BYDAY=TU",
                "Except: 2024-05-21 10:00,2024-05-28 (Europe/Oslo)",
            ],
        ),
        ("", "STATUS:CANCELLED\nDURATION:PT1H\n", "", ["Status: CANCELLED", "Duration: PT1H"]),
        (
            "",
            "DESCRIPTION:20240514\n",
            "END:VCALENDAR\nEND:X\nDUE:20240514\n",
            ["Description: 20240514"],
        ),
    ],
)
def test_an_event_is_its_own_fields(read_one, before, fields, after, lines):
    event = f"BEGIN:VEVENT\n{TEA}{fields.strip()}\nEND:VEVENT\n"
    text = read_one("a.ics", f"BEGIN:VCALENDAR\n{before}{event}{after}END:VCALENDAR\n").text
    assert text == "\n".join([TEA_LINES, *lines])


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_fields_in_plain_bytes_are_read(read, encoding):
    data = "Subject: Café – £5 für Öl\nFrom: Müller <m@example.org>\n\nText.\n".encode(encoding)
    metadata = read(data).metadata
    assert (metadata["title"], metadata["from"]) == ("Café – £5 für Öl", "Müller <m@example.org>")


@pytest.mark.parametrize(
    "text", ["No header at all.\n", "X-Other: x\n\nBody.\n", "Grüße\n"], ids=repr
)
def test_what_has_no_header_is_read_as_text(read, text):
    document = read(text.encode())
    assert document.text == text
    assert not {"title", "from", HEADINGS} & document.metadata.keys()

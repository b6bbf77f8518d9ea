"""Attachments are documents of their own."""

import re
from email.message import EmailMessage
from pathlib import Path

import pytest
from llama_index.core.schema import Document
from outlook import BODY, SUBJECT, outlook
from pdfs import Typed, typed

from hierindex import FileReader, read_documents
from hierindex.errors import SourceError
from hierindex.node import PAGES
from hierindex.read.documents import FileContent

PNG = b"\x89PNG\r\n\x1a\n\0\0"
BINARY = {"maintype": "application", "subtype": "octet-stream"}


def mail(*attachments: tuple[str, bytes], subject: str = "The pier") -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"] = subject, "Ada <ada@example.org>"
    message.set_content("See below.\n")
    for name, data in attachments:
        message.add_attachment(data, filename=name, **BINARY)
    return message


def boxed(*mails: EmailMessage) -> bytes:
    posted = b"From ada@example.org Tue May 14 10:00:00 2024\n"
    return b"".join(posted + bytes(each) + b"\n" for each in mails)


def read(folder: Path, **options) -> dict[str, Document]:
    documents, skipped = read_documents(folder, **options)
    assert not skipped
    return {document.doc_id: document for document in documents}


def test_what_can_be_read_is_read_as_its_file_would_be(written):
    pdf = typed([Typed("The crane lifts two tons.", 700)])
    attached = [("crane.pdf", pdf), ("plan.MD", b"# Berth\n\nNine."), ("a.png", PNG), ("b", b"")]
    found = read(written({"in/pier.eml": bytes(mail(*attached))}))
    assert [*found] == ["in/pier.eml", "in/pier.eml#crane.pdf", "in/pier.eml#plan.MD"]
    whole, crane, plan = found.values()
    assert whole.text.endswith("Attachments: crane.pdf, plan.MD, a.png, b")
    assert whole.metadata["left_out"] == ["a.png is not text", "b is empty"]
    assert (crane.text, crane.metadata[PAGES]) == ("The crane lifts two tons.", 1)
    assert plan.metadata["headings"][0][1] == plan.metadata["title"] == "Berth"
    assert plan.metadata["last_modified_date"] == whole.metadata["last_modified_date"]
    for name, document in zip(("pier.eml", "crane.pdf", "plan.MD"), found.values(), strict=True):
        assert document.metadata["file_name"] == name
        assert (document.metadata["file_path"], document.metadata["folder"]) == (
            "in/pier.eml",
            "in",
        )
    assert [FileContent.of(each).kind for each in found.values()] == ["eml", "pdf", "md"]


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        (["a.txt"] * 3, ["a (98e0a6).txt", "a (8fe80a).txt", "a (6e2662).txt"]),
        (["a (2).txt", "a.txt", "a.txt"], ["a (2).txt", "a (8fe80a).txt", "a (6e2662).txt"]),
        (["../x/y#z.txt", "..", "."], [".._x_y_z.txt", "..", "unnamed"]),
        (["n" * 300 + ".txt"], ["n" * 96 + ".txt"]),
        (["Grüße \u2013 \t neu.txt", " "], ["Grüße \u2013 _ neu.txt", "unnamed"]),
    ],
)
def test_ids_are_distinct_and_are_no_paths(written, names, ids):
    attached = [(name, f"It is {i}.".encode()) for i, name in enumerate(names)]
    found = read(written({"a.eml": bytes(mail(*attached))}))
    assert [*found] == ["a.eml", *(f"a.eml#{name}" for name in ids)]
    assert [d.text for d in found.values()][1:] == [f"It is {i}." for i in range(len(names))]


@pytest.mark.parametrize(
    ("header", "data", "found"),  # documents, or what is not read
    [
        ("text/csv; name=a.csv", "name,born\nAda,1815\nBob,1816", {"a.csv": "name: Ada"}),
        ('text/plain; charset=koi8-r; name="a.txt"', "\u0434\u0430", {"a.txt": "\u0434\u0430"}),
        ("text/html", "<h1>Bees</h1><p>Hum.", {"unnamed.html": "Bees\nHum."}),
        ("application/json; name=a", '{"bee": "hums"}', {"a.json": "bee: hums"}),
        ("application/pgp-signature; name=a.asc", "-----BEGIN PGP SIGNATURE-----", "a.asc"),
        ("image/svg+xml; name=a.svg", "<svg><text>Bee</text></svg>", "a.svg"),
        ("text/plain; name=a.txt\nContent-Transfer-Encoding: base64", "AGEA", "a.txt"),
        ("text/plain; charset=utf-8\nContent-Transfer-Encoding: base64", "AGEA", "unnamed.txt"),
    ],
    ids="csv koi8 html json signature picture binary damaged".split(),
)
def test_a_type_tells_what_a_name_does_not(written, header, data, found):
    encoded = data.encode("koi8-r" if "koi8" in header else "utf-8")
    whole = b"Subject: x\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\nSee.\n--B\n"
    whole += f"Content-Type: {header}\nContent-Disposition: attachment\n\n".encode()
    documents = read(written({"a.eml": whole + encoded + b"\n--B--\n"}))
    left_out = documents.pop("a.eml").metadata.get("left_out")
    if isinstance(found, str):
        assert (documents, left_out) == ({}, [f"{found} is not text"])
        return
    assert left_out is None
    assert [*documents] == [f"a.eml#{name}" for name in found]
    for document, text in zip(documents.values(), found.values(), strict=True):
        assert text in document.text


def test_attachments_of_forwarded_and_of_attached_mails(written):
    """A forwarded mail is text of the one around it; an attached file with a mail is not."""
    inner = mail(("crane.txt", b"The crane."), ("a.png", PNG), subject="Inner")
    outer = mail(("inner.eml", bytes(inner)), ("crane.txt", b"Another crane."))
    outer.add_attachment(inner)
    found = read(written({"box.mbox": boxed(outer)}))
    at = next(iter(found))
    assert re.fullmatch(r"box\.mbox#The pier \([0-9a-f]{6}\)\.eml", at)
    assert [*found] == [
        at,
        f"{at}#inner.eml",
        f"{at}#inner.eml#crane.txt",
        f"{at}#crane (afc1ed).txt",
        f"{at}#crane (3e05ed).txt",
    ]
    assert "Inner" in found[at].text
    assert found[at].metadata["left_out"] == ["a.png is not text"]
    assert found[f"{at}#inner.eml"].metadata["left_out"] == ["a.png is not text"]
    assert found[f"{at}#inner.eml#crane.txt"].metadata["file_path"] == "box.mbox"


def test_attachments_of_outlook(written):
    found = read(written({"a.msg": outlook({SUBJECT: "x", BODY: "See."}, {"b.txt": b"Bees."})}))
    assert [*found] == ["a.msg", "a.msg#b.txt"]
    assert found["a.msg#b.txt"].text == "Bees."
    assert "left_out" not in found["a.msg"].metadata


def test_a_number_sign_in_a_name_of_a_file(written):
    files = dict.fromkeys(("C#/a.txt", "a#b.txt", "a.eml#b/c.txt", "x.txt#b.txt"), b"It is.")
    found = read(written(files))
    assert [*found] == sorted(files)
    assert found["C#/a.txt"].metadata["file_path"] == "C#/a.txt"
    assert found["a#b.txt"].metadata["file_name"] == "a#b.txt"


def nested(depth: int) -> bytes:
    data = b"Subject: Innermost\n\nText.\n"
    for i in range(depth):
        part = b"Content-Type: application/octet-stream; name=a.eml\n\n" + data
        head = b"Subject: %d\nContent-Type: multipart/mixed; boundary=B%d\n\n" % (i, i)
        data = head + b"--B%d\n" % i + part + b"\n--B%d--\n" % i
    return data


def test_mails_in_mails_are_read_to_some_depth(written):
    found = read(written({"a.eml": nested(400)}))
    assert [*found] == ["#".join(["a.eml"] * n) for n in range(1, 6)]
    left_out = [document.metadata.get("left_out") for document in found.values()]
    assert left_out == [None, None, None, None, ["1 attachment"]]


def test_a_reader_of_llama_index_reads_them(written):
    folder = written({"a.eml": bytes(mail(("b.txt", b"Bees."))), "b.mbox": boxed(EmailMessage())})
    found = FileReader().load_data(folder / "a.eml", {"author": "Ada"})
    assert [each.doc_id for each in found] == [f"{folder}/a.eml", f"{folder}/a.eml#b.txt"]
    assert {each.metadata["author"] for each in found} == {"Ada"}
    with pytest.raises(SourceError, match="no document that can be read"):
        FileReader().load_data(folder / "b.mbox")


class TestRemembered:
    def test_the_parts_of_an_unchanged_mail_are_not_read_again(
        self, written, tmp_path, memory, opened
    ):
        attached = [("crane.txt", b"The crane."), ("b.md", b"# Bees"), ("a.png", PNG)]
        folder = written({"in/a.eml": bytes(mail(*attached))}) / "in"
        fresh = [each.to_dict() for each in read(folder).values()]
        assert [each.to_dict() for each in read(folder, memory=memory).values()] == fresh
        opened.clear()
        assert [each.to_dict() for each in read(folder, memory=memory).values()] == fresh
        assert opened == [".eml"]  # for what is in it

    def test_of_a_mailbox_only_new_mails_are_read(self, written, memory, opened):
        one, two = (mail(("a.md", f"# {i}".encode()), subject=f"No. {i}") for i in (1, 2))
        read(written({"in/a.mbox": boxed(one)}) / "in", memory=memory)
        opened.clear()
        folder = written({"in/a.mbox": boxed(two, one)}) / "in"
        found = read(folder, memory=memory)
        assert opened.count(".md") == 1  # of `two`
        assert [each.to_dict() for each in found.values()] == [
            each.to_dict() for each in read(folder).values()
        ]

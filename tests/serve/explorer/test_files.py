"""The explorer opens the files that documents were read from, and no others."""

from email.message import EmailMessage
from pathlib import Path

import pytest
from fakes import HashingEmbedding
from indexes import built
from llama_index.core.schema import TextNode
from pdfs import pdf_of
from records import metadata_of
from serve.conftest import client_of

from hierindex import DocumentHierarchy, Quote, Span

HTML = "<!DOCTYPE html><title>Mill</title><script>alert(1)</script><p>The mill is old.</p>"


def mail() -> bytes:
    message = EmailMessage()
    message["Subject"] = "Harvest"
    message.set_content("The harvest begins on Monday.")
    message.add_attachment("Rye first, then wheat.", filename="plan.txt")
    return bytes(message)


def farm(at: Path) -> Path:
    folder = at / "farm"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "mill.html").write_text(HTML)
    (folder / "barn.pdf").write_bytes(pdf_of("The barn is new."))
    (folder / "mail.eml").write_bytes(mail())
    (folder / "été #1.txt").write_text("Hay is cut in June.")
    (at / "secret.txt").write_text("The secret is out.")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return farm(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def client(folder):
    yield from client_of(built(folder, folder.parent / "index", DocumentHierarchy))


@pytest.fixture
def own_folder(tmp_path) -> Path:
    """One that may be changed."""
    return farm(tmp_path)


@pytest.fixture
def client_of_own(own_folder, tmp_path):
    yield from client_of(built(own_folder, tmp_path / "files", DocumentHierarchy))


@pytest.mark.parametrize(
    ("document", "file", "kind"),
    [
        ("in/mill.html", "in/mill.html", "text/plain; charset=utf-8"),
        ("barn.pdf", "barn.pdf", "application/pdf"),
        ("mail.eml#plan.txt", "mail.eml", "text/plain; charset=utf-8"),
        ("été #1.txt", "été #1.txt", "text/plain; charset=utf-8"),
    ],
)
def test_the_file_of_a_document_is_shown_but_not_run(client, folder, document, file, kind) -> None:
    assert client.json("document", document=document)["is_file"]
    answer = client.get("/api/file", params={"document": document})
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert answer.content == (folder / file).read_bytes()
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert ("sandbox" in answer.headers["content-security-policy"]) == (kind[:4] == "text")


def test_other_files_are_downloaded(client_of_own, own_folder) -> None:
    (own_folder / "in" / "mill.html").write_bytes(b"PK\0\0")
    answer = client_of_own.get("/api/file", params={"document": "in/mill.html"})
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == 'attachment; filename="mill.html"'


@pytest.mark.parametrize(
    "document",
    ["", "../secret.txt", "in/../barn.pdf", "/etc/passwd", "in", ".", "barn.pdf\0", "BARN.PDF"],
)
def test_only_documents_of_the_index_are_opened(client, folder, document) -> None:
    for given in (document, str(folder / document.replace("\0", ""))):
        error = client.json("file", 404, document=given)["error"]
        assert error.startswith("The index knows no file of ")


def test_a_file_that_is_gone_or_leads_outside_is_not_opened(client_of_own, own_folder) -> None:
    barn, secret = own_folder / "barn.pdf", own_folder.parent / "secret.txt"
    for change in (lambda: None, lambda: barn.symlink_to(secret)):
        barn.unlink(missing_ok=True)
        change()
        assert client_of_own.get("/api/file", params={"document": "barn.pdf"}).status_code == 404
        assert not client_of_own.json("document", document="barn.pdf")["is_file"]


def test_an_id_that_leads_outside_of_its_source_opens_nothing(own, own_client, folder) -> None:
    name, text = "../secret.txt", "The secret is out."
    quotes = (Quote(0, len(text), Span(name, 0, len(text))),)
    record = metadata_of(quotes=quotes, documents=(name,), read_from=str(folder))
    vector = HashingEmbedding().get_text_embedding(text)
    own.store.add([TextNode(id_="secret", text=text, embedding=vector, metadata=record)])
    assert not own_client.json("document", document=name)["is_file"]
    assert own_client.get("/api/file", params={"document": name}).status_code == 404


def test_the_source_can_be_the_file_itself(folder, tmp_path) -> None:
    index = built(folder / "barn.pdf", tmp_path / "index", DocumentHierarchy)
    for client in client_of(index):
        answer = client.get("/api/file", params={"document": "barn.pdf"})
        assert answer.content == (folder / "barn.pdf").read_bytes()

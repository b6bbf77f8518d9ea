"""Mails that change: an index of mails, attachments and mailboxes over time."""

from email.message import EmailMessage
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from test_update import built, check_fresh, counts, documents_of, hierarchy_of, text_of

from hierindex import DocumentHierarchy, HierarchicalIndex, read_documents
from hierindex.errors import InputError, SourceError

DELETED = "was deleted from the index; name the file as a source to add it again"
POSTED = "From ada@example.org Tue May 14 10:00:00 2024\n"


def mail(subject: str, *attachments: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["Date"] = subject, "Tue, 14 May 2024 10:00:00 +0000"
    message.set_content(text_of(subject))
    for name in attachments:
        message.add_attachment(text_of(f"{name} of {subject}"), filename=name)
        message.set_boundary("B")
    return message


def box(*mails: EmailMessage) -> str:
    return "".join(f"{POSTED}{each}\n" for each in mails)


def ids_in(box: str) -> list[str]:
    """The ids of the mails of a mailbox, without those of their attachments."""
    with TemporaryDirectory() as folder:
        (file := Path(folder, "box.mbox")).write_text(box)
        ids = [document.doc_id for document in read_documents(file)[0]]
    return [document_id for document_id in ids if document_id.count("#") == 1]


BOX = box(mail("Tea"), mail("Lamp", "bill.txt"), mail("Rope"))
MAILS = sorted(ids_in(BOX))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text(text_of("a.txt"))
    (tmp_path / "in/pier.eml").write_text(str(mail("Pier", "plan.txt", "note.txt")))
    (tmp_path / "in/box.mbox").write_text(BOX)
    return tmp_path / "in"


@pytest.fixture
def index(folder, tmp_path) -> HierarchicalIndex:
    return built(folder, tmp_path / "index", hierarchy_of(DocumentHierarchy))


PIER = ["pier.eml", "pier.eml#note.txt", "pier.eml#plan.txt"]
HELD = ["a.txt", MAILS[0], f"{MAILS[0]}#bill.txt", *MAILS[1:], *PIER]


def test_parts_come_change_and_go_with_their_file(index, folder):
    assert documents_of(index) == HELD
    assert counts(index.update()) == (0, 0, 0, 0, 8)
    (folder / "pier.eml").write_text(str(mail("Pier", "plan.txt")))
    report = index.update()  # the mail names its attachments
    assert counts(report) == (0, 1, 1, 0, 6)
    assert report.names.removed == ["pier.eml#note.txt"]
    (folder / "box.mbox").write_text(box(mail("Rope"), mail("Lamp", "bill.txt"), mail("Oil")))
    report = index.update(folder / "box.mbox")
    assert (report.names.added, report.names.removed) == (ids_in(box(mail("Oil"))), [MAILS[2]])
    assert report.unchanged == 6
    (folder / "pier.eml").unlink()
    (folder / "box.mbox").rename(folder / "new.mbox")
    report = index.update()
    assert counts(report) == (0, 0, 2, 4, 1)
    check_fresh(index, folder)


def test_a_file_is_deleted_with_its_parts_until_it_is_named(index, folder):
    assert counts(index.delete("box.mbox", "pier.eml")) == (0, 0, 7, 0, 1)
    (folder / "box.mbox").write_text((folder / "box.mbox").read_text() + box(mail("Oil")))
    report = index.update()
    assert counts(report) == (0, 0, 0, 0, 1)
    assert [(s.path, s.reason) for s in report.skipped] == [
        ("box.mbox", DELETED),
        ("pier.eml", DELETED),
    ]
    assert counts(index.update(folder / "box.mbox")) == (5, 0, 0, 0, 1)
    assert counts(index.update(folder / "pier.eml")) == (3, 0, 0, 0, 6)
    check_fresh(index, folder)


@pytest.mark.parametrize(("deleted", "gone"), [(HELD[1], HELD[1:3]), (PIER[1], PIER[1:2])])
def test_a_part_is_deleted_alone_until_its_file_is_named(index, folder, deleted, gone):
    assert index.delete(deleted).names.removed == gone
    (folder / "a.txt").write_text(text_of("other"))
    for sources in (folder / "a.txt", None):
        report = index.update(sources)
        assert documents_of(index) == [each for each in HELD if each not in gone]
    assert [(s.path, s.reason) for s in report.skipped] == [(deleted, DELETED)]
    file = deleted.partition("#")[0]
    assert index.update(folder / file).names.added == gone
    assert counts(index.update()) == (0, 0, 0, 0, 8)
    assert index.store.snapshot().report()["left_out"] == {}


def test_a_deleted_mail_stays_out_when_others_of_its_name_come_and_go(index, folder):
    def tea(text: str) -> EmailMessage:
        message = mail("Tea")
        message.set_content(text)
        return message

    first, deleted = tea("It is at ten.\n"), tea("It is at noon.\n")
    (folder / "box.mbox").write_text(box(first, deleted))
    (deleted_id,) = ids_in(box(deleted))
    assert deleted_id in index.update().names.added
    assert index.delete(deleted_id).names.removed == [deleted_id]
    deleted["Status"] = "RO"  # it has been opened
    others = [mail("Oil"), tea("It is at eight.\n")]
    for kept in ([deleted], [deleted, *others], [others[1], deleted, first, others[0]]):
        (folder / "box.mbox").write_text(box(*kept))
        assert [each.path for each in index.update().skipped] == [deleted_id]
        others_ids = {*ids_in(box(*kept))} - {deleted_id}
        assert documents_of(index) == sorted(["a.txt", *PIER, *others_ids])


@pytest.mark.parametrize("name", ["bill.txt", "box.mbox"])
def test_no_byte_of_a_deleted_part_remains(folder, tmp_path, monkeypatch, name):
    """Neither of its text nor of its name, also after an update that leaves it out."""
    monkeypatch.setattr("hierindex.cache.LEVEL", 0)  # so that bytes can be found
    attached = str(mail("Lamp", "bill.txt")).replace("bill.txt of Lamp", "Mombasa")
    (folder / "box.mbox").write_text(f"{box(mail('Tea'), mail('Zanzibar'))}{POSTED}{attached}")
    word = b"Mombasa" if name == "bill.txt" else b"Zanzibar"
    index = built(folder, tmp_path / "index", hierarchy_of(DocumentHierarchy))

    def holding() -> list[str]:
        files = [path for path in (tmp_path / "index").rglob("*") if path.is_file()]
        return [path.name for path in files if word in path.read_bytes()]

    assert holding()
    part = [document for document in documents_of(index) if name in document]
    index.delete(*(["box.mbox"] if name == "box.mbox" else part))
    assert not holding()
    (folder / "a.txt").write_text(text_of("other"))
    assert index.update().changed == 1
    assert not holding()


def test_names_of_no_file_and_of_nothing_else_are_refused(index):
    with pytest.raises(InputError, match="no document 'box'"):
        index.delete("box")
    with pytest.raises(InputError, match="all documents of the index"):
        index.delete("box.mbox", "pier.eml", "a.txt")


def test_a_mailbox_is_outlined_and_named_as_a_whole(index, folder):
    found = index.outline(10_000, of="box.mbox")
    assert {each.node.ref_doc_id for each in found} == {*HELD[1:5]}
    with pytest.raises(InputError, match="No document has the id 'box'"):
        index.outline(10_000, of="box")
    question = "What does box.mbox say of the gate?"
    for asked, files in ((question, HELD[1:5]), ("What does plan.txt say of it?", PIER[2:])):
        answer = index.ask(asked)
        assert answer.why.startswith(f"the chunks of {', '.join(files)}, which the question names")
        assert {c.document for source in answer.sources for c in source.citations} <= {*files}


def test_a_mailbox_that_is_a_source_may_be_removed(folder, tmp_path):
    sources = [folder / "box.mbox", folder / "a.txt"]
    index = built(sources, tmp_path / "index", hierarchy_of(DocumentHierarchy))
    for name in "bcde":
        (folder / f"{name}.txt").write_text(text_of(name))
    index.update([folder / f"{name}.txt" for name in "bcde"])
    sources[0].unlink()
    assert counts(index.update()) == (0, 0, 4, 0, 5)


def test_a_link_to_a_mailbox_is_no_document(index, folder):
    (folder / "deep").mkdir()
    (folder / "deep/link.mbox").symlink_to("../box.mbox")
    (folder / "deep/d.txt").write_text(text_of("d"))
    report = index.update()
    assert [each.reason for each in report.skipped] == ["is a link to box.mbox, which is read"]
    assert documents_of(index) == sorted([*HELD, "deep/d.txt"])


def test_a_file_with_a_name_of_a_part_is_skipped(index, folder):
    (folder / "C#").mkdir()
    for name in ("C#/a.txt", "a.txt#b.txt", "gone.eml#x.txt", "pier.eml#plan.txt"):
        (folder / name).write_text(text_of(name))
    report = index.update()
    assert counts(report) == (2, 0, 0, 0, 8)
    assert [(each.path, each.reason) for each in report.skipped] == [
        (f"{name}.eml#{part}.txt", f"is named like a part of {name}.eml; rename it")
        for name, part in (("gone", "x"), ("pier", "plan"))
    ]
    with pytest.raises(SourceError, match="there is no file"):
        index.update(folder / "gone.eml#x.txt")
    (folder / "pier.eml#plan.txt").rename(folder / "plan.txt")
    assert counts(index.update()) == (1, 0, 0, 0, 10)

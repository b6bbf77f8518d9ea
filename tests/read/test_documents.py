"""What is known of a document's file."""

import os

import pytest

from hierindex.errors import SourceError
from hierindex.read.documents import FileReader, Skipped, read_documents


def test_a_document_knows_its_file(tmp_path):
    for name in ("a.txt", "deep/er/b.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        os.utime(path, (0, 86_400 * 365))
    for document, folder in zip(read_documents(tmp_path)[0], (".", "deep/er"), strict=True):
        assert document.metadata == {
            "file_name": document.id_.split("/")[-1],
            "file_path": document.id_,
            "folder": folder,
            "last_modified_date": "1971-01-01",
        }
        assert document.get_content("embed") == "x"
        assert "deep" not in document.get_content("llm")


@pytest.mark.parametrize("seconds", [-1e15, 1e15])
def test_a_time_that_no_calendar_has_is_left_out(tmp_path, monkeypatch, seconds):
    (tmp_path / "a.txt").write_text("x")
    monkeypatch.setattr("pathlib.Path.stat", changed(seconds))
    (document,) = FileReader().load_data(tmp_path / "a.txt")
    assert "last_modified_date" not in document.metadata


def changed(seconds):
    stat = os.stat

    def of(path, **options):
        found = list(stat(path, **options))
        return os.stat_result([*found[:8], seconds, *found[9:]])

    return of


@pytest.mark.parametrize("name", ["a.txt", "z.txt"])
def test_of_a_file_and_a_link_to_it_the_file_is_read(tmp_path, name):
    (tmp_path / "m.txt").write_text("x")
    (tmp_path / name).symlink_to("m.txt")
    (tmp_path / f"{name}.md").symlink_to(name)
    told = []
    documents, skipped = read_documents(tmp_path, progress=lambda *at: told.append(at))
    assert [document.doc_id for document in documents] == ["m.txt"]
    reason = "is a link to m.txt, which is read"
    assert skipped == [Skipped(name, reason), Skipped(f"{name}.md", reason)]
    assert told == [("read", i, 3) for i in (1, 2, 3)]


def test_of_links_to_a_file_elsewhere_the_first_is_read(tmp_path):
    (tmp_path / "m.txt").write_text("x")
    (tmp_path / "in").mkdir()
    for name in "bca":
        (tmp_path / "in" / name).symlink_to("../m.txt")
    (tmp_path / "in" / "d").write_text("y")
    documents, skipped = read_documents(tmp_path / "in")
    assert [document.doc_id for document in documents] == ["a", "d"]
    assert skipped == [Skipped(name, "is a link to a, which is read") for name in "bc"]


def test_a_link_is_known_in_another_source(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "b.txt").write_text("x")
    (tmp_path / "one" / "a.txt").symlink_to("../two/b.txt")
    documents, skipped = read_documents(tmp_path / "one", tmp_path / "two")
    assert [document.doc_id for document in documents] == ["b.txt"]
    assert skipped == [Skipped("a.txt", "is a link to b.txt, which is read")]
    (document,), _ = read_documents(tmp_path / "one")
    assert document.doc_id == "a.txt"


def test_a_link_is_read_if_its_file_is_not(tmp_path):
    """As where files are kept under the hashes of what they hold."""
    (tmp_path / "0a1b").write_bytes(b"PK\0")
    (tmp_path / "book.epub").symlink_to("0a1b")
    with pytest.raises(SourceError, match=r"0a1b is not text"):
        read_documents(tmp_path)
    (tmp_path / "good.txt").write_text("x")
    _, skipped = read_documents(tmp_path)
    assert [each.path for each in skipped] == ["0a1b", "book.epub"]
    assert skipped[1].reason == "cannot be read as EPUB"


def test_copies_and_hard_links_are_documents_of_their_own(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.txt").write_text("x")
    os.link(tmp_path / "a.txt", tmp_path / "c.txt")
    documents, skipped = read_documents(tmp_path)
    assert [document.doc_id for document in documents] == ["a.txt", "b.txt", "c.txt"]
    assert not skipped

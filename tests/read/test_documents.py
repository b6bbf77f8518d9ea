"""What is known of a document's file."""

import os

import pytest

from hierindex.read.documents import FileReader, read_documents


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

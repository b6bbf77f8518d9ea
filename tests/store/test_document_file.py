"""Documents wait in a file of the index, and come back as they were."""

import gc
from contextlib import suppress
from pathlib import Path

import pytest
from llama_index.core.schema import Document, TextNode

from hierindex import HierarchyStore, read_documents
from hierindex.errors import InputError
from hierindex.jobs.revision import file_reader
from hierindex.read.documents import each_file
from hierindex.read.files import files_of
from hierindex.store.table import Table
from hierindex.store.temporary_files import WaitingFile


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.md").write_text("# Täler\n\nThe bell 🔔 rang.\n\n## Ufer\n\nA boat left.\n" * 50)
    (folder / "b.txt").write_text("The bell rang at the gate.\n")
    (folder / "c.html").write_text("<h1 id=x>Aims</h1><p>To sail. And to land.</p>")
    (folder / "d.py").write_text('"""A module."""\n\n\ndef rise():\n    """Rise."""\n')
    return folder


def test_read_files_are_not_kept_in_memory(tmp_path, folder):
    """What is read is described, and is the document that is read without waiting."""
    files = files_of([folder])
    store = HierarchyStore(tmp_path / "index")
    with file_reader(store.table, each_file) as read:
        found, skipped = read(files)
        gc.collect()
        alive = [each for each in gc.get_objects() if type(each) is Document]
        assert not [each for each in alive if "Täler" in each.text]
        documents, _ = read_documents(folder)
        assert [each.doc_id for each in found] == [*files]
        assert [each.load().to_dict() for each in found] == [d.to_dict() for d in documents]
    assert skipped == []


def test_they_lie_in_the_folder_of_the_index_without_a_name(tmp_path):
    store = HierarchyStore(tmp_path / "index")
    store.add([TextNode(text="A text.", embedding=[1.0])])
    before = {path.name for path in (tmp_path / "index").iterdir()}
    with WaitingFile(store.table.connection) as waiting:
        waiting.append("The bell rang.")
        assert {path.name for path in (tmp_path / "index").iterdir()} == before
        assert any(path.is_relative_to(tmp_path / "index") for path in _open_files())


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    with (
        WaitingFile(Table.of(tmp_path).connection) as waiting,
        Path("/dev/full").open("wb", buffering=0) as full,
        monkeypatch.context() as patch,
    ):
        patch.setattr(waiting, "_file", full)
        with pytest.raises(InputError, match=r"cannot be used: No space left on device\."):
            waiting.append("The bell rang.")


def _open_files():
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the folder itself
            found.append(each.readlink())
    return found

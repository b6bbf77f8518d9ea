"""What was read is recalled by contents, and is what would be read now."""

import json
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest
from fakes import HashingEmbedding
from pdfs import Typed, typed

import hierindex.read.documents
from hierindex import HierarchicalIndex, SemanticHierarchy, read_documents

SENTENCE = "The keeper of the lighthouse wrote letter {}. "
LETTERS = "".join(f"## Day {i}\n\n{SENTENCE.format(i) * 5}\n\n" for i in range(6))
HTML = "<title>Log</title><h1 id=log>Log</h1><p>One.</p><h2 id=day>Day</h2><p>It was calm.</p>"
FILES = {
    "a.md": f"---\ntags: [sea, 3]\ndate: 1901-02-03\n---\n# Letters\n\n{LETTERS}".encode(),
    "b.html": HTML.encode(),
    "c.pdf": typed(
        [Typed("Foreword", 700, 20), Typed("It was long ago.", 600)],
        [Typed("More of it.", 600)],
        [Typed("The first chapter.", 600)],
        labels=True,
    ),
    "d.txt": b"\xef\xbb\xbf1. Aims\r\n\r\nThe na\xc3\xafve aim.\r\n",
    "e.csv": b"name,born\nAda,1815\nBob,1990\n",
    "f.json": b'[{"a": 1, "b": "\\ud800"}, {"a": 2}]',
    "g.rst": b"Title\n=====\n\nText.\n",
    "h.eml": b"From: a@b.c\r\nDate: Mon, 1 Jan 2001 00:00:00 +0000\r\n\r\nIt blew.",
    "i.ipynb": json.dumps(
        {"cells": [{"cell_type": "markdown", "source": "# Notes"}], "metadata": {}}
    ).encode(),
    "j.log": b"It began.\n",
    "k.txt": b"caf\xe9 au lait\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in FILES.items():
        path = tmp_path / "files" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "files"


def plain(documents) -> list[dict]:
    return [document.to_dict() for document in documents]


def test_what_is_recalled_is_what_is_read(folder, memory, opened):
    fresh = plain(read_documents(folder)[0])
    assert len(fresh) == len(FILES)
    for _ in range(2):
        assert plain(read_documents(folder, memory=memory)[0]) == fresh
    assert len(opened) == 2 * (len(FILES) - 1)  # .log has no reader of its own


@pytest.mark.parametrize("what", ["library", "source", "words"])
def test_another_version_reads_again(folder, memory, opened, monkeypatch, tmp_path, what):
    read_documents(folder, memory=memory)
    opened.clear()
    reader = Path(hierindex.read.documents.__file__)
    if what == "library":
        newer = SimpleNamespace(version="99")
        monkeypatch.setattr(hierindex.read.documents, "distributions", lambda name: [newer])
    elif what == "source":
        monkeypatch.setattr(hierindex.read.documents, "__file__", str(tmp_path / "none.py"))
    else:
        for room in ("read", "text"):
            copytree(reader.parents[1] / room, tmp_path / room)
        (tmp_path / "text" / "words.toml").write_text("# none")
        monkeypatch.setattr(hierindex.read.documents, "__file__", str(tmp_path / "read" / "x.py"))
    hierindex.read.documents._made_by.cache_clear()
    read_documents(folder, memory=memory)
    hierindex.read.documents._made_by.cache_clear()
    assert len(opened) == len(FILES) - 1


class TestAnIndex:
    """Built again and again in one folder."""

    @pytest.fixture
    def folder(self, folder):
        for name in [*FILES][3:]:
            (folder / name).unlink()
        return folder

    def built(self, source, at, chunk_size=40, **options):
        options |= {"hierarchy": SemanticHierarchy(HashingEmbedding(model_name="known", dim=16))}
        index = HierarchicalIndex.build(source, at, chunk_size=chunk_size, **options)
        return sorted((n.to_dict() for n in index.store.get_nodes()), key=lambda node: node["id_"])

    def check(self, source, tmp_path, **options):
        fresh = self.built(source, tmp_path / f"fresh {len(list(tmp_path.iterdir()))}", **options)
        assert self.built(source, tmp_path / "index", **options) == fresh

    def test_equals_a_fresh_one_after_any_edit(self, folder, tmp_path, opened):
        self.check(folder, tmp_path)
        opened.clear()
        self.built(folder, tmp_path / "index")
        assert opened == []
        (folder / "a.md").write_text(f"# Letters\n\n{LETTERS}The end.")
        self.built(folder, tmp_path / "index")
        assert opened == [".md"]
        (folder / "b.html").rename(folder / "bb.html")
        (folder / "c.pdf").unlink()
        self.check(folder, tmp_path, chunk_size=60)

    def test_a_dry_run_reads_for_the_build(self, folder, tmp_path, opened):
        hierarchy = SemanticHierarchy(HashingEmbedding(model_name="known", dim=16))
        options = {"hierarchy": hierarchy, "chunk_size": 40}
        HierarchicalIndex.build(folder, tmp_path / "index", dry_run=True, **options)
        opened.clear()
        self.built(folder, tmp_path / "index")
        assert opened == []

    def test_deletion_leaves_no_reading(self, folder, tmp_path, monkeypatch, opened):
        monkeypatch.setattr("hierindex.cache.LEVEL", 0)  # so that bytes can be found
        self.built(folder, tmp_path / "index")
        file = tmp_path / "index" / ".cache.sqlite"
        assert b"lighthouse" in file.read_bytes()
        HierarchicalIndex.open(tmp_path / "index").store.delete("a.md")
        assert b"lighthouse" not in file.read_bytes()
        self.built(folder, tmp_path / "index")
        assert b"lighthouse" in file.read_bytes()
        (folder / "a.md").unlink()
        for _ in range(2):  # the generation before the last one is kept
            self.built(folder, tmp_path / "index", replace=True)
        assert b"lighthouse" not in file.read_bytes()

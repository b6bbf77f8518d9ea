"""What is known of a document's file."""

import codecs
import gzip
import lzma
import os
from errno import EACCES
from pathlib import Path
from shutil import rmtree

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from llama_index.core import SimpleDirectoryReader
from pdfs import locked, pdf_of

from hierindex import FileReader, Skipped, read_documents
from hierindex.errors import SourceError
from hierindex.node import FILE_NAME, PAGES
from hierindex.read import documents as reader


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
    assert told == [("read", i, 3) for i in range(4)]


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


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b" \n\t\r\n", "white space"),
        ("a.txt", codecs.BOM_UTF8, "empty"),
        ("a.bin", bytes(range(256)) * 8, "not text"),
        ("a.txt.gz", gzip.compress(b"text"), "is compressed; unpack it"),
        ("a.xz", lzma.compress(b"text"), "is compressed; unpack it"),
        ("a.txt", b"text\0with\0zeros", "not text"),
        ("a.txt", b"\0\1\xff\xfe", "not text"),
        ("a.txt", b"\0\1\2", "not text"),
        ("a.txt", b"a\0\xe9 few words", "not text"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(255, 0, -1)) * 9, "not text"),
        ("a.json", b"x" * 2_000_000, "2,000,000 characters"),
        ("a.json", b'[{}, {"a": null}, []]', "empty"),
        ("a.pdf", b"", "empty"),
        ("a.pdf", b"%PDF-1.4 nonsense", "PDF"),
        ("a.pdf", pdf_of("cut in the middle")[:200], "PDF"),
        ("a.pdf", pdf_of(""), "PDF without text"),
        ("a.pdf", locked(pdf_of("hidden"), 2), "an encrypted PDF"),
        ("a.pdf", locked(pdf_of("hidden"), 5), "an encrypted PDF"),
        ("a.pdf", pdf_of("x").replace(b"/Kids [5 0 R]", b"/Kids [2 0 R]"), "read as PDF"),
        ("a.pdf", pdf_of("x").replace(b"/Pages 2 0 R", b"/Pages 9 0 R"), "read as PDF"),
        ("a.pdf", b"%PDF-1.4\n" + b"line\n" * 1_000_000, "read as PDF"),
        ("a.html", b"<script>1</script><style>p {}</style>", "empty"),
        ("a.html", b"", "empty"),
        ("a.html", b"<!-- <p>Only a comment.</p>", "empty"),
    ],
)
def test_what_is_no_document_is_skipped_with_a_reason(skipped, tmp_path, capfd, name, data, reason):
    (found,) = skipped({name: data})
    assert found.path == name
    assert reason in found.reason
    assert capfd.readouterr() == ("", "")
    with pytest.raises(SourceError, match=name):
        read_documents(tmp_path / name)


def test_a_folder_is_read_with_its_folders_in_order(written):
    folder = written(
        {
            "b.txt": "b",
            "a/z.txt": "z",
            "a/b/c.md": "c",
            "with blank.rst": "d",
            "a/no_suffix": "e",
            ".hidden": "no",
            ".git/config": "no",
            "a/.hidden/x.txt": "no",
            "index.lance/data.txt": "no",
            "a.txt~": "no",
            "empty.txt": "",
        }
    )
    told = []
    documents, skipped = read_documents(folder, progress=lambda *at: told.append(at))
    assert [d.id_ for d in documents] == [
        "a/b/c.md",
        "a/no_suffix",
        "a/z.txt",
        "b.txt",
        "with blank.rst",
    ]
    assert skipped == [Skipped("empty.txt", "is empty")]
    assert told == [("read", i, 6) for i in range(7)]


def test_names_that_are_not_utf8_are_escaped(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for name in (b"\xff", b"\xff.html", b"\xed\xa0\x80.txt", "é".encode()):
        (folder / os.fsdecode(name)).write_text("x")
    documents, skipped = read_documents(tmp_path)
    assert [(d.id_, d.metadata[FILE_NAME]) for d in documents] == [
        (f"caf\\xe9/{name}", name) for name in ("é", "\\xed\\xa0\\x80.txt", "\\xff", "\\xff.html")
    ]
    assert not skipped


def test_what_is_no_file_is_skipped_and_not_waited_for(tmp_path, monkeypatch):
    (tmp_path / "good.txt").write_text("good")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder").mkdir()
    for name, target in {
        "device": "/dev/zero",
        "up": "..",
        "there": "folder",
        "loop": "loop",
        "dangling": "nowhere",
    }.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "locked").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    forbid(monkeypatch, tmp_path / "locked", tmp_path / "secret.txt")
    (document,), skipped = read_documents(tmp_path)
    assert document.id_ == "good.txt"
    assert {each.path: each.reason for each in skipped} == {
        "dangling": "cannot be read (No such file or directory)",
        "device": "is a pipe, a socket or a device",
        "locked": "cannot be read (a folder without permission)",
        "loop": "cannot be read (Too many levels of symbolic links)",
        "pipe.txt": "is a pipe, a socket or a device",
        "secret.txt": "cannot be read (Permission denied)",
        "there": "is a link to a folder",
        "up": "is a link to a folder",
    }
    with pytest.raises(SourceError, match="is a pipe, a socket or a device"):
        read_documents(tmp_path / "pipe.txt")


def test_a_large_text_is_refused_before_it_is_loaded(skipped, monkeypatch):
    monkeypatch.setattr("hierindex.read.text.MAX_BYTES", 2_000_000)
    names = ("a.txt", "a.md", "a.log", "a.eml", "a.html", "a.csv", "a.json", "a.py")
    found = skipped(dict.fromkeys(names, "word\n" * 500_000))
    reason = "has 2 MB of text, more than 2; split it into smaller files"
    assert {each.path: each.reason for each in found} == dict.fromkeys(names, reason)


class TestFilesThatChange:
    @pytest.fixture
    def reading(self, monkeypatch):
        """Has something done each time a Markdown file is read, before its reader ends."""

        def set_up(meanwhile):
            def read(file, read_markdown=reader.READERS[".md"]):
                reading = read_markdown(file)
                meanwhile()
                return reading

            monkeypatch.setitem(reader.READERS, ".md", read)

        return set_up

    def test_one_is_read_again(self, written, reading):
        folder = written({"a.md": "One.", "b.md": "b"})
        texts = ["Two is longer."]
        reading(lambda: texts and (folder / "a.md").write_text(texts.pop(0)))
        documents, skipped = read_documents(folder)
        assert [document.text for document in documents] == ["Two is longer.", "b"]
        assert not skipped

    def test_one_can_be_interrupted(self, written, reading):
        folder = written({"a.md": "One."})

        def interrupt():
            (folder / "a.md").write_text("Two is longer.")
            raise KeyboardInterrupt

        reading(interrupt)
        with pytest.raises(KeyboardInterrupt):
            read_documents(folder)

    def test_one_that_is_always_written_is_skipped(self, written, reading):
        folder, n_read = written({"a.md": "One.", "b.txt": "b"}), []

        def grow():
            n_read.append(1)
            with (folder / "a.md").open("a") as file:
                file.write(" More.")

        reading(grow)
        (document,), skipped = read_documents(folder)
        assert document.id_ == "b.txt"
        assert skipped == [Skipped("a.md", "cannot be read (it is being written)", is_unread=True)]
        assert len(n_read) == 2


def test_what_vanishes_before_it_is_read_is_skipped(written):
    folder = written({"a.txt": "a", "b/c.txt": "c", "d.txt": "d"})
    files = reader.files_of([folder])
    (folder / "a.txt").unlink()
    rmtree(folder / "b")
    found = dict(reader.each_file(files))
    gone = "cannot be read (No such file or directory)"
    for name in ("a.txt", "b/c.txt"):
        assert found[name] == [Skipped(name, gone, is_unread=True)]
    assert [document.text for document in found["d.txt"]] == ["d"]


def forbid(monkeypatch, folder, file):
    """Take permissions away, also from root, whom no permission stops."""
    listed, opened = Path.iterdir, Path.open

    def refuse(path, forbidden):
        if path == forbidden:
            raise PermissionError(EACCES, os.strerror(EACCES))

    def iterdir(path):
        refuse(path, folder)
        return listed(path)

    def open_(path, *args, **options):
        refuse(path, file)
        return opened(path, *args, **options)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    monkeypatch.setattr(Path, "open", open_)


def test_sources_keep_their_order_and_a_hidden_one_may_be_named(written):
    folder = written({"one/b.txt": "b", "two/a.txt": "a", ".hidden/c.txt": "c"})
    sources = [folder / "two", str(folder / "one" / "b.txt"), folder / ".hidden"]
    assert [d.id_ for d in read_documents(*sources)[0]] == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    ("files", "sources", "told"),
    [
        ({}, ["nowhere"], "nowhere"),
        ({"a.txt": "a"}, ["a.txt", "nowhere"], "nowhere"),
        ({}, ["."], "no file"),
        ({".hidden": "x"}, ["."], "no file"),
        ({"a.bin": b"\xff\0" * 99, "b.bin": b"\0"}, ["."], "a.bin is not text"),
        ({"one/a.txt": "1", "two/a.txt": "2"}, ["one", "two"], "'a.txt'"),
        ({"a.txt": "1"}, ["a.txt", "a.txt"], "'a.txt'"),
        ({"a.txt": "1"}, [".", "a.txt"], "'a.txt'"),
        ({}, [], "Nothing"),
        ({"a.txt": "1"}, [""], "empty string"),
        ({}, ["a\0b"], "cannot be found or read"),
        ({}, ["a" * 5000], r"a\.\.\. cannot be found or read; pass a text as llama_index.core.Doc"),
        ({}, ["One line.\n\nTwo."], r"found or read; pass a text as .*Document\(text=\.\.\.\)"),
        ({}, ["a text of nine short words and no line"], "found or read; pass a text as"),
        ({}, ["My Documents/report of May.txt"], r"of May.txt' cannot be found or read\.$"),
    ],
)
def test_sources_that_cannot_be_read(written, monkeypatch, files, sources, told):
    monkeypatch.chdir(written(files))
    with pytest.raises(SourceError, match=told):
        read_documents(*sources)


READER = FileReader()


def test_simple_directory_reader_takes_our_reader(written):
    folder = written({"a.html": "<title>T</title><p>One</p>", "b.pdf": pdf_of("Two"), "c.txt": "3"})
    extractors = dict.fromkeys((".html", ".pdf"), READER)
    documents = SimpleDirectoryReader(folder, file_extractor=extractors).load_data()
    assert [document.text for document in documents] == ["One", "Two", "3"]
    html, pdf, _ = (document.metadata for document in documents)
    assert (html["title"], html["file_path"]) == ("T", str(folder / "a.html"))
    assert pdf[PAGES] == 1


def test_a_reader_reads_from_any_file_system():
    fs = MemoryFileSystem()
    fs.pipe("/texts/a.html", b"<p>One</p>")
    reader = SimpleDirectoryReader("/texts", file_extractor={".html": READER}, fs=fs)
    (document,) = reader.load_data()
    assert (document.id_, document.text) == ("/texts/a.html", "One")


def test_a_reader_refuses_what_it_cannot_read(written):
    folder = written({"a.pdf": "no PDF", "b.txt": "b"})
    with pytest.raises(SourceError, match=r"a\.pdf' cannot be read as PDF\."):
        READER.load_data(folder / "a.pdf")
    (document,) = READER.load_data(str(folder / "b.txt"), {"author": "Ada"})
    assert (document.id_, document.metadata["author"]) == (str(folder / "b.txt"), "Ada")


SPLIT, WHOLE = "Mu\u0308ll\xadabfuhr", "Müllabfuhr"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.html", f"<title>{SPLIT}</title><meta name=author content={SPLIT}><p>{SPLIT}"),
        ("a.md", f"---\ntitle: {SPLIT}\nauthor: [{SPLIT}]\n{SPLIT}: {SPLIT}\n---\n{SPLIT}\n"),
        ("a.eml", f"Subject: {SPLIT}\nFrom: {SPLIT} <a@b.c>\n\n{SPLIT}\n"),
    ],
)
def test_metadata_are_composed_as_the_text_is(read_one, name, data):
    document = read_one(name, data)
    assert WHOLE in document.text
    assert document.metadata["title"] == WHOLE
    assert WHOLE in str(document.metadata["author" if name != "a.eml" else "from"])
    assert SPLIT not in str(document.to_dict())
    assert "\u0308" not in str(document.to_dict())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b'[{"a": "b\\u0000c"}]'),
        ("a.ipynb", b'{"cells": [{"cell_type": "markdown", "source": "b\\u0000c"}]}'),
    ],
)
def test_null_characters_are_left_out(read_one, name, data):
    text = read_one(name, data).text
    assert "bc" in text
    assert "\0" not in text

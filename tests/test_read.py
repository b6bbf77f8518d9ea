import codecs
import os
import warnings
from errno import EACCES
from itertools import pairwise
from pathlib import Path

import pytest
from fakes import HashingEmbedding
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core import SimpleDirectoryReader
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, MetadataMode
from pdfs import locked, pdf_of

from hierindex.embed.embedder import Embedder
from hierindex.errors import SourceError
from hierindex.hierarchy.nodes import make_leaves
from hierindex.read.documents import (
    FILE_NAME,
    MAX_LINE,
    FileReader,
    Skipped,
    read_documents,
    well_formed,
)
from hierindex.read.split import (
    CHUNK_TOKENS,
    STRETCH,
    PlacedSentenceSplitter,
    sentence_splitter,
    split_documents,
    split_stretches,
)
from hierindex.record import PAGE, PAGES
from hierindex.summarize.sentences import split_sentences

GERMAN = "Der Schlüssel für die Tür hängt an der Wand. Über das Café läuft ein müder Kater.\n"
QUOTED = (
    "\u201cThe café\u2019s elder owner\u201d, he said \u2026 and that once again, "
    "\u201cis late for his own déjeuner.\u201d\n"
)


@pytest.fixture
def written(tmp_path):
    def write(files: dict[str, bytes | str]):
        for name, data in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        return tmp_path

    return write


def read_one(written, name, data):
    (document,), skipped = read_documents(written({name: data}))
    assert not skipped
    assert document.id_ == name
    assert document.metadata[FILE_NAME] == name
    return document


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("plain", "plain"),
        (GERMAN, GERMAN),
        (codecs.BOM_UTF8 + GERMAN.encode(), GERMAN),
        (GERMAN.encode("utf-16"), GERMAN),
        (codecs.BOM_UTF16_BE + GERMAN.encode("utf-16-be"), GERMAN),
        (GERMAN.encode("latin-1"), GERMAN),
        (QUOTED.encode("cp1252"), QUOTED),
        ("café\n".encode("latin-1"), "café\n"),
        (GERMAN.replace("\n", "\r\n").encode("latin-1"), GERMAN),
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("雪\u2028\x85\x0c\U0001f600", "雪\u2028\x85\x0c\U0001f600"),
        ("no end of line \n\n", "no end of line \n\n"),
        ("x" * MAX_LINE, "x" * MAX_LINE),
    ],
    ids=[
        "ascii",
        "utf-8",
        "bom",
        "utf-16",
        "utf-16-be",
        "latin-1",
        "cp1252",
        "short latin-1",
        "latin-1 crlf",
        "line ends",
        "odd characters",
        "blanks at the end",
        "longest line",
    ],
)
def test_text_is_what_the_file_says(written, data, text):
    assert read_one(written, "a.txt", data).text == text


@given(st.lists(st.text(max_size=20), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_text_equals_what_open_reads(tmp_path_factory, lines, end):
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_bytes(("x" + end.join(lines)).replace("\0", "").encode())
    if not path.read_bytes().startswith(codecs.BOM_UTF8):
        assert read_documents(path)[0][0].text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b" \n\t\r\n", "white space"),
        ("a.txt", codecs.BOM_UTF8, "empty"),
        ("a.bin", bytes(range(256)) * 8, "not text"),
        ("a.txt", b"text\0with\0zeros", "not text"),
        ("a.txt", b"\0\1\xff\xfe", "not text"),
        ("a.txt", b"\0\1\2", "not text"),
        ("a.txt", b"a\0\xe9 few words", "not text"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(255, 0, -1)) * 9, "not text"),
        ("a.json", b"x" * 2_000_000, "2,000,000 characters"),
        ("a.pdf", b"", "PDF"),
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
def test_what_is_no_document_is_skipped_with_a_reason(written, name, data, reason):
    folder = written({name: data, "good.md": "# Good\n"})
    (document,), skipped = read_documents(folder)
    assert document.id_ == "good.md"
    assert [s.path for s in skipped] == [name]
    assert reason in skipped[0].reason
    with pytest.raises(SourceError, match=name):
        read_documents(folder / name)


def test_broken_pdfs_are_told_once(written, capfd):
    folder = written({"a.pdf": b"hello", "good.md": "# Good\n"})
    _, skipped = read_documents(folder)
    assert len(skipped) == 1
    assert capfd.readouterr() == ("", "")


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
    assert told == [("read", i + 1, 6) for i in range(6)]


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
        "locked": "is a folder without permission",
        "loop": "cannot be read (Too many levels of symbolic links)",
        "pipe.txt": "is a pipe, a socket or a device",
        "secret.txt": "cannot be read (Permission denied)",
        "there": "is a link to a folder",
        "up": "is a link to a folder",
    }
    with pytest.raises(SourceError, match="is a pipe, a socket or a device"):
        read_documents(tmp_path / "pipe.txt")


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


@pytest.mark.parametrize("name", ["a.txt", "a.html", "a.pdf"])
@pytest.mark.parametrize("begin", [b"", b"text", b"%PDF-1.7\n"])
def test_a_file_that_does_not_begin_like_text_is_not_loaded(tmp_path, name, begin):
    (tmp_path / name).write_bytes(begin)
    os.truncate(tmp_path / name, 2**40)
    with pytest.raises(SourceError, match=r"is not text|cannot be read as PDF"):
        read_documents(tmp_path)


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
        ({}, ["a" * 5000], "cannot be found or read"),
    ],
)
def test_sources_that_cannot_be_read(written, monkeypatch, files, sources, told):
    monkeypatch.chdir(written(files))
    with pytest.raises(SourceError, match=told):
        read_documents(*sources)


def test_markdown_is_kept(written):
    text = "---\ntitle: x\n---\n# One\n\n* a\n    * b\n\n```py\nx  =  1\n```\n<b>no html</b>\n"
    assert read_one(written, "a.md", text).text == text


PAGES_OF_PDF = ["The first page.\nIt has two lines.", "The second page is here.", "A third one."]


def test_pages_of_a_pdf_are_joined_by_form_feeds(written):
    document = read_one(written, "a.pdf", pdf_of(*PAGES_OF_PDF))
    assert document.text == "\f".join(PAGES_OF_PDF)
    assert document.metadata[PAGES] == 3


def pages_of_spans(chunks):
    """(page, text) of every sentence of the chunks as leaves."""
    return [
        (sentence.quote.source.page, sentence.text)
        for leaf in make_leaves(chunks)
        for sentence in split_sentences(leaf.node.text, leaf.record.quotes)
    ]


@pytest.mark.parametrize("chunk_size", [40, 60, 200])
def test_chunks_and_sentences_know_their_pages(written, chunk_size):
    pages = [*PAGES_OF_PDF, "", "The fifth page is the last.\nAnd so it ends."]
    document = read_one(written, "a.pdf", pdf_of(*pages))
    chunks = split_documents([document], SentenceSplitter(chunk_size=chunk_size, chunk_overlap=0))
    for chunk in chunks:
        assert chunk.text.split("\f")[0] in pages[chunk.metadata[PAGE] - 1]
        assert str(chunk.metadata[PAGE]) not in chunk.get_content(MetadataMode.EMBED)
    for page, sentence in pages_of_spans(chunks):
        assert sentence in pages[page - 1]


def test_pages_that_read_alike_are_told_apart(written):
    document = read_one(written, "a.pdf", pdf_of(*["This page is left blank on purpose."] * 40))
    splitter = PlacedSentenceSplitter(chunk_size=60, chunk_overlap=0)
    pages = [page for page, _ in pages_of_spans(split_documents([document], splitter))]
    assert pages == list(range(1, 41))


def test_documents_without_pages_have_chunks_without_pages(written):
    document = read_one(written, "a.txt", "One.\fTwo.")
    (chunk,) = split_documents([document], SentenceSplitter())
    assert PAGE not in chunk.metadata
    assert {page for page, _ in pages_of_spans([chunk])} == {None}


def test_pages_are_known_in_a_pipeline(written, splitter):
    document = read_one(written, "a.pdf", pdf_of(*["This page is left blank on purpose."] * 40))
    chunks = IngestionPipeline(transformations=[splitter]).run(documents=[document])
    assert [page for page, _ in pages_of_spans(chunks)][::39] == [1, 40]
    for chunk in chunks:
        assert chunk.get_content(MetadataMode.EMBED) == chunk.text


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
    (document,) = READER.load_data(str(folder / "b.txt"), {"author": "Ada\ud800"})
    assert (document.id_, document.metadata["author"]) == (str(folder / "b.txt"), "Ada\ufffd")


def test_surrogates_become_characters():
    values = {
        "id_": "i\ud800",
        "text": "a\ud83d\ude00b\udc00.",
        "metadata": {"k\ud800": ["v\ud800"]},
    }
    document = Document(**values)
    mended = well_formed(document)
    assert (mended.id_, mended.text) == ("i\ufffd", "a\U0001f600b\ufffd.")
    assert mended.metadata == {"k\ufffd": ["v\ufffd"]}
    assert document.text == values["text"]
    assert well_formed(mended) is mended


@pytest.fixture(scope="module")
def splitter(embed_model):
    return sentence_splitter(embed_model)


PIECES = (
    "The keeper wrote a letter. ",
    "\U0001f600\U0001f3fd\u200d\U0001f33e" * 60,
    "雪が降った。" * 60,
    "雪" * 300,
    "e\u0301\u0323" * 200,
    "x" * 700,
    "supercalifragilistic" * 40,
    "\u0e01\u0e33" * 200,
    "\ufdfa" * 50,
    "\n\n\n",
    "a.b,c;d " * 90,
    "\u200b\u00ad\ufffd" * 100,
    "0123456789" * 40,
    "    x = [1, 2]\n" * 30,
)
MARKS_AT_THE_END_OF_A_CHUNK = PIECES[1] + PIECES[3] + PIECES[4]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=300), min_size=1, max_size=8)


@given(TEXTS.map("".join).filter(str.strip))
@example(MARKS_AT_THE_END_OF_A_CHUNK)
def test_default_chunks_are_verbatim_and_fit_the_window(embed_model, splitter, text):
    embedder, document = Embedder(embed_model), Document(text=text, id_="a")
    chunks = split_documents([document], splitter)
    embedded = [chunk.get_content(MetadataMode.EMBED) for chunk in chunks]
    assert embedder.count_tokens(embedded).max() <= embedder.window
    for chunk in chunks:
        assert chunk.text == text[chunk.start_char_idx : chunk.end_char_idx]


@given(TEXTS.map("".join).filter(str.strip))
@example(MARKS_AT_THE_END_OF_A_CHUNK)
def test_default_chunks_cover_the_document(splitter, text):
    n_chunks_at = [0] * len(text)
    for chunk in split_documents([Document(text=text, id_="a")], splitter):
        for i in range(chunk.start_char_idx, chunk.end_char_idx):
            n_chunks_at[i] += 1
    for n, character in zip(n_chunks_at, text, strict=True):
        assert n == 1 or (n == 0 and character.isspace())


@pytest.mark.parametrize(
    "text",
    [
        "The same line again.\n" * 400,
        "la " * 2000,
        "ab," * 3000,
        ("One thing. " * 9 + "Another thing. ") * 60,
    ],
    ids=["lines", "words", "no blanks", "nearly the same"],
)
def test_chunks_do_not_overlap_also_where_a_document_repeats_itself(splitter, text):
    chunks = split_documents([Document(text=text, id_="a")], splitter)
    assert len(chunks) > 1
    for chunk in chunks:
        assert chunk.text == text[chunk.start_char_idx : chunk.end_char_idx]
    for before, after in pairwise(chunks):
        assert before.end_char_idx <= after.start_char_idx


@given(st.lists(st.sampled_from([*PIECES, " " * 30, "So. ", "\n"]), max_size=30).map("".join))
def test_stretches_lose_nothing(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hierindex.read.split.STRETCH", 100)
        patch.setattr("hierindex.read.split.NEAR_END", 60)
        assert "".join(split_stretches(text)) == text


ROWS = [f"| r{i} | It is so of {i}. It is not. | {'x, y ' * (i % 5)}|\n" for i in range(60)]


@pytest.mark.parametrize("mark", ["", "| "], ids=["html", "markdown"])
def test_rows_of_a_table_are_cut_only_if_they_do_not_fit_a_chunk(mark):
    rows = [mark + row.removeprefix("| ") for row in ROWS]
    text = f"It is so. And so.\n\n{''.join(rows)}\nIt was so."
    chunks = split_documents([Document(text=text)], sentence_splitter(HashingEmbedding(), 100))
    assert len(chunks) > 5
    lines = [line.strip() for chunk in chunks for line in chunk.text.split("\n")]
    assert list(filter(None, lines)) == [line.strip() for line in text.split("\n") if line]


def test_a_long_sentence_is_cut_at_its_lines():
    lines = [f"{i}, of the other, and then of another one\n" for i in range(60)]
    text = "".join(lines)
    chunks = split_documents([Document(text=text)], sentence_splitter(HashingEmbedding(), 100))
    assert len(chunks) > 5
    assert [f"{line}\n" for chunk in chunks for line in chunk.text.split("\n")] == lines


def test_a_row_that_does_not_fit_a_chunk_is_cut_at_its_sentences():
    text = f"| {'It is so. ' * 60}|"
    chunks = split_documents([Document(text=text)], sentence_splitter(HashingEmbedding(), 60))
    assert len(chunks) > 2
    assert all(chunk.text.endswith((".", "|")) for chunk in chunks)


def test_a_megabyte_is_split_a_stretch_at_a_time(monkeypatch):
    given = []
    monkeypatch.setattr("hierindex.read.split.split_by_sentence_tokenizer", lambda: keep)

    def keep(text):
        given.append(text)
        return [text]

    text = "He said. " * 120_000
    assert "".join(split_stretches(text)) == text
    assert max(map(len, given)) <= STRETCH
    assert {stretch[:8] for stretch in given} == {"He said."}


def test_tokens_of_a_long_text_are_not_all_counted():
    counted = []

    def tokenize(text):
        counted.append(len(text))
        return text.split()

    text = "The keeper wrote a letter. " * 1000
    few = PlacedSentenceSplitter(chunk_size=20, chunk_overlap=0, tokenizer=tokenize)
    all_ = SentenceSplitter(chunk_size=20, chunk_overlap=0, tokenizer=str.split)
    document = Document(text=text, id_="a")
    assert [c.text for c in few([document])] == [c.text for c in all_([document])]
    assert sum(counted) < 1.1 * len(text)
    text = "." * 1000
    counted.clear()
    few([Document(text=text, id_="a")])
    assert len(counted) < 5


def test_a_long_title_takes_no_room_from_the_text(written, splitter, capfd):
    html = f"<title>{'long title ' * 200}</title><p>{'The keeper wrote a letter. ' * 200}</p>"
    document = read_one(written, "a.html", html)
    chunks = split_documents([document], splitter)
    assert len(chunks) < 12
    assert capfd.readouterr() == ("", "")


def test_metadata_is_not_embedded(written, splitter):
    document = read_one(written, "name.html", "<title>A title</title><p>Text.</p>")
    (chunk,) = split_documents([document], splitter)
    assert chunk.get_content(MetadataMode.EMBED) == "Text."
    assert chunk.ref_doc_id == "name.html"
    assert (chunk.metadata[FILE_NAME], chunk.metadata["title"]) == ("name.html", "A title")


def test_chunks_of_every_document_in_order(splitter):
    documents = [Document(text=f"Text {name}.", id_=name) for name in "bac"]
    told = []
    chunks = split_documents(documents, splitter, progress=lambda *at: told.append(at))
    assert [chunk.ref_doc_id for chunk in chunks] == ["b", "a", "c"]
    assert told == [("split", i, 3) for i in (1, 2, 3)]
    assert split_documents([], splitter) == []
    assert [d.metadata for d in documents] == [{}] * 3


@pytest.mark.parametrize(
    ("chunk_size", "expected"), [(None, CHUNK_TOKENS), (64, 64)], ids=["default", "given"]
)
def test_chunks_of_a_model_without_a_window(chunk_size, expected):
    splitter = sentence_splitter(HashingEmbedding(), chunk_size)
    assert (splitter.chunk_size, splitter.chunk_overlap) == (expected, 0)


def test_the_window_is_that_of_the_model(embed_model, splitter):
    assert splitter.chunk_size == 254
    assert sentence_splitter(embed_model, 100).chunk_size == 100


def test_reading_warns_of_nothing(written):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_documents(
            *[written({"a.html": "a/b.html", "b.htm": "http://x.y/", "c.pdf": pdf_of("x")})]
        )
    assert not caught

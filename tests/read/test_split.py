"""Chunks of documents: verbatim, in the window, with their pages."""

import pytest
from fakes import HashingEmbedding
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document
from pdfs import pdf_of
from records import as_text_nodes, leaves_of

from hierindex import sentence_splitter
from hierindex.models.embedder import Embedder
from hierindex.node import HEADINGS, PAGE
from hierindex.read.markdown import markdown_headings
from hierindex.read.split import (
    CHUNK_TOKENS,
    PlacedSentenceSplitter,
    split_documents,
    split_stretches,
)
from hierindex.text.sentences import split_sentences


@pytest.fixture(scope="module")
def splitter(embed_model):
    return sentence_splitter(embed_model)


PAGES_OF_PDF = ["The first page.\nIt has two lines.", "The second page is here.", "A third one."]


def pages_of_spans(chunks):
    """(page, text) of every sentence of the chunks as leaves."""
    return [
        (sentence.quote.source.page, sentence.text)
        for leaf in leaves_of(chunks)
        for sentence in split_sentences(leaf.text, leaf.quotes)
    ]


@pytest.mark.parametrize("chunk_size", [40, 60, 200])
def test_chunks_and_sentences_know_their_pages(read_one, chunk_size):
    pages = [*PAGES_OF_PDF, "", "The fifth page is the last.\nAnd so it ends."]
    document = read_one("a.pdf", pdf_of(*pages))
    chunks = split_documents([document], SentenceSplitter(chunk_size=chunk_size, chunk_overlap=0))
    for chunk in chunks:
        assert chunk.text.split("\f")[0] in pages[chunk.metadata[PAGE] - 1]
        assert str(chunk.metadata[PAGE]) not in chunk.embedded_text
    for page, sentence in pages_of_spans(chunks):
        assert sentence in pages[page - 1]


def test_pages_that_read_alike_are_told_apart(read_one):
    document = read_one("a.pdf", pdf_of(*["This page is left blank on purpose."] * 40))
    splitter = PlacedSentenceSplitter(chunk_size=60, chunk_overlap=0)
    pages = [page for page, _ in pages_of_spans(split_documents([document], splitter))]
    assert pages == list(range(1, 41))


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
    "the wick\foil\x0bof\x85Lamp\x1ctowers " * 60,
)


MARKS_AT_THE_END_OF_A_CHUNK = PIECES[1] + PIECES[3] + PIECES[4]
BLANKS_THAT_TOKENIZERS_DROP = PIECES[-1]


TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=300), min_size=1, max_size=8)


@given(TEXTS.map("".join).filter(str.strip))
@example(MARKS_AT_THE_END_OF_A_CHUNK)
@example(BLANKS_THAT_TOKENIZERS_DROP)
def test_default_chunks_are_verbatim_and_fit_the_window(embed_model, splitter, text):
    embedder, document = Embedder(embed_model), Document(text=text, id_="a")
    chunks = split_documents([document], splitter)
    embedded = [chunk.embedded_text for chunk in chunks]
    assert embedder.count_tokens(embedded).max() <= embedder.window == splitter.chunk_size + 2
    for chunk in as_text_nodes(chunks):
        assert chunk.text == text[chunk.start_char_idx : chunk.end_char_idx]


@given(TEXTS.map("".join).filter(str.strip))
@example(MARKS_AT_THE_END_OF_A_CHUNK)
def test_default_chunks_cover_the_document(splitter, text):
    n_chunks_at = [0] * len(text)
    for chunk in as_text_nodes(split_documents([Document(text=text, id_="a")], splitter)):
        for i in range(chunk.start_char_idx, chunk.end_char_idx):
            n_chunks_at[i] += 1
    for n, character in zip(n_chunks_at, text, strict=True):
        assert n == 1 or (n == 0 and character.isspace())


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


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mr. J. Smith came at 3.30 p.m. on foot. ", "Was he late? ", "Yes, by approx. 5 minutes."],
        ["Er kam am 3. Oktober. ", "Es regnete."],
        ["\u96ea\u304c\u964d\u3063\u305f\u3002", "\u5bd2\u3044\u3002"],
    ],
    ids=["abbreviations", "German", "no blanks"],
)
def test_chunks_end_where_sentences_of_summaries_end(sentences):
    text = "".join(sentences)
    assert split_stretches(text) == sentences
    assert [s.text for s in split_sentences(text)] == [*map(str.strip, sentences)]


def test_a_long_title_takes_no_room_from_the_text(read_one, splitter, capfd):
    html = f"<title>{'long title ' * 200}</title><p>{'The keeper wrote a letter. ' * 200}</p>"
    document = read_one("a.html", html)
    chunks = split_documents([document], splitter)
    assert len(chunks) < 12
    assert capfd.readouterr() == ("", "")


def test_a_chunk_of_two_sections_fits_with_the_title_that_they_share(embed_model):
    """Also where their own titles are too long to be embedded."""
    north, south = (" ".join(f"{side} {i}" for i in range(14)) for side in ("north", "south"))
    prose = " ".join(f"The mill number {i} grinds the flour." for i in range(60))
    town = "The old town by the river and its many mills"
    text = f"# {town}\n\n## {north}\n\nShort.\n\n## {south}\n\n{prose}"
    headings = [list(heading) for heading in markdown_headings(text)]
    metadata = {HEADINGS: headings}
    document = Document(text=text, metadata=metadata, excluded_embed_metadata_keys=[HEADINGS])
    splitter = sentence_splitter(embed_model)
    first, *_ = split_documents([document], splitter)
    assert first.metadata["section"] == town
    assert town in first.embedded_text.removesuffix(first.text)
    embedder = Embedder(embed_model)
    assert len(embedder.tokens_of(first.embedded_text)) <= splitter.chunk_size


@pytest.mark.parametrize(
    ("chunk_size", "expected"), [(None, CHUNK_TOKENS), (64, 64)], ids=["default", "given"]
)
def test_chunks_of_a_model_without_a_window(chunk_size, expected):
    splitter = sentence_splitter(HashingEmbedding(), chunk_size)
    assert (splitter.chunk_size, splitter.chunk_overlap) == (expected, 0)

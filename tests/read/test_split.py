"""Chunks of documents: verbatim, in the window, with their sections, pages and anchors."""

from itertools import pairwise

import pytest
from fakes import HashingEmbedding
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
from llama_index.core.schema import Document, MetadataMode, NodeRelationship, TextNode
from pdfs import Typed, pdf_of, typed
from records import as_text_nodes, chunks_of, leaves_of, markdown

from hierindex import HierarchicalIndex, Node, SemanticHierarchy, Span, sentence_splitter
from hierindex.models.embedder import Embedder
from hierindex.node import HEADINGS, PAGE, SECTION
from hierindex.read.split import (
    CHUNK_TOKENS,
    PlacedSentenceSplitter,
    split_stretches,
)
from hierindex.text.sentences import split_sentences


def by_words(chunk_size: int) -> PlacedSentenceSplitter:
    return PlacedSentenceSplitter(chunk_size=chunk_size, chunk_overlap=0, tokenizer=str.split)


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
    chunks = chunks_of([document], SentenceSplitter(chunk_size=chunk_size, chunk_overlap=0))
    for chunk in chunks:
        assert chunk.text.split("\f")[0] in pages[chunk.metadata[PAGE] - 1]
        assert str(chunk.metadata[PAGE]) not in chunk.embedded_text
    for page, sentence in pages_of_spans(chunks):
        assert sentence in pages[page - 1]


def test_pages_that_read_alike_are_told_apart(read_one):
    document = read_one("a.pdf", pdf_of(*["This page is left blank on purpose."] * 40))
    pages = [page for page, _ in pages_of_spans(chunks_of([document], by_words(60)))]
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
    chunks = chunks_of([document], splitter)
    embedded = [chunk.embedded_text for chunk in chunks]
    assert embedder.count_tokens(embedded).max() <= embedder.window == splitter.chunk_size + 2
    for chunk in as_text_nodes(chunks):
        assert chunk.text == text[chunk.start_char_idx : chunk.end_char_idx]


@given(TEXTS.map("".join).filter(str.strip))
@example(MARKS_AT_THE_END_OF_A_CHUNK)
def test_default_chunks_cover_the_document(splitter, text):
    n_chunks_at = [0] * len(text)
    for chunk in as_text_nodes(chunks_of([Document(text=text, id_="a")], splitter)):
        for i in range(chunk.start_char_idx, chunk.end_char_idx):
            n_chunks_at[i] += 1
    for n, character in zip(n_chunks_at, text, strict=True):
        assert n == 1 or (n == 0 and character.isspace())


ROWS = [f"| r{i} | It is so of {i}. It is not. | {'x, y ' * (i % 5)}|\n" for i in range(60)]


@pytest.mark.parametrize("mark", ["", "| "], ids=["html", "markdown"])
def test_rows_of_a_table_are_cut_only_if_they_do_not_fit_a_chunk(mark):
    rows = [mark + row.removeprefix("| ") for row in ROWS]
    text = f"It is so. And so.\n\n{''.join(rows)}\nIt was so."
    chunks = chunks_of([Document(text=text)], sentence_splitter(HashingEmbedding(), 100))
    assert len(chunks) > 5
    lines = [line.strip() for chunk in chunks for line in chunk.text.split("\n")]
    assert list(filter(None, lines)) == [line.strip() for line in text.split("\n") if line]


def test_a_long_sentence_is_cut_at_its_lines():
    lines = [f"{i}, of the other, and then of another one\n" for i in range(60)]
    text = "".join(lines)
    chunks = chunks_of([Document(text=text)], sentence_splitter(HashingEmbedding(), 100))
    assert len(chunks) > 5
    assert [f"{line}\n" for chunk in chunks for line in chunk.text.split("\n")] == lines


def test_a_row_that_does_not_fit_a_chunk_is_cut_at_its_sentences():
    text = f"| {'It is so. ' * 60}|"
    chunks = chunks_of([Document(text=text)], sentence_splitter(HashingEmbedding(), 60))
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
    chunks = chunks_of([document], splitter)
    assert len(chunks) < 12
    assert capfd.readouterr() == ("", "")


def test_a_chunk_of_two_sections_fits_with_the_title_that_they_share(embed_model):
    """Also where their own titles are too long to be embedded."""
    north, south = (" ".join(f"{side} {i}" for i in range(14)) for side in ("north", "south"))
    prose = " ".join(f"The mill number {i} grinds the flour." for i in range(60))
    town = "The old town by the river and its many mills"
    text = f"# {town}\n\n## {north}\n\nShort.\n\n## {south}\n\n{prose}"
    splitter = sentence_splitter(embed_model)
    first, *_ = chunks_of([markdown("a", text)], splitter)
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


SENTENCE = "The keeper of the lighthouse wrote a letter. "


def sections(chunks: list[TextNode]) -> list[str | None]:
    return [chunk.metadata.get(SECTION) for chunk in chunks]


LONG, SHORT = SENTENCE * 4, "Six words.\n"
SECTIONED = {
    "a section each": (f"# A\n{LONG}\n# B\n{LONG}\n", ["A", "B"]),
    "long sections": (f"# A\n{LONG * 2}\n## B\n{LONG * 2}\n", ["A", "A", "A › B", "A › B"]),
    "short ones together": (f"# A\n\n## B\n{SHORT}## C\n{SHORT}## D\n{SHORT}", ["A", "A › D"]),
    "a short one in a long one": (f"# A\n{LONG}\n## B\n{SHORT}\n# C\n{LONG}", ["A", "A › B", "C"]),
    "a short one with short ones": (f"# A\n## B\n{SHORT}\n# C\n{SHORT}\n# D\n{SHORT}", [None, "D"]),
    "a title alone": (
        f"# A\n\n## B\n\n### C\n{SENTENCE * 3}\n## D\n{LONG}",
        ["A › B › C", "A › D"],
    ),
    "text before": (f"{LONG}\n# A\n{LONG}", [None, "A"]),
    "little text before": (f"Hello.\n\n# A\n{LONG}", ["A"]),
    "a title with text": (f"# A\nHello.\n\n## B\n{LONG}", ["A"]),
    "the last is short": (f"# A\n{LONG}\n# B\n{SHORT}", ["A", "B"]),
    "levels jump": (f"### A\n{LONG}\n# B\n{LONG}\n#### C\n{LONG}", ["A", "B", "B › C"]),
}


@pytest.mark.parametrize(("text", "expected"), SECTIONED.values(), ids=SECTIONED)
def test_chunks_end_where_sections_end(text, expected):
    chunks = by_words(43)([markdown("a", text)])
    assert sections(chunks) == expected
    assert "".join("".join(chunk.text.split()) for chunk in chunks) == "".join(text.split())


PARTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 60)).map(
        lambda part: "#" * part[0] + " T" * bool(part[0]) + "\n" + "word it. " * part[1] + "\n\n"
    ),
    max_size=12,
)


@given(PARTS.map("".join).filter(str.strip), st.sampled_from([16, 40, 100]))
def test_chunks_with_headings_are_verbatim_in_order_and_fit(text, chunk_size):
    splitter, document = by_words(chunk_size), markdown("a", text)
    chunks = splitter([document])
    starts = [heading[2] for heading in document.metadata.get(HEADINGS, [])]
    for chunk in chunks:
        start, end = chunk.start_char_idx, chunk.end_char_idx
        assert text[start:end] == chunk.text
        assert len(chunk.text.split()) <= chunk_size
        within = [at for at in starts if start < at < end]
        ends = [*within, end]
        for at in within:  # only a part that is short goes on
            assert len(text[start:at].split()) < chunk_size // 4
        assert sorted(ends) == ends
    covered = sum(len("".join(chunk.text.split())) for chunk in chunks)
    assert covered == len("".join(text.split()))
    assert all(a.end_char_idx <= b.start_char_idx for a, b in pairwise(chunks))


@given(
    st.lists(st.sampled_from(["It is so. ", "word ", "\n\n\n", "# A\n", "x" * 50]), max_size=60)
    .map("".join)
    .filter(str.strip)
)
def test_without_headings_chunks_are_those_of_llama_index(text):
    chunks = by_words(12)([Document(text=text, id_="a")])
    theirs = SentenceSplitter(chunk_size=12, chunk_overlap=0, tokenizer=lambda t: t.split() or [""])
    assert [chunk.text for chunk in chunks] == theirs.split_text(text)
    assert sections(chunks) == [None] * len(chunks)


@pytest.mark.parametrize(
    "splitter",
    [PlacedSentenceSplitter, SentenceSplitter, TokenTextSplitter],
)
def test_no_chunk_keeps_the_headings_of_its_document(splitter):
    document = markdown("a", f"# A\n{LONG}\n## B\n{LONG}\n# C\n{LONG}", title="A")
    before = document.to_dict()
    chunks = chunks_of([document], splitter(chunk_size=60, chunk_overlap=0))
    assert len(chunks) > 1
    assert document.to_dict() == before
    for chunk in as_text_nodes(chunks):
        assert chunk.metadata["title"] == "A"
        for each in (chunk, *chunk.relationships.values()):
            assert HEADINGS not in each.metadata
        assert chunk.get_content(MetadataMode.LLM) == chunk.text
    assert sections(chunks)[0] == "A"


def test_sections_are_known_in_a_pipeline():
    text = f"# A\n{LONG}\n## B\n{LONG}"
    model = HashingEmbedding()
    steps = [sentence_splitter(model, 60), model, SemanticHierarchy(embed_model=model)]
    nodes = IngestionPipeline(transformations=steps).run(documents=[markdown("a", text)])
    records = [Node.of(node) for node in nodes]
    leaves = [node for node, record in zip(nodes, records, strict=True) if not record.level]
    assert sections(leaves) == ["A", "A › B"]
    assert [[s.section for s in r.citations] for r in records[:2]] == [["A"], ["A › B"]]
    top, record = nodes[-1], records[-1]
    assert (top.metadata[SECTION], record.level) == ("A", 1)
    assert {span.section for span in record.citations} <= {"A", "A › B"}
    assert all(node.get_content(MetadataMode.LLM) == node.text for node in nodes)
    assert top.get_content(MetadataMode.EMBED) == top.text


SHOWN = {
    "its section": ("# Lamp\n\n## Oil\n", {"title": "Lamp"}, "section: Lamp › Oil"),
    "the title, too": ("## Oil\n", {"title": "Lamps"}, "title: Lamps\nsection: Oil"),
    "no title": ("## Oil\n", {}, "section: Oil"),
    "too long": (f"## {SENTENCE}\n", {"title": "Lamps"}, None),
    "no heading": ("", {"title": "Lamps"}, None),
    "its own": ("## Oil\n", {SECTION: "mine"}, None),
}


@pytest.mark.parametrize(("head", "metadata", "shown"), SHOWN.values(), ids=SHOWN)
def test_a_chunk_is_embedded_with_short_titles(head, metadata, shown):
    chunk, *others = by_words(60)([markdown("a", f"{head}{SENTENCE * 12}", **metadata)])
    before = f"{shown}\n\n" if shown else ""
    for each in (chunk, *others):
        assert each.get_content(MetadataMode.EMBED) == before + each.text
        assert len(each.get_content(MetadataMode.EMBED).split()) <= 60
    assert others


def test_chunks_of_chunks_keep_their_section():
    text = f"# A\n{LONG * 3}\n# B\n{LONG * 3}"
    coarse = as_text_nodes(chunks_of([markdown("a", text)], by_words(200)))
    fine = by_words(30)(coarse)
    assert {*sections(fine)} == {"A", "B"}
    llama = SentenceSplitter(chunk_size=200, chunk_overlap=0)([markdown("a", text)])
    assert not any(HEADINGS in chunk.metadata for chunk in by_words(30)(llama))
    for leaf in leaves_of(llama):
        assert HEADINGS not in {**leaf.metadata, **leaf.source["metadata"]}


LETTERS = f"# Letters\n\n## Storm\n{LONG}The storm broke the lamp.\n\n## Calm\n{LONG}It was calm.\n"


def test_renaming_a_heading_moves_sections_and_calls_no_model(tmp_path, monkeypatch):
    """Of the chunks that are not the heading's own."""
    model = HashingEmbedding(model_name="known")
    hierarchy = SemanticHierarchy(embed_model=model)

    def built(text: str) -> dict[str, TextNode]:
        documents = [markdown("a", text), Document(text=LONG, id_="b")]
        index = HierarchicalIndex.build(documents, tmp_path, hierarchy=hierarchy, chunk_size=40)
        return {node.text: node for node in index.store.get_nodes()}

    before = built(LETTERS)
    embedded = []
    embed = HashingEmbedding._get_text_embeddings
    monkeypatch.setattr(
        HashingEmbedding,
        "_get_text_embeddings",
        lambda model, texts: embedded.extend(texts) or embed(model, texts),
    )
    after = built(LETTERS.replace("# Letters", "# Post"))
    calm = next(text for text in before if text.startswith("## Calm"))
    assert before[calm].metadata[SECTION] == "Letters › Calm"
    assert after[calm].metadata[SECTION] == "Post › Calm"
    assert before[calm].node_id == after[calm].node_id
    assert calm not in embedded
    assert all("Post" in text or text not in before for text in embedded)


@pytest.mark.parametrize(
    "headings",
    [
        [[1, "A", 0], "intro"],
        [[1, "A", 0], ["2", "B", 9]],
        [[1, "A", 0], [2, "B", "9"]],
        [[1, "A", 0], [2, None, 9]],
        [[1, "A", 0], [2, "B"]],
        [[1, "A", 0], None],
        "A",
    ],
)
def test_headings_of_another_shape_are_metadata_of_the_user(headings):
    document = Document(text="A long time ago.", metadata={HEADINGS: headings})
    (chunk,) = chunks_of([document], by_words(50))
    assert chunk.metadata == {HEADINGS: headings}


def test_a_section_and_a_number_of_pages_of_the_user_stay():
    metadata = {SECTION: "HR", "pages": 300}
    (chunk,) = chunks_of([markdown("a", "# A\n\nSome text.", **metadata)], by_words(50))
    assert chunk.metadata[SECTION] == "HR"
    assert "page" not in chunk.metadata


GUIDE = """
<h1 id=top>Guide</h1>
<p>How to tend the lamp of the tower.</p>
<h2 id=oil>Oil</h2>
<p>Fill the tank each evening. Use no fish oil.</p>
<h2>Wick</h2>
<p>Trim the wick each morning.</p>
<h2 id=glass>Glass</h2>
<h3 id=panes>Panes</h3>
<p>Wash the panes with care.</p>
"""
REPORT = [
    [Typed("A foreword on the lamp.", 700)],
    [Typed("It was lit in May. The tower was high.", 700)],
    [Typed("The first chapter begins here.", 700)],
]


@pytest.fixture
def page(read_one) -> Document:
    return read_one("guide.html", GUIDE)


@pytest.fixture
def pdf(read_one) -> Document:
    return read_one("report.pdf", typed(*REPORT, labels=True))


def sentences(document: Document, splitter) -> dict[str, Span]:
    """Sources of the sentences of the chunks, by text."""
    leaves = leaves_of(chunks_of([document], splitter))
    found = {}
    for leaf in leaves:
        for sentence in split_sentences(leaf.text, leaf.quotes):
            found[sentence.text] = span = sentence.quote.source
            assert document.text[span.start : span.end] == sentence.text
    return found


@pytest.mark.parametrize("chunk_size", [300, 14])
def test_a_sentence_has_the_section_and_anchor_above_it(page, chunk_size):
    """In a chunk of many sections, too."""
    found = sentences(page, by_words(chunk_size))
    assert {text: (span.anchor, span.section) for text, span in found.items()} == {
        "Guide": ("top", "Guide"),
        "How to tend the lamp of the tower.": ("top", "Guide"),
        "Oil": ("oil", "Guide › Oil"),
        "Fill the tank each evening.": ("oil", "Guide › Oil"),
        "Use no fish oil.": ("oil", "Guide › Oil"),
        "Wick": ("oil", "Guide › Wick"),  # the nearest before it
        "Trim the wick each morning.": ("oil", "Guide › Wick"),
        "Glass": ("panes", "Guide › Glass › Panes"),  # a heading without text of its own
        "Panes": ("panes", "Guide › Glass › Panes"),
        "Wash the panes with care.": ("panes", "Guide › Glass › Panes"),
    }


@pytest.mark.parametrize(
    "splitter", [by_words(300), by_words(6), TokenTextSplitter(chunk_size=300, chunk_overlap=0)]
)
def test_a_sentence_has_the_page_that_it_starts_on(pdf, splitter):
    """In a chunk that crosses page breaks, too."""
    found = sentences(pdf, splitter)
    assert {text: (span.page, span.page_label) for text, span in found.items()} == {
        "A foreword on the lamp.": (1, "i"),
        "It was lit in May.": (2, "ii"),
        "The tower was high.": (2, "ii"),
        "The first chapter begins here.": (3, "1"),
    }


def test_a_page_that_is_printed_as_its_number_has_no_label(read_one):
    pdf = read_one("a.pdf", typed(*REPORT))
    assert {span.page_label for span in sentences(pdf, by_words(300)).values()} == {""}
    labelled = Document(text="A\fB", metadata={"pages": 2, "page_labels": ["1", "B-1"]})
    found = sentences(labelled, by_words(300))
    assert [(span.page, span.page_label) for span in found.values()] == [(1, ""), (2, "B-1")]


def test_a_page_of_the_users_is_where_a_document_begins():
    document = Document(text="It was calm.\fIt blew.", metadata={"page": 3})
    (leaf,) = leaves_of(chunks_of([document], by_words(300)))
    assert [span.page for span in leaf.citations] == [3, 4]


def test_a_renamed_document_is_cited_by_its_new_name(page):
    (chunk,) = chunks_of([page], by_words(300))
    (chunk,) = as_text_nodes([chunk])
    chunk.relationships[NodeRelationship.SOURCE].node_id = "other"
    assert {span.document for span in leaves_of([chunk])[0].citations} == {"other"}


def test_places_reach_no_model_and_no_leaf_twice(page):
    model = HashingEmbedding()
    steps = [by_words(300), model, SemanticHierarchy(embed_model=model)]
    (node,) = IngestionPipeline(transformations=steps).run(documents=[page])
    for mode in ("embed", "llm"):
        assert "hierindex" not in node.get_content(mode)
    assert HEADINGS not in node.metadata
    assert len(Node.of(node).quotes) == 4

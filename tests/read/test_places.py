"""Pages, their labels, sections and anchors of chunks, and of sentences within them."""

import pytest
from fakes import HashingEmbedding
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import Document, NodeRelationship
from pdfs import Typed, typed
from records import as_text_nodes, leaves_of

from hierindex import FileReader, Node, SemanticHierarchy, Span
from hierindex.node import HEADINGS
from hierindex.read.split import PlacedSentenceSplitter, split_documents
from hierindex.text.sentences import split_sentences

PAGE = """
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
PAGES = [
    [Typed("A foreword on the lamp.", 700)],
    [Typed("It was lit in May. The tower was high.", 700)],
    [Typed("The first chapter begins here.", 700)],
]


def by_words(chunk_size: int) -> PlacedSentenceSplitter:
    return PlacedSentenceSplitter(chunk_size=chunk_size, chunk_overlap=0, tokenizer=str.split)


def read(path, data: bytes) -> Document:
    path.write_bytes(data)
    return FileReader().load_data(path)[0]


@pytest.fixture
def page(tmp_path) -> Document:
    return read(tmp_path / "guide.html", PAGE.encode())


@pytest.fixture
def pdf(tmp_path) -> Document:
    return read(tmp_path / "report.pdf", typed(*PAGES, labels=True))


def sentences(document: Document, splitter) -> dict[str, Span]:
    """Sources of the sentences of the chunks, by text."""
    leaves = leaves_of(split_documents([document], splitter))
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
        "Glass\nPanes": ("panes", "Guide › Glass › Panes"),  # a heading without text of its own
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


def test_a_page_that_is_printed_as_its_number_has_no_label(tmp_path):
    pdf = read(tmp_path / "a.pdf", typed(*PAGES))
    assert {span.page_label for span in sentences(pdf, by_words(300)).values()} == {""}
    labelled = Document(text="A\fB", metadata={"pages": 2, "page_labels": ["1", "B-1"]})
    found = sentences(labelled, by_words(300))
    assert [(span.page, span.page_label) for span in found.values()] == [(1, ""), (2, "B-1")]


def test_a_page_of_the_users_is_where_a_document_begins():
    document = Document(text="It was calm.\fIt blew.", metadata={"page": 3})
    (leaf,) = leaves_of(split_documents([document], by_words(300)))
    assert [span.page for span in leaf.citations] == [3, 4]


def test_a_renamed_document_is_cited_by_its_new_name(page):
    (chunk,) = split_documents([page], by_words(300))
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

"""Every citation is found at its place: over generated documents, at every level up to the root."""

import pytest
from fakes import HashingEmbedding
from hypothesis import assume, given
from hypothesis import strategies as st
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, NodeWithScore, TextNode
from records import as_text_nodes, chunks_of

from hierindex import (
    DocumentHierarchy,
    ExtractiveSynthesizer,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
    sentence_splitter,
)
from hierindex.node import PAGE_BREAK, PAGE_LABEL, PAGES
from hierindex.text.sentences import split_sentences

HIERARCHIES = [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy]
SPLITTERS = [
    SentenceSplitter(chunk_size=60, chunk_overlap=25, tokenizer=list),
    SentenceSplitter(chunk_size=200, chunk_overlap=0, tokenizer=list),
    sentence_splitter(HashingEmbedding(), chunk_size=40),
]
SENTENCES = (
    "The keeper wrote a letter to his wife. ",
    "He left the bay before the tide came in. ",
    "雪が降った。道は閉ざされた。",
    "# A title\n",
    "- one thing\n- and another\n",
    "| a | b |\n|---|---|\n",
    "```py\nx = f(1). y\n```\n",
    "e\u0301 \U0001f468\u200d\U0001f469 \u200f\u05e9\u05dc\u05d5\u05dd. ",
    "\n\n\n",
    " \t\u3000 ",
    "word " * 60,
)
TEXTS = st.lists(st.sampled_from(SENTENCES) | st.text(max_size=40), min_size=1, max_size=25).map(
    "".join
)


@st.composite
def documents(draw):
    """Plain ones, ones with pages, and ones that are a page."""
    made = []
    for i in range(draw(st.integers(1, 3))):
        pages = [
            text.replace(PAGE_BREAK, " ") for text in draw(st.lists(TEXTS, min_size=1, max_size=3))
        ]
        metadata = draw(st.sampled_from([{}, {PAGES: len(pages)}, {PAGE_LABEL: str(40 + i)}]))
        made.append(Document(text=PAGE_BREAK.join(pages), id_=f"d{i}", metadata=metadata))
    return made


def expected_page(document: Document, start: int) -> int | None:
    if PAGES in document.metadata:
        return 1 + document.text.count(PAGE_BREAK, 0, start)
    return int(document.metadata[PAGE_LABEL]) if PAGE_LABEL in document.metadata else None


def check(node: TextNode, source: dict[str, Document]) -> None:
    """A node's quotes stand in documents as in the node, and all its sentences have one."""
    quotes = Node.of(node).quotes
    owned = [False] * len(node.text)
    for at, to, span, verbatim, _ in quotes:
        document = source[span.document]
        assert verbatim
        assert document.text[span.start : span.end] == node.text[at:to]
        assert span.page == expected_page(document, span.start)
        owned[at:to] = [True] * (to - at)
    assert all(own or character.isspace() for own, character in zip(owned, node.text, strict=True))
    for sentence in split_sentences(node.text, quotes):
        span = sentence.quote.source
        assert source[span.document].text[span.start : span.end] == sentence.text


@given(documents(), st.sampled_from(HIERARCHIES), st.sampled_from(SPLITTERS))
def test_every_citation_is_found_at_its_place(found, kind, splitter):
    source = {document.node_id: document for document in found}
    model = HashingEmbedding()
    chunks = as_text_nodes(chunks_of(found, splitter))
    # LlamaIndex's own splitter does not find the place of every chunk.
    assume(all(chunk.start_char_idx is not None for chunk in chunks))
    nodes = kind(embed_model=model, summary_tokens=40)(chunks)
    for node in nodes:
        check(node, source)
    answer = ExtractiveSynthesizer(model).synthesize(
        "What did the keeper write?", [NodeWithScore(node=node, score=1.0) for node in nodes]
    )
    for citation in answer.metadata["citations"]:
        document = source[citation["document"]]
        assert document.text[citation["start"] : citation["end"]] in str(answer)
        assert citation.get("page") == expected_page(document, citation["start"])


@pytest.mark.parametrize(
    ("label", "page"), [("12", 12), (7, 7), ("iv", None), ("A-3", None), ("", None), (None, None)]
)
def test_a_document_that_is_a_page_has_its_label_if_that_is_a_number(label, page):
    document = Document(text="The keeper wrote. He left.", id_="p", metadata={PAGE_LABEL: label})
    chunks = chunks_of([document], SentenceSplitter(chunk_size=200))
    (node,) = SemanticHierarchy(embed_model=HashingEmbedding()).grow([chunks]).nodes
    assert [span.page for span in node.citations] == [page]


def test_a_chunk_that_was_rewritten_cites_its_place_as_a_whole():
    document = Document(text="One   thing.  Another   thing.", id_="d")
    (chunk,) = SentenceSplitter()([document])
    chunk.text = "One thing. Another thing."
    (node,) = SemanticHierarchy(embed_model=HashingEmbedding())([chunk])
    (quote,) = Node.of(node).quotes
    assert not quote.verbatim
    assert document.text[quote.source.start : quote.source.end] == document.text


def test_chunks_of_chunks_are_placed_in_the_document():
    document = Document(text="\n\n\n".join(f"Part {i}. It is so. " * 30 for i in range(9)), id_="d")
    coarse = SentenceSplitter(chunk_size=200, chunk_overlap=0, tokenizer=str.split)
    fine = sentence_splitter(HashingEmbedding(), chunk_size=30)
    chunks = fine(coarse([document]))
    assert len(chunks) > 20
    for chunk in chunks:
        assert chunk.ref_doc_id == "d"
        assert document.text[chunk.start_char_idx : chunk.end_char_idx] == chunk.text
    assert [c.start_char_idx for c in chunks] == sorted({c.start_char_idx for c in chunks})

"""Chunks of documents with headings."""

from itertools import pairwise

import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter, TokenTextSplitter
from llama_index.core.schema import Document, MetadataMode, TextNode
from records import as_text_nodes, leaves_of

from hierindex import HierarchicalIndex, Node, SemanticHierarchy, sentence_splitter
from hierindex.node import HEADINGS, SECTION
from hierindex.read.markdown import markdown_headings
from hierindex.read.split import PlacedSentenceSplitter, split_documents

SENTENCE = "The keeper of the lighthouse wrote a letter. "


def document_of(text: str, **metadata) -> Document:
    found = [list(heading) for heading in markdown_headings(text)]
    hidden = [HEADINGS, *metadata]
    return Document(
        id_="a",
        text=text,
        metadata={HEADINGS: found, **metadata},
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
    )


def by_words(chunk_size: int) -> PlacedSentenceSplitter:
    return PlacedSentenceSplitter(chunk_size=chunk_size, chunk_overlap=0, tokenizer=str.split)


def sections(chunks: list[TextNode]) -> list[str | None]:
    return [chunk.metadata.get(SECTION) for chunk in chunks]


LONG, SHORT = SENTENCE * 4, "Six words.\n"
TEXTS = {
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


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_chunks_end_where_sections_end(text, expected):
    chunks = by_words(43)([document_of(text)])
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
    splitter, document = by_words(chunk_size), document_of(text)
    chunks = splitter([document])
    starts = [heading[2] for heading in document.metadata[HEADINGS]]
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
    document = document_of(f"# A\n{LONG}\n## B\n{LONG}\n# C\n{LONG}", title="A")
    before = document.to_dict()
    chunks = split_documents([document], splitter(chunk_size=60, chunk_overlap=0))
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
    nodes = IngestionPipeline(transformations=steps).run(documents=[document_of(text)])
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
    chunk, *others = by_words(60)([document_of(f"{head}{SENTENCE * 12}", **metadata)])
    before = f"{shown}\n\n" if shown else ""
    for each in (chunk, *others):
        assert each.get_content(MetadataMode.EMBED) == before + each.text
        assert len(each.get_content(MetadataMode.EMBED).split()) <= 60
    assert others


def test_chunks_of_chunks_keep_their_section():
    text = f"# A\n{LONG * 3}\n# B\n{LONG * 3}"
    coarse = as_text_nodes(split_documents([document_of(text)], by_words(200)))
    fine = by_words(30)(coarse)
    assert {*sections(fine)} == {"A", "B"}
    llama = SentenceSplitter(chunk_size=200, chunk_overlap=0)([document_of(text)])
    assert not any(HEADINGS in chunk.metadata for chunk in by_words(30)(llama))
    for leaf in leaves_of(llama):
        assert HEADINGS not in {**leaf.metadata, **leaf.source["metadata"]}


LETTERS = f"# Letters\n\n## Storm\n{LONG}The storm broke the lamp.\n\n## Calm\n{LONG}It was calm.\n"


def test_renaming_a_heading_moves_sections_and_calls_no_model(tmp_path, monkeypatch):
    """Of the chunks that are not the heading's own."""
    model = HashingEmbedding(model_name="known")
    hierarchy = SemanticHierarchy(embed_model=model)

    def built(text: str) -> dict[str, TextNode]:
        documents = [document_of(text), Document(text=LONG, id_="b")]
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
    (chunk,) = split_documents([document], by_words(50))
    assert chunk.metadata == {HEADINGS: headings}


def test_a_section_and_a_number_of_pages_of_the_user_stay():
    metadata = {SECTION: "HR", "pages": 300}
    (chunk,) = split_documents([document_of("# A\n\nSome text.", **metadata)], by_words(50))
    assert chunk.metadata[SECTION] == "HR"
    assert "page" not in chunk.metadata

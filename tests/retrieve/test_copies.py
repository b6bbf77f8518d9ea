"""Documents that are copies: their passages are shown once, with the places of all."""

import pytest
from fakes import HashingEmbedding
from indexes import built as built_of
from indexes import where
from llama_index.core.schema import Document, MetadataMode, QueryBundle, TextNode
from readers import WAYS
from records import metadata_of

from hierindex import HierarchyRetriever, HierarchyStore, Node, Quote, Span

QUESTION = "Which lamp of a did the keeper light?"
WHOLE = "What is this about?"
WITHOUT_FILTERS = [way for way in WAYS if "filters" not in way]


def text_of(name: str, n_sentences: int = 24) -> str:
    things = "lamp rope bell sail oven gate".split()
    return "  ".join(
        f"On day {i} of {name} the keeper of {things[i % 6]} {i} met a {things[(i * 5 + 2) % 6]}."
        for i in range(n_sentences)
    )


def document(name: str, text: str) -> Document:
    return Document(id_=name, text=text, metadata={"file_name": name})


def built(folder, *documents):
    return built_of(documents, folder, chunk_size=60, summary_tokens=40, max_children=3)


A, C = text_of("a"), text_of("c")
COPIES = [document("a.md", A), document("b.md", A), document("c.md", C), document("d.md", A)]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return built(tmp_path_factory.mktemp("index"), *COPIES)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return built(tmp_path_factory.mktemp("index"), COPIES[0], COPIES[2])


def texts(found):
    return [node.node.get_content(MetadataMode.NONE) for node in found]


def places(node):
    return {span.document for span in node.citations}


def ask(index, question=QUESTION, **way):
    return index.as_retriever(**way).retrieve(question)


@pytest.mark.spread
@pytest.mark.parametrize("way", WITHOUT_FILTERS, ids=str)
@pytest.mark.parametrize("top_k", [1, 4])
def test_equal_texts_are_one_result_with_all_places(index, alone, way, top_k):
    way = {"token_budget": None, **way}
    found = ask(index, top_k=top_k, **way)
    if way.get("by") != "text":
        assert len(found) == len(ask(alone, top_k=top_k, **way))
    assert len({*texts(found)}) == len(found)
    text_of_document = {each.doc_id: each.text for each in COPIES}
    for node in found:
        record = Node.of(node)
        if {"a.md", "b.md", "d.md"} & places(node) and not record.level:
            assert places(node) == {"a.md", "b.md", "d.md"}
        for quote in record.quotes:
            for span in quote.sources:
                said = text_of_document[span.document][span.start : span.end]
                assert said == node.text[quote.at : quote.to]


def test_summaries_of_copies_are_one_result(index):
    found = ask(index, level=1, top_k=100, token_budget=None)
    assert len({*texts(found)}) == len(found)
    assert {"a.md", "b.md", "d.md"} in [places(node) for node in found]


def test_an_outline_shows_copies_once(index):
    found = ask(index, WHOLE, mode="auto", token_budget=200)
    assert found[0].why
    for nodes in (found, index.outline(200)):
        assert len({*texts(nodes)}) == len(nodes)


def test_a_budget_counts_a_text_once(index, alone):
    for budget in (60, 150):
        found = ask(index, level=0, token_budget=budget)
        assert texts(found) == texts(ask(alone, level=0, token_budget=budget))


@pytest.mark.parametrize("way", [{}, {"level": 0}, {"mode": "document"}, {"mode": "collapsed"}])
def test_only_places_that_pass_the_filters_are_shown(index, way):
    found = ask(index, filters=where("in", file_name=["b.md", "d.md"]), **way)
    assert found
    assert set().union(*map(places, found)) == {"b.md", "d.md"}


def test_after_an_edit_and_a_deletion_the_places_are_those_that_are_left(tmp_path):
    index = built(tmp_path, *COPIES)
    (best,) = ask(index, level=0, top_k=1)
    assert places(best) == {"a.md", "b.md", "d.md"}
    index.store.delete("a.md")
    (best,) = ask(index, level=0, top_k=1)
    assert places(best) == {"b.md", "d.md"}
    index = built(tmp_path, document("b.md", f"Anew.  {A}"), *COPIES[2:])
    for node in ask(index, level=0, top_k=100, token_budget=None):
        assert len({*places(node)}) == len(places(node))
        assert node.text not in A or places(node) <= {"b.md", "d.md"}
    index.store.delete("d.md")
    for node in ask(index, level=0, top_k=100, token_budget=None):
        assert len(places(node)) == 1


def test_of_a_document_and_its_copies_one_is_shown(index):
    """So that chunks have their common parents, and are read in their order."""
    found = ask(index, level=0, top_k=100, token_budget=None)
    assert {node.metadata["file_name"] for node in found} == {"a.md", "c.md"}
    assert all(places(node) != {"a.md"} for node in found)


def test_a_reranker_reads_each_text_once(index):
    asked = []

    class Longest:
        def rank(self, question, texts):
            asked.extend(texts)
            return [float(len(text)) for text in texts]

    found = ask(index, level=0, top_k=3, rerank=Longest())
    assert len({*asked}) == len(asked)
    assert len(found) == 3


def test_an_answer_names_all_places(index):
    options = {"top_k": 3, "synthesizer": {"min_score": None}}
    answer = index.ask("Whom did the keeper of lamp 12 of a meet?", **options)
    cited = [c for c in answer.citations if c.document != "c.md"]
    assert cited
    for citation in cited:
        documents = [each.document for each in (citation, *citation.also)]
        assert sorted(documents) == ["a.md", "b.md", "d.md"]
        for each in citation.also:
            assert (each.start, each.end) == (citation.start, citation.end)
    sources = answer.to_json()["sources"]
    assert {"a.md", "b.md", "d.md"} in [{c["document"] for c in s["citations"]} for s in sources]


def node_of(text, *quotes, **record):
    record = metadata_of(quotes=quotes, **record)
    return TextNode(text=text, embedding=[1.0], metadata=record)


def found_among(folder, *nodes):
    (store := HierarchyStore(folder)).add(nodes)
    retriever = HierarchyRetriever(store, HashingEmbedding(), mode="collapsed")
    return retriever.retrieve(QueryBundle("One?", embedding=[1.0]))


def test_a_chunk_is_shown_and_not_its_summary_of_the_same_text(tmp_path):
    chunk = node_of("One. Two.", Quote(0, 9, Span("a", 10, 19)))
    sentences = Quote(0, 4, Span("a", 10, 14)), Quote(5, 9, Span("a", 15, 19))
    summary = node_of("One. Two.", *sentences, level=1)
    (found,) = found_among(tmp_path, summary, chunk)
    assert (found.node_id, found.score) == (chunk.node_id, 1.0)
    assert found.citations == Node.of(chunk).citations


def test_copies_without_known_places_are_one(tmp_path):
    nodes = [node_of("One.", Quote(0, 4, None)) for _ in "ab"]
    (found,) = found_among(tmp_path, *nodes)
    assert found.node_id in {node.node_id for node in nodes}

"""What LlamaIndex tests of ingestion, retrievers and query engines, with a tree behind them.

Its tests of vector stores are in `tests/store/test_conformance.py`.
"""

import asyncio

import pytest
from fakes import HashingEmbedding
from indexes import documents_of
from llama_index.core import Settings
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import QueryFusionRetriever, RouterRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from store.trees import HIERARCHIES

from hierindex import HierarchyRetriever, HierarchyStore, Node

QUESTION = "Which harbour met a lantern?"


def ids(found: list[NodeWithScore]) -> list[str]:
    return [node.node_id for node in found]


def text(word: str) -> str:
    return " ".join(f"The {word} of day {i} met the keeper of the {word}." for i in range(30))


class Chooses(MockLLM):
    """A model that always chooses the first of what is offered."""

    def complete(self, prompt: str, formatted: bool = False, **kwargs):
        answer = super().complete("x", formatted, **kwargs)
        answer.text = '[{"choice": 1, "reason": "It is the first."}]'
        return answer


# Ingestion


def pipeline_of(kind, **options) -> IngestionPipeline:
    model = HashingEmbedding()
    steps = [
        SentenceSplitter(chunk_size=60, chunk_overlap=0),
        model,
        kind(embed_model=model, summary_tokens=60),
    ]
    return IngestionPipeline(transformations=steps, **options)


@pytest.fixture(params=HIERARCHIES, ids=lambda kind: kind.method)
def ingest(request, tmp_path):
    """A store, and a function that runs documents through a pipeline with a docstore into it."""
    store, docstore = HierarchyStore(tmp_path / "index"), SimpleDocumentStore()

    def run(strategy: DocstoreStrategy, **texts: str) -> list:
        pipeline = pipeline_of(
            request.param,
            vector_store=store,
            docstore=docstore,
            docstore_strategy=strategy,
            disable_cache=True,
        )
        return pipeline.run(documents=documents_of(texts))

    return store, run


def documents_in(store: HierarchyStore) -> set[str]:
    records = [Node.of(node) for node in store.get_nodes()]
    return {document for record in records for document in record.documents}


@pytest.mark.parametrize("strategy", DocstoreStrategy)
def test_what_was_ingested_is_not_ingested_again(ingest, strategy) -> None:
    store, run = ingest
    assert run(strategy, a=text("anchor"), b=text("bell"))
    before = {node.node_id for node in store.get_nodes()}
    assert run(strategy, a=text("anchor"), b=text("bell")) == []
    assert {node.node_id for node in store.get_nodes()} == before


@pytest.mark.filterwarnings("ignore:.* now has . roots")
def test_upserts_replace_a_changed_document_and_all_that_stands_on_it(ingest) -> None:
    store, run = ingest
    run(DocstoreStrategy.UPSERTS, a=text("anchor"), b=text("bell"))
    run(DocstoreStrategy.UPSERTS, a=text("dough"))
    assert documents_in(store) == {"a", "b"}
    assert not any("anchor" in node.get_content() for node in store.get_nodes())
    assert any("bell" in node.get_content() for node in store.get_nodes())


@pytest.mark.filterwarnings("ignore:.* now has . roots")
def test_upserts_and_delete_remove_what_is_not_given_again(ingest) -> None:
    store, run = ingest
    run(DocstoreStrategy.UPSERTS_AND_DELETE, a=text("anchor"), b=text("bell"))
    run(DocstoreStrategy.UPSERTS_AND_DELETE, a=text("anchor"), c=text("crew"))
    assert documents_in(store) == {"a", "c"}
    assert not any("bell" in node.get_content() for node in store.get_nodes())


@pytest.mark.filterwarnings("ignore:.* now has . roots")
def test_duplicates_only_keep_both_texts_of_one_document(ingest) -> None:
    store, run = ingest
    run(DocstoreStrategy.DUPLICATES_ONLY, a=text("anchor"))
    run(DocstoreStrategy.DUPLICATES_ONLY, a=text("dough"))
    leaves = [n for n in store.get_nodes() if NodeRelationship.CHILD not in n.relationships]
    for word in ("anchor", "dough"):
        assert any(word in node.get_content() for node in leaves)


@pytest.mark.parametrize("kind", HIERARCHIES, ids=lambda kind: kind.method)
def test_a_pipeline_goes_on_from_its_folder(kind, tmp_path) -> None:
    first, second = (
        pipeline_of(
            kind,
            docstore=SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy.DUPLICATES_ONLY,
        )
        for _ in range(2)
    )
    nodes = first.run(documents=documents_of({"a": text("anchor")}))
    assert any(NodeRelationship.CHILD in node.relationships for node in nodes)
    first.persist(str(tmp_path))
    second.load(str(tmp_path))
    assert second.run(documents=documents_of({"a": text("anchor")})) == []
    assert second.run(documents=documents_of({"a": text("dough")}))


# Retrievers


@pytest.mark.parametrize("mode", ["auto", "collapsed", "traversal", "document"])
def test_all_calls_of_a_retriever_find_the_same(index, mode) -> None:
    retriever = index.as_retriever(mode=mode, top_k=3)
    found = ids(retriever.retrieve(QUESTION))
    assert 0 < len(found) <= 3
    assert ids(retriever.retrieve(QueryBundle(QUESTION))) == found
    assert ids(asyncio.run(retriever.aretrieve(QUESTION))) == found


def test_retrievers_are_fused(index) -> None:
    retrievers = [index.as_retriever(level=level, top_k=3) for level in (0, 1)]
    fused = QueryFusionRetriever(
        retrievers, llm=MockLLM(), num_queries=1, similarity_top_k=6, use_async=False
    )
    found = {node_id for each in retrievers for node_id in ids(each.retrieve(QUESTION))}
    assert {*ids(fused.retrieve(QUESTION))} == found
    assert {*ids(asyncio.run(fused.aretrieve(QUESTION)))} == found


def test_a_router_chooses_a_retriever(index) -> None:
    chunks = index.as_retriever(level=0, top_k=2)
    tools = [
        RetrieverTool.from_defaults(retriever, description=name)
        for name, retriever in {"chunks": chunks, "top": index.as_retriever(level="top")}.items()
    ]
    router = RouterRetriever(LLMSingleSelector.from_defaults(llm=Chooses()), tools, llm=MockLLM())
    assert ids(router.retrieve(QUESTION)) == ids(chunks.retrieve(QUESTION))


# Query engines


@pytest.mark.parametrize("mode", ["compact", "tree_summarize", "refine", "accumulate"])
def test_llama_indexs_engine_reads_what_the_retriever_finds(index, mode) -> None:
    retriever = index.as_retriever(level=0, top_k=2)
    engine = RetrieverQueryEngine.from_args(
        retriever,
        llm=MockLLM(),
        response_mode=mode,
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=-1)],
    )
    response = engine.query(QUESTION)
    assert ids(response.source_nodes) == ids(retriever.retrieve(QUESTION))
    assert str(response)
    assert str(asyncio.run(engine.aquery(QUESTION))) == str(response)


def test_citations_are_of_the_sources(index) -> None:
    engine = CitationQueryEngine.from_args(
        None, llm=MockLLM(), retriever=index.as_retriever(level=0, top_k=2)
    )
    response = engine.query(QUESTION)
    assert response.source_nodes[0].get_content().startswith("Source 1:")


def test_a_question_may_be_transformed_first(index) -> None:
    hyde = HyDEQueryTransform(llm=MockLLM(), include_original=True)
    engine = TransformQueryEngine(index.as_query_engine(level=0, top_k=2), hyde)
    response = engine.query(QUESTION)
    assert len(response.source_nodes) == 2


def test_a_router_chooses_an_engine(index) -> None:
    chunks = index.as_query_engine(level=0, top_k=2)
    tools = [
        QueryEngineTool.from_defaults(engine, description=name, name=name)
        for name, engine in {"chunks": chunks, "top": index.as_query_engine(level="top")}.items()
    ]
    router = RouterQueryEngine(LLMSingleSelector.from_defaults(llm=Chooses()), tools, llm=MockLLM())
    assert str(router.query(QUESTION)) == str(chunks.query(QUESTION))


def test_a_retriever_serves_several_engines(index, monkeypatch) -> None:
    monkeypatch.setattr(Settings, "_llm", MockLLM())  # a mode without a model asks for it, too
    retriever = HierarchyRetriever(index.store, HashingEmbedding(), level=0, top_k=2)
    engines = [
        RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), response_mode=mode)
        for mode in (ResponseMode.NO_TEXT, ResponseMode.CONTEXT_ONLY)
    ]
    first, second = (engine.query(QUESTION) for engine in engines)
    assert ids(first.source_nodes) == ids(second.source_nodes)
    assert first.response == ""
    assert all(node.get_content() in second.response for node in second.source_nodes)

"""An answer is written from the nodes in reading order; its sources are best first."""

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from respond.asking import QUESTION, query, serve

from hierindex import HierarchyRetriever, Node
from hierindex.respond.engine import query_engine


def place(found):
    span = Node.of(found).citations[0]
    return span.document, span.start


@pytest.mark.parametrize("mode", ["compact", "tree_summarize"])
@pytest.mark.parametrize("way", ["plain", "async"])
def test_a_prompt_is_in_reading_order_and_sources_are_best_first(store, embed_model, mode, way):
    retriever = HierarchyRetriever(store, embed_model, level=0, top_k=6)
    found = retriever.retrieve(QUESTION)
    assert [place(n) for n in found] != sorted(place(n) for n in found)

    def engine_of(llm):
        return query_engine(retriever, embed_model, llm=llm, response_mode=mode)

    with serve() as server:
        _, response = query(server, engine_of, way)
        prompt = server.requests[0].prompt
    assert [n.node_id for n in response.source_nodes] == [n.node_id for n in found]
    documents = list(dict.fromkeys(place(n)[0] for n in found))  # the best first
    read = sorted(found, key=lambda n: (documents.index(place(n)[0]), place(n)[1]))
    at = [prompt.index(n.text) for n in read]
    assert at == sorted(at)


class Reverse(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[::-1]


def test_a_prompt_keeps_the_order_of_postprocessors(store, embed_model):
    options = {"level": 0, "top_k": 4}
    plain = HierarchyRetriever(store, embed_model, **options)
    expected = [n.text for n in reversed(plain.retrieve(QUESTION))]

    def read(retriever, postprocessors=()):
        engine = query_engine(retriever, embed_model, response_mode="context_only")
        engine._node_postprocessors = postprocessors
        return sorted(expected, key=str(engine.query(QUESTION)).index)

    reordering = HierarchyRetriever(store, embed_model, postprocessors=[Reverse()], **options)
    assert read(reordering) == read(plain, [Reverse()]) == expected
    assert read(plain) != expected


def test_an_engine_with_another_retriever_reads_in_the_same_order(store, embed_model):
    few, more = (HierarchyRetriever(store, embed_model, level=0, top_k=k) for k in (2, 6))
    options = {"response_mode": "context_only"}
    other = query_engine(few, embed_model, **options).with_retriever(more)
    expected = query_engine(more, embed_model, **options).query(QUESTION)
    assert str(other.query(QUESTION)) == str(expected)

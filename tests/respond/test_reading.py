"""An answer is written from the nodes in reading order; its sources are best first."""

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from respond.asking import QUESTION, query, serve

from hierindex import Node


def place(found):
    span = Node.of(found).citations[0]
    return span.document, span.start


@pytest.mark.parametrize("mode", ["compact", "tree_summarize"])
@pytest.mark.parametrize("way", ["plain", "async"])
def test_a_prompt_is_in_reading_order_and_sources_are_best_first(index, mode, way):
    options = {"level": 0, "top_k": 6}
    found = index.as_retriever(**options).retrieve(QUESTION)
    assert [place(n) for n in found] != sorted(place(n) for n in found)

    def engine_of(llm):
        return index.as_query_engine(llm=llm, response_mode=mode, **options)

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


def test_a_prompt_keeps_the_order_of_postprocessors(index):
    options = {"level": 0, "top_k": 4}
    expected = [n.text for n in reversed(index.as_retriever(**options).retrieve(QUESTION))]

    def read(**postprocessors):
        given = {"response_mode": "context_only", **options, **postprocessors}
        shown = str(index.as_query_engine(**given).query(QUESTION))
        return sorted(expected, key=shown.index)

    assert read(postprocessors=[Reverse()]) == read(node_postprocessors=[Reverse()]) == expected
    assert read() != expected


def test_an_engine_with_another_retriever_reads_in_the_same_order(index):
    few, more = (
        index.as_query_engine(level=0, top_k=k, response_mode="context_only") for k in (2, 6)
    )
    other = few.with_retriever(index.as_retriever(level=0, top_k=6))
    assert str(other.query(QUESTION)) == str(more.query(QUESTION))

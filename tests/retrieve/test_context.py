import tracemalloc

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import Document, QueryBundle, TextNode
from store.trees import chunks, record, tree

from hierindex import HierarchyRetriever, HierarchyStore, RaptorHierarchy

VECTOR = HashingEmbedding().get_query_embedding("the lantern of b3 met a falcon")
ALL = {"top_k": 5000, "token_budget": None}


def found(store, by="context", vector=VECTOR, level=0):
    """The ids and scores of all nodes, of a question of stop words, so that vectors decide."""
    retriever = HierarchyRetriever(store, HashingEmbedding(), by=by, level=level, **ALL)
    nodes = retriever.retrieve(QueryBundle("the", embedding=vector))
    return {node.node_id: node.score for node in nodes}


def stored(folder, nodes, own):
    """A store of nodes with so high a similarity to the question (1, 0)."""
    store = HierarchyStore(folder)
    vectors = [[x, (1 - x * x) ** 0.5] for x in own]
    changed = zip(nodes, vectors, strict=True)
    store.add([node.model_copy(update={"embedding": vector}) for node, vector in changed])
    return store


def test_a_summary_that_quotes_several_documents_is_near_none(tmp_path):
    nodes = tree(RaptorHierarchy)
    above = [n for n in nodes if len({span.document for span in record(n).citations}) > 1]
    level = record(above[0]).level
    above = [n for n in above if record(n).level == level]
    assert len(above) > 1
    own = np.linspace(0.1, 0.9, len(above))
    ranked = found(stored(tmp_path, above, own), vector=[1.0, 0.0], level=level)
    assert [*ranked] == [n.node_id for n in above][::-1]
    assert np.std([*ranked.values()]) == pytest.approx(1)


def test_of_many_nodes_the_best_are_ranked_in_context(store, monkeypatch):
    own, everything = [*found(store, by="dense")], found(store)
    monkeypatch.setattr("hierindex.retrieve.search.MOST_COMPARED", 4)
    ranked = found(store)
    assert {*[*ranked][:4]} == {*own[:4]}
    assert [*ranked][4:] == own[4:]
    scores = [*ranked.values()]
    assert scores == sorted(scores, reverse=True)
    monkeypatch.setattr("hierindex.retrieve.search.MOST_COMPARED", len(own))
    assert found(store) == everything


@pytest.mark.parametrize(
    "alone",
    [
        {"The harbour pilot is Ada.": 0.1},
        {"Ada steers it.": 0.91},
        {"The harbour pilot is Ada.": 0.1, "Ada steers it.": 0.91},
    ],
)
def test_the_best_by_words_and_by_meaning_are_found_beside_a_similar_document(tmp_path, alone):
    often = (f"The {'pilot' if i // 3 % 2 else 'harbour'} waits for {i}." for i in range(90))
    nodes = [n for each in ("  ".join(often), *alone) for n in chunks(Document(text=each))]
    own = np.linspace(0.9, 0.8, len(nodes) - len(alone))
    store = stored(tmp_path, nodes, [*own, *alone.values()])
    retriever = HierarchyRetriever(store, HashingEmbedding(), by="context", level=0, top_k=5)
    asked = QueryBundle("Who is the harbour pilot?", embedding=[1.0, 0.0])
    retrieved = [node.node_id for node in retriever.retrieve(asked)]
    assert len(retrieved) == 5
    assert {node.node_id for node in nodes[-len(alone) :]} <= {*retrieved[1:]}


def test_many_nodes_are_ranked_in_little_memory(tmp_path):
    n = 2500
    nodes = [TextNode(text=str(i)) for i in range(n)]
    store = stored(tmp_path, nodes, np.linspace(0.9, 0.1, n))
    tracemalloc.start()
    assert [*found(store, vector=[1.0, 0.0])] == [node.node_id for node in nodes]
    assert tracemalloc.get_traced_memory()[1] < 40e6  # all pairs take 50 MB an array
    tracemalloc.stop()

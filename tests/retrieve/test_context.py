import tracemalloc

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode
from store.trees import record, tree

from hierindex import Node, RaptorHierarchy
from hierindex.retrieve.search import COLUMNS, cuts, rank_in_context
from hierindex.store.rows import as_table, row_of
from hierindex.store.search import nearest

VECTOR = HashingEmbedding().get_query_embedding("the lantern of b3 met a falcon")


def search(store, top_k):
    return nearest(store.snapshot().scope(cuts([0]), columns=COLUMNS), VECTOR, top_k)


def rank(rows, lexical=None, question=VECTOR):
    return rank_in_context(rows, np.array(question), lexical or {})


def table(nodes, own):
    """Rows of nodes with so high a similarity to the question (1, 0)."""
    vectors = [[x, (1 - x * x) ** 0.5] for x in own]
    return as_table(
        [{**row_of(Node.of(n)), "vector": v} for n, v in zip(nodes, vectors, strict=True)]
    )


def ids(ranked):
    return [node_id for node_id, _ in ranked]


def test_a_summary_that_quotes_several_documents_is_near_none():
    nodes = tree(RaptorHierarchy)
    above = [n for n in nodes if len({span.document for span in record(n).citations}) > 1]
    assert len(above) > 1
    own = np.linspace(0.1, 0.9, len(above))
    ranked = rank(table(above, own), question=[1.0, 0.0])
    assert ids(ranked) == [n.node_id for n in above][::-1]
    assert np.std([score for _, score in ranked]) == pytest.approx(1)


def test_of_many_nodes_the_best_are_ranked_in_context(store, monkeypatch):
    rows = search(store, 12)
    everything = rank(rows)
    monkeypatch.setattr("hierindex.retrieve.search.MOST_COMPARED", 4)
    question = np.array(VECTOR)
    X = np.stack(rows["vector"].to_numpy())
    own = [rows["id"].to_pylist()[i] for i in np.argsort(-X @ question, kind="stable")]
    ranked = rank(rows)
    assert sorted(ids(ranked)[:4]) == sorted(own[:4])
    assert ids(ranked)[4:] == own[4:]
    scores = [score for _, score in ranked]
    assert scores == sorted(scores, reverse=True)
    monkeypatch.setattr("hierindex.retrieve.search.MOST_COMPARED", len(rows))
    assert rank(rows) == everything


def test_many_nodes_are_ranked_in_little_memory():
    n = 4000
    nodes = [TextNode(text=str(i)) for i in range(n)]
    rows = table(nodes, np.linspace(0.9, 0.1, n))
    tracemalloc.start()
    assert ids(rank(rows, question=[1.0, 0.0])) == [node.node_id for node in nodes]
    assert tracemalloc.get_traced_memory()[1] < 100e6  # all pairs take 128 MB an array
    tracemalloc.stop()

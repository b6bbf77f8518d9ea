import tracemalloc

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode
from store.trees import record, tree

from hierindex import Node, RaptorHierarchy
from hierindex.retrieve.question import COLUMNS, cuts, rank_in_context
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


def test_all_rows_are_ranked_best_first(store):
    rows = search(store, 9)
    ranked = rank(rows)
    assert sorted(ids(ranked)) == sorted(rows["id"].to_pylist())
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)


def test_of_no_rows_nothing_is_ranked(store):
    assert rank(search(store, 3)[:0]) == []


def test_words_count(store):
    rows = search(store, 8)
    last = rows["id"].to_pylist()[-1]
    assert ids(rank(rows, {last: 9.0})).index(last) < ids(rank(rows)).index(last)


def test_beside_the_best_a_node_ranks_higher_than_alone():
    nodes = [n for n in tree() if record(n).level == 0]
    place = {n.node_id: (record(n).citations[0].document, record(n).start) for n in nodes}
    nodes.sort(key=lambda n: place[n.node_id])
    other = next(n for n in nodes if place[n.node_id][0] != place[nodes[0].node_id][0])
    rows = table([nodes[0], nodes[1], other], [0.9, 0.3, 0.3])
    assert ids(rank(rows, question=[1.0, 0.0])) == [
        nodes[0].node_id,
        nodes[1].node_id,
        other.node_id,
    ]


def test_nodes_without_a_place_keep_the_order_of_their_own_scores():
    nodes = [TextNode(text=f"The {i}th.") for i in range(5)]
    ranked = rank(table(nodes, [0.3, 0.9, 0.1, 0.5, 0.4]), question=[1.0, 0.0])
    assert ids(ranked) == [nodes[i].node_id for i in (1, 3, 4, 0, 2)]
    assert np.std([score for _, score in ranked]) == pytest.approx(1)


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
    monkeypatch.setattr("hierindex.retrieve.question.MOST_COMPARED", 4)
    question = np.array(VECTOR)
    X = np.stack(rows["vector"].to_numpy())
    own = [rows["id"].to_pylist()[i] for i in np.argsort(-X @ question, kind="stable")]
    ranked = rank(rows)
    assert sorted(ids(ranked)[:4]) == sorted(own[:4])
    assert ids(ranked)[4:] == own[4:]
    scores = [score for _, score in ranked]
    assert scores == sorted(scores, reverse=True)
    monkeypatch.setattr("hierindex.retrieve.question.MOST_COMPARED", len(rows))
    assert rank(rows) == everything


def test_many_nodes_are_ranked_in_little_memory():
    n = 4000
    nodes = [TextNode(text=str(i)) for i in range(n)]
    rows = table(nodes, np.linspace(0.9, 0.1, n))
    tracemalloc.start()
    assert ids(rank(rows, question=[1.0, 0.0])) == [node.node_id for node in nodes]
    assert tracemalloc.get_traced_memory()[1] < 100e6  # all pairs take 128 MB an array
    tracemalloc.stop()

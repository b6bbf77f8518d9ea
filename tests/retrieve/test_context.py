import asyncio
from dataclasses import replace

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery
from store.trees import record, tree

from hierindex.hierarchy.transforms import DocumentHierarchy, RaptorHierarchy
from hierindex.retrieve import context
from hierindex.retrieve.context import (
    COLUMNS,
    EITHER_SIDE,
    Candidate,
    candidates_of,
    rank_in_context,
)
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for

VECTOR = HashingEmbedding().get_query_embedding("the lantern of b3 met a falcon")
LEAVES = MetadataFilters(filters=[MetadataFilter(key="level", value=0)])


@pytest.fixture
def reads(monkeypatch):
    """How many ids each read asked for, of nodes or of their places in the tree."""
    asked, passing, places = [], Snapshot.passing, Snapshot.places

    async def counted(self, node_ids, filters, **options):
        asked.append(len(node_ids))
        return await passing(self, node_ids, filters, **options)

    async def counted_places(self, node_ids):
        asked.append(len(node_ids))
        return await places(self, node_ids)

    monkeypatch.setattr(Snapshot, "passing", counted)
    monkeypatch.setattr(Snapshot, "places", counted_places)
    return asked


def candidate(node, dense, lexical=0.0):
    parent = node.parent_node.node_id if node.parent_node else ""
    span = next(iter(record(node).citations), None)
    return Candidate(node.node_id, parent, span, dense, lexical)


def search(store, top_k=3):
    query = VectorStoreQuery(query_embedding=VECTOR, similarity_top_k=top_k, filters=LEAVES)
    found = wait_for(store.snapshot().found(query, *COLUMNS))
    return candidates_of(found, np.array(VECTOR), {})


def rank(store, candidates, **arguments):
    return asyncio.run(rank_in_context(store.snapshot(), candidates, VECTOR, **arguments))


@pytest.fixture
def alone(monkeypatch):
    """Candidates are ranked without the neighbours that were not found."""
    monkeypatch.setattr(context, "N_AROUND", 0)


def ids(ranked):
    return [node_id for node_id, _ in ranked]


def test_neighbours_of_the_best_are_ranked_with_them(store, nodes, reads):
    candidates = search(store)
    ranked = rank(store, candidates, filters=LEAVES)
    parents = {c.parent for c in candidates}
    beside = {n.node_id for n in nodes if record(n).level == 0 and record(n).parents} & {
        child.node_id for n in nodes if n.node_id in parents for child in n.child_nodes
    }
    assert set(ids(ranked)) <= beside | {c.id for c in candidates}
    assert {c.id for c in candidates} < set(ids(ranked))
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    assert len(reads) == 2


def test_neighbours_pass_the_filters(store):
    candidates = search(store)
    filters = MetadataFilters(filters=[MetadataFilter(key="author", value="nobody")])
    assert sorted(ids(rank(store, candidates, filters=filters))) == sorted(c.id for c in candidates)


@pytest.mark.usefixtures("alone")
def test_without_looking_around_nothing_is_read(store, reads):
    candidates = search(store)
    ranked = rank(store, candidates)
    assert sorted(ids(ranked)) == sorted(c.id for c in candidates)
    assert reads == []


def test_nothing_found_is_nothing(store, reads):
    assert rank(store, []) == []
    assert reads == []


@pytest.mark.usefixtures("alone")
def test_words_count(store):
    candidates = search(store, top_k=8)
    last = candidates.pop()
    raised = rank(store, [*candidates, replace(last, lexical=9.0)])
    assert ids(raised).index(last.id) < 7


def test_nodes_without_a_place_keep_the_order_of_their_own_scores(store):
    nodes = [TextNode(text=f"The {i}th.") for i in range(5)]
    own = [0.3, 0.9, 0.1, 0.5, 0.4]
    ranked = rank(store, [candidate(n, s) for n, s in zip(nodes, own, strict=True)])
    assert ids(ranked) == [nodes[i].node_id for i in (1, 3, 4, 0, 2)]
    assert np.std([score for _, score in ranked]) == pytest.approx(1)


@pytest.mark.usefixtures("alone")
def test_a_summary_of_several_documents_is_near_none(tmp_path):
    nodes = tree(RaptorHierarchy)
    store = HierarchyStore(tmp_path)
    store.add(nodes)
    above = [n.node_id for n in nodes if len(record(n).documents) > 1]
    rows = store.snapshot().passing(above, None, partial_summaries=False, columns=COLUMNS)
    found = candidates_of(wait_for(rows), np.array(VECTOR), {})
    assert [c.span for c in found] == [None] * len(above)
    scores = np.linspace(0, 1, len(above))
    ranked = rank(store, [replace(c, dense=s) for c, s in zip(found, scores, strict=True)])
    assert ids(ranked) == [c.id for c in found][::-1]


def test_of_a_parent_with_many_children_only_those_beside_are_read(tmp_path, reads):
    nodes = tree(DocumentHierarchy)
    texts = [n for n in nodes if record(n).level == 0 and record(n).documents == ("a.txt",)]
    assert len(texts) > EITHER_SIDE + 1
    store = HierarchyStore(tmp_path)
    store.add(nodes)
    rank(store, [candidate(texts[0], 0.5)])
    assert reads == [1, EITHER_SIDE]


def test_a_parent_that_does_not_know_its_child_is_no_way_to_its_neighbours(store, reads):
    stranger = replace(search(store)[0], id="of another generation")
    assert ids(rank(store, [stranger])) == [stranger.id]
    assert reads == [1]

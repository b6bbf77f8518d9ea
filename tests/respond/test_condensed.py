import asyncio
from collections import Counter
from itertools import chain

import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore
from store.trees import record, tree

from hierindex.respond.passages import condensed
from hierindex.store.lance import HierarchyStore

NODES = {node.node_id: node for node in tree()}
LEAVES = [NodeWithScore(node=n, score=1.0) for n in NODES.values() if record(n).level == 0]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(list(NODES.values()))
    return store


def n_words(node):
    return len(node.get_content(MetadataMode.LLM).split())


TOTAL = sum(n_words(leaf.node) for leaf in LEAVES)


@pytest.mark.parametrize("room", [30, 60, 120, TOTAL - 1, TOTAL])
@pytest.mark.parametrize("n_found", [0, 1, 5, len(LEAVES)])
def test_summaries_stand_in_for_all_their_children_where_a_prompt_is_saved(store, room, n_found):
    counted = Counter()

    def n_tokens(node):
        counted[node.node_id] += 1
        return n_words(node)

    found = LEAVES[:n_found]
    read = asyncio.run(condensed(found, store, n_tokens, room))
    assert set(counted.values()) <= {1}
    fewer, before = (-(-sum(n_words(n.node) for n in some) // room) for some in (read, found))
    assert fewer < before or read == found
    ids = [leaf.node.node_id for leaf in found]
    stands_for = [
        [node.node.node_id]
        if node in found
        else [child.node_id for child in NODES[node.node.node_id].child_nodes]
        for node in read
    ]
    assert sorted(chain(*stands_for)) == sorted(ids)


def test_no_more_summaries_than_save_a_prompt(store):
    (one,) = [
        n for n in asyncio.run(condensed(LEAVES, store, n_words, TOTAL - 1)) if n not in LEAVES
    ]
    assert record(one.node).level == 1

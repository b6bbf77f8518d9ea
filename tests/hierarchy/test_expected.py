"""What is expected of a tree by arithmetic, beside the tree."""

from itertools import zip_longest

import pytest
from fakes import HashingEmbedding
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from hierindex import DocumentHierarchy, RaptorHierarchy, SemanticHierarchy
from hierindex.rules import Optimal, Percentile

WORDS = "harbour sail mast anchor flour yeast oven dough nova orbit comet moon".split()
KINDS = {
    "semantic": SemanticHierarchy,
    "semantic, small groups": lambda **o: SemanticHierarchy(rule=Optimal(rows=2), **o),
    "semantic, by gaps": lambda **o: SemanticHierarchy(rule=Percentile(40), **o),
    "semantic, crowded": lambda **o: SemanticHierarchy(max_tokens=300, summary_tokens=60, **o),
    "raptor": RaptorHierarchy,
    "raptor per document": lambda **o: RaptorHierarchy(scope="document", **o),
    "document": DocumentHierarchy,
    "documents alone": lambda **o: DocumentHierarchy(group_documents=False, **o),
    "one level": lambda **o: SemanticHierarchy(max_levels=1, **o),
}


def chunks_of(sizes, seed=0, section=None):
    """So many chunks of each document, of 30 to 60 words, in sections of so many chunks."""
    return [
        TextNode(
            text=" ".join(WORDS[(d * i + w // 7 + seed) % len(WORDS)] for w in range(30 + i % 31))
            + f" {d} {i}.",
            metadata={"section": f"{d} › {i // section}"} if section else {},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"{d}")},
        )
        for d, size in enumerate(sizes)
        for i in range(size)
    ]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@settings(max_examples=5, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(0, 5))
def test_a_tree_is_between_the_least_and_the_most(kind, sizes, section):
    hierarchy, chunks = kind(embed_model=HashingEmbedding()), chunks_of(sizes, section=section)
    least, most = hierarchy.expected(chunks)
    nodes = [level.nodes for level in hierarchy.grow([chunks]).statistics]
    told = zip_longest(least.nodes, most.nodes, nodes, fillvalue=0)
    assert all(min(low, high) <= n <= max(low, high) for low, high, n in told)


@pytest.mark.parametrize("sizes", [[1], [6], [7], [5, 13, 1], [36, 37], [200]], ids=str)
def test_segments_of_a_number_of_rows_are_known(sizes):
    hierarchy, chunks = SemanticHierarchy(embed_model=HashingEmbedding()), chunks_of(sizes)
    least, most = hierarchy.expected(chunks)
    nodes = [level.nodes for level in hierarchy.grow([chunks]).statistics]
    assert least.nodes == most.nodes == nodes


@pytest.mark.parametrize("section", [1, 2, 3, 9])
def test_sections_of_some_length_are_known_to_have_segments(section):
    hierarchy = SemanticHierarchy(embed_model=HashingEmbedding())
    chunks = chunks_of([18], section=section)
    least, most = hierarchy.expected(chunks)
    nodes = [level.nodes for level in hierarchy.grow([chunks]).statistics]
    assert least.nodes[1] == most.nodes[1] == nodes[1] == {1: 3, 2: 3, 3: 6, 9: 3}[section]


def test_nothing_is_embedded():
    model = HashingEmbedding()
    SemanticHierarchy(embed_model=model).expected(chunks_of([20, 3]))
    assert model.batches == []

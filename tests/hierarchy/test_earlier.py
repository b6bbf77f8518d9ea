"""Trees that are grown again after edits: what stays, and what a model is asked for."""

import random

import pytest
from fakes import HashingEmbedding
from histories import documents, history
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode

from hierindex import (
    DocumentHierarchy,
    ExtractiveSummarizer,
    NodeRecord,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.cache.file import open_cache
from hierindex.hierarchy.earlier import EarlierTree
from hierindex.hierarchy.hierarchy import Hierarchy

WORDS = "harbour sail mast anchor flour yeast oven dough nova orbit comet moon".split()
KINDS = [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy]


class CountingSummarizer(ExtractiveSummarizer):
    """Counts the groups that it summarises."""

    def __init__(self) -> None:
        super().__init__()
        self.n_groups = 0

    def summarize(self, groups, budget, resources=None):
        self.n_groups += len(groups)
        return super().summarize(groups, budget, resources)


def texts_of(n_documents: int) -> dict[str, str]:
    """Documents of some paragraphs, each about two of the words."""
    draw = random.Random(7)
    return {
        f"{i:03}.txt": "\n\n".join(
            " ".join(
                f"In {i} the {draw.choice(WORDS[i % 4 * 3 : i % 4 * 3 + 3])} and the "
                f"{draw.choice(WORDS)} of part {part} meet {draw.randint(1, 999)}."
                for _ in range(3)
            )
            for part in range(3)
        )
        for i in range(n_documents)
    }


def chunks_of(texts) -> list[TextNode]:
    return SentenceSplitter(chunk_size=64, chunk_overlap=0)(documents(texts))


def tree_of(nodes) -> EarlierTree:
    records = [NodeRecord.from_metadata(node.metadata) for node in nodes]
    parents = [[*zip(*record.parents, strict=True)] or [(), ()] for record in records]
    return EarlierTree.of(
        [node.node_id for node in nodes],
        [record.level for record in records],
        [ids for ids, _ in parents],
        [weights for _, weights in parents],
    )


def hierarchy_of(kind, **options) -> Hierarchy:
    return kind(embed_model=HashingEmbedding(), max_children=4, **options)


def within_documents(nodes) -> dict[str, str]:
    """The texts of the nodes under which there is one document only."""
    records = [(node, NodeRecord.from_metadata(node.metadata)) for node in nodes]
    return {node.node_id: node.text for node, record in records if len(record.documents) == 1}


@pytest.mark.parametrize("kind", KINDS)
def test_one_edit_costs_the_summaries_above_it(kind, tmp_path) -> None:
    texts = texts_of(24)
    summarizer = CountingSummarizer()
    hierarchy = hierarchy_of(kind, summarizer=summarizer)
    with open_cache(str(tmp_path), "model") as cache:
        before = hierarchy.grow(chunks_of(texts), cache).nodes
        n_summaries, summarizer.n_groups = summarizer.n_groups, 0
        texts["005.txt"] += "\n\nThe harbour of 5 has a new mast and an old anchor."
        after = hierarchy.grow(chunks_of(texts), cache, earlier=tree_of(before)).nodes
    n_levels = 1 + max(NodeRecord.from_metadata(node.metadata).level for node in after)
    assert 0 < summarizer.n_groups <= min(3 * n_levels, n_summaries / 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_of_the_same_chunks_is_the_same_tree(kind) -> None:
    hierarchy, chunks = hierarchy_of(kind), chunks_of(texts_of(24))
    before = hierarchy.grow(chunks).nodes
    after = hierarchy.grow(chunks, earlier=tree_of(before)).nodes
    assert [node.to_dict() for node in before] == [node.to_dict() for node in after]


@pytest.mark.parametrize("kind", [SemanticHierarchy, DocumentHierarchy])
def test_trees_of_documents_equal_those_of_a_fresh_build_after_any_edit(kind) -> None:
    hierarchy = hierarchy_of(kind)
    for seed in range(2):
        first, *later = history(seed, 3)
        nodes = hierarchy.grow(chunks_of(first)).nodes
        for texts in later:
            nodes = hierarchy.grow(chunks_of(texts), earlier=tree_of(nodes)).nodes
            assert within_documents(nodes) == within_documents(
                hierarchy.grow(chunks_of(texts)).nodes
            )


def test_a_tree_with_a_root_has_one_after_each_edit() -> None:
    hierarchy, texts = hierarchy_of(RaptorHierarchy), texts_of(14)
    nodes = hierarchy.grow(chunks_of(texts)).nodes
    for name in list(texts)[:11:2]:
        del texts[name]
        nodes = hierarchy.grow(chunks_of(texts), earlier=tree_of(nodes)).nodes
        roots = [n for n in nodes if not NodeRecord.from_metadata(n.metadata).parents]
        assert len(roots) == 1
        ids = {node.node_id for node in nodes}
        assert all(child.node_id in ids for node in nodes for child in node.child_nodes or ())

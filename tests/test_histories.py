"""An index after any history equals a fresh build of what it holds, node for node."""

from pathlib import Path

import pytest
from fakes import HashingEmbedding
from histories import documents, history
from llama_index.core.schema import BaseNode

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    NodeRecord,
    RaptorHierarchy,
    SemanticHierarchy,
    sentence_splitter,
)
from hierindex.split import split_documents

KINDS = pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])
CHUNK = 30  # tokens
TOPICS = "harbour sail mast anchor keel rudder tide wind deck crew flour yeast oven dough".split()


def hierarchy_of(kind, summarizer=None, **options):
    return kind(
        HashingEmbedding(model_name="known"),
        summarizer,
        **{"max_children": 3, "summary_tokens": 40, **options},
    )


def build(sources, uri: Path, hierarchy) -> HierarchicalIndex:
    return HierarchicalIndex.build(sources, uri, hierarchy=hierarchy, chunk_size=CHUNK)


def as_plain(nodes: list[BaseNode]) -> list[dict]:
    """All that is known of each node, by id."""
    return sorted((node.to_dict() for node in nodes), key=lambda node: node["id_"])


def n_wrong(nodes: list[BaseNode], texts: dict[str, str]) -> tuple[int, int]:
    """Quotes of these nodes, and those that do not stand where they point."""
    n_quotes = wrong = 0
    for node in nodes:
        for quote in NodeRecord.from_metadata(node.metadata).quotes:
            for i, span in enumerate(quote.sources):
                stretch = texts[span.document][span.start : span.end]
                inside = 0 <= span.start < span.end <= len(texts[span.document])
                said = (
                    not quote.verbatim
                    or i > 0
                    or stretch == node.get_content()[quote.at : quote.to]
                )
                n_quotes, wrong = n_quotes + 1, wrong + (not (inside and said))
    return n_quotes, wrong


def check_history(tmp_path: Path, seed: int, hierarchy, n_edits: int = 4) -> None:
    """One index through all states of a set of documents, beside an index of each state alone."""
    for i, texts in enumerate(history(seed, n_edits)):
        index = build(documents(texts), tmp_path / "index", hierarchy)
        nodes = index.store.get_nodes()
        splitter = sentence_splitter(hierarchy.embed_model, CHUNK)
        fresh = hierarchy.grow(split_documents(documents(texts), splitter))
        assert as_plain(nodes) == as_plain(fresh.nodes), f"seed {seed}, state {i}"
        assert n_wrong(nodes, texts)[1] == 0


@KINDS
@pytest.mark.parametrize("seed", range(4))
def test_any_history(tmp_path, kind, seed):
    check_history(tmp_path, seed, hierarchy_of(kind))

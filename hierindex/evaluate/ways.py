"""The ways to retrieve that are compared: controls without a tree, LlamaIndex's, and ours.

A new way is one line in `WAYS`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from llama_index.core import DocumentSummaryIndex, StorageContext
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.core.arguments import require
from hierindex.core.membership import Floats1d
from hierindex.core.ranking import diversified, reciprocal_ranks
from hierindex.errors import InputError, LevelError
from hierindex.evaluate.measures import Passage, fill
from hierindex.evaluate.trees import OURS, Asked, Trees, Way
from hierindex.export.document_summary import to_document_summary_index
from hierindex.retrieve.question import of_documents
from hierindex.retrieve.retriever import TOKEN_BUDGET

N_DOCUMENTS = 3  # summaries that the document-summary index finds
MERGED, MERGED_LEVELS = 4, 2  # as LlamaIndex's HierarchicalNodeParser by its default sizes


def by(scores: Callable[[Asked], Floats1d]) -> Way:
    """Return the way that takes the chunks with the highest scores."""

    def way(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
        return asked.nodes(np.argsort(-scores(asked), kind="stable")[:top_k])

    return way


def random(asked: Asked) -> Floats1d:
    """Return random scores, the same for the same question."""
    seed = int(sha256(asked.question.id.encode()).hexdigest()[:16], 16)
    return np.random.default_rng(seed).random(len(asked.rows))


def earliest(asked: Asked) -> Floats1d:
    """Return the highest score for the first chunk, and so on."""
    return -np.arange(len(asked.rows), dtype=np.float64)


def fused(asked: Asked) -> Floats1d:
    """Return cosine similarity and BM25 fused by reciprocal ranks."""
    orders = [np.argsort(-x, kind="stable").tolist() for x in (asked.dense, asked.lexical)]
    scores = reciprocal_ranks(orders, (0.5, 0.5))
    return np.array([scores[i] for i in range(len(asked.rows))])


def added(asked: Asked) -> Floats1d:
    """Return cosine similarity and BM25, each scaled to [0, 1], added."""
    return _scaled(asked.dense) + _scaled(asked.lexical)


def smoothed(asked: Asked, width: int, decay: float) -> Floats1d:
    """Return `added` averaged over `width` chunks of the document on either side.

    A chunk weighs `decay` to the power of its distance.
    """
    x, document = added(asked), asked.chunks.document[asked.rows]
    total, weight = x.copy(), np.ones(len(x))
    for distance in range(1, min(width, len(x) - 1) + 1):
        w = decay**distance * (document[distance:] == document[:-distance])
        total[distance:] += w * x[:-distance]
        total[:-distance] += w * x[distance:]
        weight[distance:] += w
        weight[:-distance] += w
    return total / weight


def evenly_spaced(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return as many chunks as fit the budget, at equal distances."""
    n = len(asked.rows)
    most = top_k if budget is None else int(budget / asked.chunks.mean_tokens)
    n_kept = min(n, max(1, most))
    return asked.nodes(((np.arange(n_kept) + 0.5) * n / n_kept).astype(np.int64))


def document_order(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return the chunks of dense retrieval in the order of their documents (DOS RAG).

    Where a ranking is measured, the best come first. Laitenberger, Manning and Liu, Stronger
    Baselines for Retrieval-Augmented Generation with Long-Context Language Models (EMNLP 2025),
    whose "vanilla RAG" is dense retrieval.
    """
    order = np.argsort(-asked.dense, kind="stable")[:top_k]
    if budget is None:
        return asked.nodes(order)
    kept = {passage.id for passage in fill(map(Passage.of, asked.nodes(order)), budget)}
    return [node for node in asked.nodes(np.sort(order)) if node.node_id in kept]


def diverse(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return chunks by maximal marginal relevance, relevance and novelty in equal shares."""
    return asked.nodes(diversified(asked.chunks.X[asked.rows], asked.dense, top_k, 0.5)[0])


def auto_merging(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return what LlamaIndex's `AutoMergingRetriever` makes of the chunks of dense retrieval."""
    order, storage = np.argsort(-asked.dense, kind="stable")[:top_k], _mergeable(asked.trees)
    leaves = storage.docstore.get_nodes([node.node_id for node in asked.nodes(order)])
    given = _Given(leaves, asked.dense[order])
    retriever = AutoMergingRetriever(given, storage)  # type: ignore[arg-type]  # any will do
    return [found.node for found in retriever.retrieve(asked.bundle)]


def document_summary(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return the documents that LlamaIndex's `DocumentSummaryIndex` finds, chunk by chunk."""
    within = asked.question.within
    n = N_DOCUMENTS if within is None else len(asked.trees.texts)
    retriever = _by_summaries(asked.trees).as_retriever(similarity_top_k=n)
    nodes = [found.node for found in retriever.retrieve(asked.bundle)]
    return [node for node in nodes if within in (None, node.ref_doc_id)]


def ours(tree: str = OURS, **options: Any) -> Way:
    """Return the way of a `HierarchyRetriever` of one of the trees, with these options."""

    def way(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
        within = asked.question.within
        filters = None if within is None else MetadataFilters(filters=[of_documents([within])])
        retriever = asked.trees.index(tree).as_retriever(
            top_k=top_k, token_budget=budget, filters=filters, **options
        )
        return _if_any_fits(budget, lambda: retriever.retrieve(asked.bundle))

    return way


def outlined(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return the outline of the document that is named, or of all, whatever the question."""
    index, within = asked.trees.index(), asked.question.within
    return _if_any_fits(budget, lambda: index.outline(budget or TOKEN_BUDGET, of=within))


def _if_any_fits(
    budget: int | None, retrieve: Callable[[], Sequence[NodeWithScore]]
) -> list[BaseNode]:
    """Return the nodes that are retrieved, none if none fits the budget."""
    try:
        return [found.node for found in retrieve()]
    except InputError as error:
        if budget is None or isinstance(error, LevelError):
            raise
        return []


def raptor(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return nodes of a RAPTOR tree, collapsed: of the document that is named, or of all."""
    tree = "raptor" if asked.question.within is None else "raptor-by-document"
    return ours(tree, mode="collapsed")(asked, top_k, budget)


WAYS: dict[str, Way] = {
    "random": by(random),
    "lead": by(earliest),
    "spaced": evenly_spaced,
    "bm25": by(lambda asked: asked.lexical),
    "dense": by(lambda asked: asked.dense),
    "document-order": document_order,
    "hybrid": by(fused),
    "added": by(added),
    "smoothed-1": by(lambda asked: smoothed(asked, 1, 0.5)),
    "smoothed-5": by(lambda asked: smoothed(asked, 5, 0.8)),
    "mmr": diverse,
    "auto-merging": auto_merging,
    "document-summary": document_summary,
    "contiguous": ours("contiguous", mode="collapsed"),
    "raptor": raptor,
    "collapsed": ours(mode="collapsed"),
    "level-0": ours(level=0),
    "level-0-text": ours(level=0, by="text"),
    "level-0-hybrid": ours(level=0, by="hybrid"),
    "level-0-context": ours(level=0, by="context"),
    "level-1": ours(mode="level", level=1),
    "traversal": ours(mode="traversal"),
    "document": ours(mode="document"),
    "outline": outlined,
    "auto": ours(mode="auto"),
}
"""All ways by name."""


def ways_of(ways: Sequence[str] | Mapping[str, Way] | None) -> dict[str, Way]:
    """Return ways by their names, all if None; a mapping may have others.

    Raises
    ------
    InputError
        If there is no way of a name, or none at all.
    """
    chosen = WAYS if ways is None else ways
    require(len(chosen) > 0, "ways", "one way or more", chosen)
    if isinstance(chosen, Mapping):
        return dict(chosen)
    for name in chosen:
        if name not in WAYS:
            raise InputError(f"There is no way {name!r}; there are {', '.join(WAYS)}.")
    return {name: WAYS[name] for name in chosen}


class _Given(BaseRetriever):
    """A retriever that returns what it is given."""

    def __init__(self, nodes: Sequence[BaseNode], scores: Floats1d) -> None:
        super().__init__()
        pairs = zip(nodes, scores.tolist(), strict=True)
        self._found = [NodeWithScore(node=node, score=score) for node, score in pairs]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self._found


@lru_cache(maxsize=1)
def _by_summaries(trees: Trees) -> DocumentSummaryIndex:
    return to_document_summary_index(trees.index())


@lru_cache(maxsize=1)
def _mergeable(trees: Trees) -> StorageContext:
    """Return chunks, and parents of four neighbours each, on two levels, whose text is theirs."""
    storage = StorageContext.from_defaults()
    for document, passages in groupby(trees.chunks.passages, key=lambda p: p.spans[0].document):
        source, row = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}, list[TextNode]()
        places = [(passage.id, *passage.spans[0][1:3]) for passage in passages]
        for level in range(1 + MERGED_LEVELS):
            children, row = row, []
            for node_id, start, end in places:
                text = trees.texts[document][start:end]
                place = {"start_char_idx": start, "end_char_idx": end}
                row.append(TextNode(id_=node_id, text=text, relationships={**source}, **place))
            _link(row, children)
            storage.docstore.add_documents(children)
            runs = (places[at : at + MERGED] for at in range(0, len(places), MERGED))
            places = [(f"{document}-{level}-{i}", r[0][1], r[-1][2]) for i, r in enumerate(runs)]
        storage.docstore.add_documents(row)
    return storage


def _link(row: Sequence[TextNode], children: Sequence[TextNode]) -> None:
    at = {node.node_id: RelatedNodeInfo(node_id=node.node_id) for node in (*row, *children)}
    for one, other in pairwise(row):
        one.relationships[NodeRelationship.NEXT] = at[other.node_id]
        other.relationships[NodeRelationship.PREVIOUS] = at[one.node_id]
    for i, node in enumerate(row if children else ()):
        below = children[MERGED * i : MERGED * (i + 1)]
        node.relationships[NodeRelationship.CHILD] = [at[child.node_id] for child in below]
        for child in below:
            child.relationships[NodeRelationship.PARENT] = at[node.node_id]


def _scaled(x: Floats1d) -> Floats1d:
    return np.asarray((x - x.min()) / max(np.ptp(x), 1e-9))

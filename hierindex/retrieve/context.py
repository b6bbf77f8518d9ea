"""Ranking of nodes by scores in context: their own, their parents' and their neighbours'."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.core.context import in_context, lent, nearness, places_of
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.ranking import blended, reading_order
from hierindex.record import NodeRecord, Span
from hierindex.store.snapshot import Place, Snapshot

N_AROUND = 10  # best candidates whose neighbours are added
EITHER_SIDE = 6  # neighbours before and after a node; a parent has six children on average


@dataclass(frozen=True)
class Candidate:
    """A node found by a search, with its scores for the question.

    `dense` is the cosine similarity, None if only the full-text search found the node. `lexical`
    is the score of the full-text search, 0 if it did not find the node.
    """

    node: BaseNode
    dense: float | None = None
    lexical: float = 0.0


async def rank_in_context(
    snapshot: Snapshot,
    candidates: Sequence[Candidate],
    question_vector: Sequence[float],
    *,
    filters: MetadataFilters | None = None,
    partial_summaries: bool = False,
) -> list[NodeWithScore]:
    """Rank candidates and the neighbours of the best ones by their scores in context.

    Parameters
    ----------
    snapshot : Snapshot
    candidates : sequence of Candidate
        Distinct nodes of one level, about a hundred by vectors and by words.
    question_vector : (n_dims,) sequence of float
    filters : MetadataFilters, optional
        Metadata filters that the neighbours must pass.
    partial_summaries : bool
        See `HierarchyRetriever`.

    Returns
    -------
    list[NodeWithScore]
        Best first; ties stay in the order of the candidates. Scores are standard deviations
        above the mean of all ranked nodes, see `hierindex.core.context`.

    Notes
    -----
    Nodes are neighbours in reading order if their spans are. A node of several documents, or
    without a known place in its document, has no neighbours. Only parents of one document lend
    to scores. The snapshot is read by ids at most three times.
    """
    question = np.asarray(question_vector, dtype=np.float64)
    unknown = [c.node.node_id for c in candidates if c.dense is None]
    vectors = await _by_id(snapshot, unknown)
    known = [
        c
        if c.dense is not None
        else replace(c, dense=_cosine(vectors[c.node.node_id].get_embedding(), question))
        for c in candidates
    ]
    parent_ids = dict.fromkeys(_parent_of(c.node) for c in known if c.node.parent_node)
    places = await snapshot.places(parent_ids) if parent_ids else []
    parents = {place.id: place for place in places}
    spans = [_span(c.node) for c in known]
    first = np.argsort(-_scores(known, spans, parents, question), kind="stable")[:N_AROUND]
    ids = _beside([known[i].node for i in first], {c.node.node_id for c in known}, parents)
    near = (await _by_id(snapshot, ids, filters, partial_summaries)).values()
    ranked = [*known, *(Candidate(node, _cosine(node.get_embedding(), question)) for node in near)]
    scores = _scores(ranked, [*spans, *map(_span, near)], parents, question)
    order = np.argsort(-scores, kind="stable")
    return [NodeWithScore(node=ranked[i].node, score=float(scores[i])) for i in order]


def in_reading_order(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Order nodes by document and start, the document of the best node first.

    A node of several documents, or without a known place, counts as a document of its own.
    """
    relevance = np.array([node.score or 0.0 for node in nodes], dtype=np.float64)
    document, start, _ = _places([_span(node.node) for node in nodes])
    return [nodes[i] for i in reading_order(relevance, document, start)]


def _places(spans: Sequence[Span | None]) -> tuple[Ints1d, Floats1d, Floats1d]:
    return places_of(
        [(s.document, s.start, s.end) if s else (i, 0, 0) for i, s in enumerate(spans)]
    )


def _scores(
    candidates: Sequence[Candidate],
    spans: Sequence[Span | None],
    parents: Mapping[str, Place],
    question: Floats1d,
) -> Floats1d:
    dense = np.array([c.dense for c in candidates], dtype=np.float64)
    lexical = np.array([c.lexical for c in candidates])
    lending = [place for place in parents.values() if place.n_documents == 1]
    row = {place.id: i for i, place in enumerate(lending)}
    parent = np.array([row.get(_parent_of(c.node), -1) for c in candidates], dtype=np.int64)
    similarity = np.array([_cosine(place.vector, question) for place in lending])
    document, start, end = _places(spans)
    scores = lent(blended(dense, lexical), parent, similarity)
    return in_context(scores, document, nearness(document, start, end))


def _parent_of(node: BaseNode) -> str:
    return node.parent_node.node_id if node.parent_node else ""


def _span(node: BaseNode) -> Span | None:
    """Return the span of all sources of a node, or None if they are of several documents."""
    spans = NodeRecord.from_metadata(node.metadata).citations
    if len({span.document for span in spans}) != 1:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    return Span(spans[0].document, start, end)


def _beside(best: Sequence[BaseNode], known: set[str], parents: Mapping[str, Place]) -> list[str]:
    """Return ids of unknown neighbours of these nodes under their strongest parents."""
    ids: dict[str, None] = {}
    for node in best:
        place = parents.get(_parent_of(node))
        row = [] if place is None else place.child_ids
        if node.node_id in row:
            at = row.index(node.node_id)
            ids |= dict.fromkeys(row[max(0, at - EITHER_SIDE) : at + EITHER_SIDE + 1])
    return [node_id for node_id in ids if node_id not in known]


async def _by_id(
    snapshot: Snapshot,
    ids: Iterable[str],
    filters: MetadataFilters | None = None,
    partial_summaries: bool = False,
) -> dict[str, BaseNode]:
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    nodes = await snapshot.nodes(wanted, filters, partial_summaries=partial_summaries)
    return {node.node_id: node for node in nodes}


def _cosine(vector: Sequence[float], question: Floats1d) -> float:
    x = np.asarray(vector, dtype=np.float64)
    return float(x @ question / (np.linalg.norm(x) * np.linalg.norm(question)))

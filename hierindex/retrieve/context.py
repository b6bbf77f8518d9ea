"""Ranking of nodes by scores in context: their own and their neighbours'."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.core.context import in_context, nearness, places_of
from hierindex.core.membership import Floats1d, Floats2d, Ints1d
from hierindex.core.ranking import blended, reading_order
from hierindex.record import NodeRecord, Span
from hierindex.store.rows import citations_of
from hierindex.store.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

N_AROUND = 10  # best candidates whose neighbours are added
EITHER_SIDE = 6  # neighbours before and after a node; a parent has six children on average


COLUMNS = ("id", "parent_ids", "record", "vector")


@dataclass(frozen=True)
class Candidate:
    """A node found by a search, with its scores for the question.

    `parent` is the id of its strongest parent, "" for none. `span` is where its sources are, None
    if they are of several documents or unknown. `dense` is the cosine similarity, `lexical` the
    score of the full-text search, 0 if it did not find the node.
    """

    id: str
    parent: str
    span: Span | None
    dense: float
    lexical: float = 0.0


def candidates_of(
    rows: "pa.Table", question: Floats1d, lexical: Mapping[str, float]
) -> list[Candidate]:
    """Return rows with `COLUMNS` as candidates; `lexical` has the scores of some of them."""
    ids, parents, records = (rows[name].to_pylist() for name in COLUMNS[:3])
    X = np.stack(rows["vector"].to_numpy(zero_copy_only=False)) if ids else np.zeros((0, 1))
    return [
        Candidate(i, next(iter(above), ""), _span(citations_of(record)), dense, lexical.get(i, 0.0))
        for i, above, record, dense in zip(
            ids, parents, records, _cosines(X, question), strict=True
        )
    ]


async def rank_in_context(
    snapshot: Snapshot,
    candidates: Sequence[Candidate],
    question_vector: Sequence[float],
    *,
    filters: MetadataFilters | None = None,
    partial_summaries: bool = False,
) -> list[tuple[str, float]]:
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
    list[(str, float)]
        Ids and scores, best first; ties stay in the order of the candidates. Scores are standard
        deviations above the mean of all ranked nodes, see `hierindex.core.context`.

    Notes
    -----
    Nodes are neighbours in reading order if their spans are. A node of several documents, or
    without a known place in its document, has no neighbours. The snapshot is read by ids twice.
    What summaries above a node could lend to its score helps on some sets and hurts on others.
    """
    question = np.asarray(question_vector, dtype=np.float64)
    first = np.argsort(-_scores(candidates), kind="stable")[:N_AROUND]
    ids = await _beside(snapshot, [candidates[i] for i in first], {c.id for c in candidates})
    near: list[Candidate] = []
    if ids:
        rows = await snapshot.passing(
            ids, filters, partial_summaries=partial_summaries, columns=COLUMNS
        )
        near = candidates_of(rows, question, {})
    ranked = [*candidates, *near]
    scores = _scores(ranked)
    return [(ranked[i].id, float(scores[i])) for i in np.argsort(-scores, kind="stable")]


def in_reading_order(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Order nodes by document and start, the document of the best node first.

    A node of several documents, or without a known place, counts as a document of its own.
    """
    relevance = np.array([node.score or 0.0 for node in nodes], dtype=np.float64)
    records = [NodeRecord.from_metadata(node.metadata) for node in nodes]
    document, start, _ = _places([_span(record.citations) for record in records])
    return [nodes[i] for i in reading_order(relevance, document, start)]


def _places(spans: Sequence[Span | None]) -> tuple[Ints1d, Floats1d, Floats1d]:
    """Return documents, starts and ends; a passage without a span has a document of its own."""
    return places_of(
        [(s.document, s.start, s.end) if s else (i, 0, 0) for i, s in enumerate(spans)]
    )


def _scores(candidates: Sequence[Candidate]) -> Floats1d:
    dense = np.array([c.dense for c in candidates], dtype=np.float64)
    lexical = np.array([c.lexical for c in candidates])
    document, start, end = _places([c.span for c in candidates])
    return in_context(blended(dense, lexical), document, nearness(document, start, end))


def _span(spans: Sequence[Span]) -> Span | None:
    """Return the span around spans, or None if there are none or of several documents."""
    if len({span.document for span in spans}) != 1:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    return Span(spans[0].document, start, end)


async def _beside(snapshot: Snapshot, best: Sequence[Candidate], known: set[str]) -> list[str]:
    """Return ids of unknown neighbours of these nodes under their strongest parents."""
    parents = {node.parent: None for node in best if node.parent}
    places = await snapshot.places(parents) if parents else []
    rows, ids = {place.id: place.child_ids for place in places}, dict[str, None]()
    for node in best:
        row = rows.get(node.parent, [])
        if node.id in row:
            at = row.index(node.id)
            ids |= dict.fromkeys(row[max(0, at - EITHER_SIDE) : at + EITHER_SIDE + 1])
    return [node_id for node_id in ids if node_id not in known]


def _cosines(X: Floats2d, question: Floats1d) -> Floats1d:
    if not len(X):
        return np.zeros(0)
    return np.asarray(X @ question / (np.linalg.norm(X, axis=1) * np.linalg.norm(question)))

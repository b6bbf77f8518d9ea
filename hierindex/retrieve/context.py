"""Ranking of nodes by scores in context, and their order for a reader."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from llama_index.core.schema import NodeWithScore

from hierindex.core.context import in_context, nearness, places_of
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.ranking import DENSE_SHARE, blended, cosines, reading_order
from hierindex.record import NodeRecord, Span
from hierindex.store.nodes import quotes_in

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("id", "record", "vector")
MOST_COMPARED = 500  # nodes, as scores in context cost their square


def rank_in_context(
    rows: "pa.Table",
    question: Floats1d,
    lexical: Mapping[str, float],
    share: float = DENSE_SHARE,
) -> list[tuple[str, float]]:
    """Rank the nodes that searches found by their scores in context.

    Parameters
    ----------
    rows : Table
        `COLUMNS` of distinct nodes of one level.
    question : (n_dims,) floats
    lexical : mapping of str to float
        Scores by words by id; a node that it lacks has a score of 0.
    share : float in [0, 1]
        Weight of the vectors, see `blended`.

    Returns
    -------
    list[(str, float)]
        Ids and scores, best first; ties stay in the order of the rows. Scores are standard
        deviations above the mean of all nodes, see `hierindex.core.context`. Of more than 500
        nodes, the best are ranked in context and the others follow by their own scores.

    Notes
    -----
    Nodes are neighbours in reading order if their spans are. A node of several documents, or
    without a known place in its document, has no neighbours. Neither the neighbours that no
    search found nor what the summaries above lend to a score improves the ranking.
    """
    if not rows.num_rows:
        return []
    ids = rows["id"].to_pylist()
    records = [NodeRecord(quotes=quotes_in(record)) for record in rows["record"].to_pylist()]
    document, start, end = _places([_span(record.citations) for record in records])
    X = np.stack(rows["vector"].to_numpy(zero_copy_only=False))  # (n, n_dims)
    own = blended(cosines(X, question), np.array([lexical.get(i, 0.0) for i in ids]), share)
    near, scores = np.sort(np.argsort(-own, kind="stable")[:MOST_COMPARED]), own.copy()
    K = nearness(document[near], start[near], end[near])
    scores[near] = in_context(own[near], document[near], K)  # not below their own scores
    return [(ids[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")]


def in_reading_order(nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
    """Order nodes by document and start, the document of the best node first.

    A node of several documents, or without a known place, counts as a document of its own.
    """
    relevance = np.array([node.score or 0.0 for node in nodes], dtype=np.float64)
    records = [NodeRecord.from_metadata(node.metadata) for node in nodes]
    sources = [[quote.source for quote in record.quotes if quote.source] for record in records]
    document, start, _ = _places([_span(spans) for spans in sources])
    return [nodes[i] for i in reading_order(relevance, document, start)]


def _places(spans: Sequence[Span | None]) -> tuple[Ints1d, Floats1d, Floats1d]:
    """Return documents, starts and ends; a passage without a span has a document of its own."""
    return places_of(
        [(s.document, s.start, s.end) if s else (i, 0, 0) for i, s in enumerate(spans)]
    )


def _span(spans: Sequence[Span]) -> Span | None:
    """Return the span around spans, or None if there are none or of several documents."""
    if len({span.document for span in spans}) != 1:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    return Span(spans[0].document, start, end)

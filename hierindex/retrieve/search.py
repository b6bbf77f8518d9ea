"""A question and a snapshot: searches of the whole tree or of parts of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hierindex.core.arguments import Floats1d
from hierindex.core.ranking import (
    DENSE_SHARE,
    blended,
    cosines,
    in_context,
    nearness,
    places_of,
    reading_order,
)
from hierindex.node import Found, Node, Span
from hierindex.store.filtering import Scope
from hierindex.store.filters import EVERY_ROW, Filters, Prefilter
from hierindex.store.rows import NODE_COLUMNS, to_nodes
from hierindex.store.search import DEPTH, fused, matching, nearest, united
from hierindex.store.snapshot import Snapshot
from hierindex.text.characters import UNSPACED
from hierindex.text.words import is_foreign, known_language, without_question_words
from hierindex.threads import each

if TYPE_CHECKING:
    import pyarrow as pa

By = Literal["dense", "hybrid", "text", "context"]
BY: tuple[By, ...] = get_args(By)
CANDIDATES = 50  # of each search, at least, to be ranked in context; 100 find no more
SHARE_OF_A_NAME = 0.2  # of vectors, if the question is a single word or a name: it is looked up
SHARE_ACROSS = 0.8  # of vectors, if the text is in another language; tests/benchmarks/languages.py
LONGEST_NAME = 5  # words, or characters in a script without blanks
MOST_COMPARED = 500  # nodes, as scores in context cost their square


@dataclass(frozen=True)
class Search:
    """A question and the snapshot to search; see `HierarchyRetriever` for the options."""

    snapshot: Snapshot
    question: str
    embedding: list[float]
    by: By = "dense"
    filters: Filters | None = None
    partial_summaries: bool = False

    def best(self, n: int, where: Prefilter = EVERY_ROW) -> list[Found]:
        """Return at most n nodes, best first, that pass the filters and meet a condition.

        In context, nodes with the same text count as one.
        """
        in_context = self.by == "context"
        if not self.snapshot.exists:
            return []
        scope = self.snapshot.scope(
            self.filters,
            where,
            partial_summaries=self.partial_summaries,
            columns=(*NODE_COLUMNS, "vector") if in_context else NODE_COLUMNS,
        )
        if in_context:
            return self._in_context(n, scope)
        rows = self._rows(n, scope)
        return list(map(Found, to_nodes(rows), rows["score"].to_pylist()))

    def _rows(self, n: int, scope: Scope) -> "pa.Table":
        if self.by == "text":
            return matching(scope, self.question, n)
        if self.by == "dense":
            return nearest(scope, self.embedding, n)
        depth = max(n, DEPTH)
        return fused(scope, self.embedding, self.question, dense=depth, sparse=depth)[:n]

    def _in_context(self, n: int, scope: Scope) -> list[Found]:
        most = max(n, CANDIDATES)
        searches = (
            partial(nearest, scope, self.embedding, most),
            partial(matching, scope, without_question_words(self.question), most),
        )
        by_meaning, by_words = each(searches, 2)
        lexical = dict(zip(by_words["id"].to_pylist(), by_words["score"].to_pylist(), strict=True))
        rows = united(by_meaning, by_words, columns=scope.columns)
        if not rows.num_rows:
            return []
        cosine = cosines(np.stack(rows["vector"].to_numpy()), np.asarray(self.embedding))
        nodes = to_nodes(rows.drop_columns(["vector"]))
        words = np.array([lexical.get(node.id, 0.0) for node in nodes])
        ranked = ranked_in_context(nodes, blended(cosine, words, self._shares(nodes)))
        first = {node.text: i for i, (node, _) in reversed([*enumerate(ranked)])}
        return ranked[: sorted(first.values())[:n][-1] + 1]

    def _shares(self, nodes: Sequence[Node]) -> Floats1d:
        """Return the weight of the vectors for each node: high if its words mean little."""
        share = SHARE_OF_A_NAME if is_name(self.question) else DENSE_SHARE
        language = known_language(self.question)
        foreign = [is_foreign(node.metadata, language) for node in nodes]
        return np.where(foreign, SHARE_ACROSS, share)


def is_name(question: str) -> bool:
    """Return whether a question is a single word, or up to five that all begin with capitals.

    In scripts without spaces between words, up to five characters count as one word.

    >>> is_name("chapter-3.md"), is_name("Jack Ruby"), is_name("pump failures")
    (True, True, False)
    """
    words = question.split()
    if UNSPACED.search(question):
        return len(question) <= LONGEST_NAME
    capital = not any(word[0].islower() for word in words)
    return len(words) == 1 or (capital and len(words) in range(2, LONGEST_NAME + 1))


def ranked_in_context(nodes: Sequence[Node], own: Floats1d) -> list[Found]:
    """Rank distinct nodes of one level by their scores in context.

    Parameters
    ----------
    nodes : sequence of Node
    own : (n_nodes,) floats
        The score of each node alone, see `blended`.

    Returns
    -------
    list[Found]
        Best first; ties stay in the order of the nodes. Scores are standard deviations above the
        mean of all nodes, see `hierindex.core.ranking`. Of more than 500 nodes, the best are ranked
        in context and the others follow by their own scores.

    Notes
    -----
    Nodes are neighbours in reading order if their spans are. A node that quotes several documents,
    or has no known position, has no neighbours. Adding neighbours that no search found, or the
    scores of the summaries above, does not improve the ranking.
    """
    document, start, end = places_of([_span(node.citations) for node in nodes])
    near, scores = np.sort(np.argsort(-own, kind="stable")[:MOST_COMPARED]), own.copy()
    K = nearness(document[near], start[near], end[near])
    scores[near] = in_context(own[near], document[near], K)  # not below their own scores
    return [Found(nodes[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")]


def in_reading_order(found: Sequence[Found]) -> list[int]:
    """Return the order of nodes by document and start, the document of the best node first.

    A node that quotes several documents, or has no known position, counts as a document of its own.
    """
    relevance = np.array([each.score for each in found], dtype=np.float64)
    sources = [[quote.source for quote in each.node.quotes if quote.source] for each in found]
    document, start, _ = places_of([_span(spans) for spans in sources])
    return [int(i) for i in reading_order(relevance, document, start)]


def _span(spans: Sequence[Span]) -> tuple[str, int, int] | None:
    """Return the document, start and end around spans; None if of no or several documents."""
    if len({span.document for span in spans}) != 1:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    return spans[0].document, start, end

"""Search of a LanceDB table by vector, by words, or by both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hierindex.core.ranking import diversified, reciprocal_ranks
from hierindex.store.indices import ALL_PARTITIONS, FEW_ROWS, REFINE_FACTOR, VECTOR_ROWS
from hierindex.store.passing import Passing
from hierindex.store.schema import NODE_COLUMNS
from hierindex.text.characters import folded, without_surrogates
from hierindex.threads import each

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.query import MatchQuery

    from hierindex.store.snapshot import Snapshot

DEPTH = 50  # minimum length of the lists to fuse: rows in both are rarely on top of both
MOST_KNOWN = 1_000  # cached conditions
ALPHA = 0.5  # share of the vectors in fused scores
ROW = "_rowid"  # column of what is found, by which `Snapshot.taken` reads more of a row
WIDER = 8  # factor by which the limit grows while too few rows pass


@dataclass(frozen=True)
class Scope:
    """The rows of a snapshot to search.

    Parameters
    ----------
    snapshot : Snapshot
        Its table exists.
    passes : Passing
        The rows that pass the query's filters.
    most : int, optional
        Upper bound on the rows that can pass, if known.
    columns : tuple of str
        Columns to return beside the score, with those that the filters read.
    """

    snapshot: "Snapshot"
    passes: Passing
    most: int | None = None
    columns: tuple[str, ...] = tuple(NODE_COLUMNS)

    def search(self, sought: "list[float] | MatchQuery | None" = None) -> Any:
        """Return a search of LanceDB among the rows that meet its condition."""
        search = self.snapshot.require().search(sought).with_row_id(True)
        return self.passes.where.narrow(search)


def nearest(
    scope: Scope, vector: list[float], n_rows: int, columns: tuple[str, ...] = ()
) -> "pa.Table":
    """Return the rows with the most similar vectors, best first, with their cosine as `score`.

    The search is exact in tables without a vector index and among few rows named by id. Otherwise
    the index chooses candidates, ordered by their exact cosine; if few rows pass the filters, all
    partitions of the index are searched.
    """
    is_small = scope.snapshot.n_rows() < VECTOR_ROWS
    exact = is_small or (scope.most or FEW_ROWS) < FEW_ROWS
    everywhere = not exact and _few_pass(scope)

    def search(limit: int) -> "pa.Table":
        rows = plan(limit, everywhere)
        if exact or everywhere or rows.num_rows == limit:
            return rows
        return plan(limit, True)  # too few rows passed in the partitions searched

    def plan(limit: int, everywhere: bool) -> "pa.Table":
        query = scope.search(vector).distance_type("cosine").refine_factor(REFINE_FACTOR)
        if exact:
            query = query.bypass_vector_index()
        elif everywhere:
            query = query.nprobes(ALL_PARTITIONS)
        query = query.select([*scope.columns, *columns, "_distance"]).limit(limit)
        return scope.snapshot.read(query)

    rows = _first(scope, search, n_rows)
    return _scored(rows, 1.0 - rows["_distance"].to_numpy().astype(np.float64))


def matching(scope: Scope, text: str, n_rows: int) -> "pa.Table":
    """Return the rows that best match a text's words, best first, with their BM25 as `score`.

    The title, file name, section, people and dates of a row count as its words, too.
    """

    def search(limit: int) -> "pa.Table":
        query = scope.search(_words(text))
        return scope.snapshot.read(query.select([*scope.columns, "_score"]).limit(limit))

    rows = _first(scope, search, n_rows)
    return _scored(rows, rows["_score"].to_numpy().astype(np.float64))


def having(scope: Scope, words: Sequence[str]) -> "pa.Table":
    """Return all rows that have each of these words, which are matched as in `matching`."""
    from lancedb.query import FullTextOperator

    query = scope.search(_words(" ".join(words), operator=FullTextOperator.AND))
    query = query.select([*scope.columns, "_score"]).limit(1 + scope.snapshot.n_rows())
    return scope.passes.rows(scope.snapshot.read(query))


def fused(
    scope: Scope, vector: list[float], text: str, *, dense: int, sparse: int, alpha: float = ALPHA
) -> "pa.Table":
    """Combine both searches by reciprocal rank fusion, best first.

    `score` is 61 * (alpha / (60 + rank by vectors) + (1 - alpha) / (60 + rank by words)), so it
    is 1 for the row that is first in both.
    """
    searches = partial(nearest, scope, vector, dense), partial(matching, scope, text, sparse)
    found = each(searches, 2)
    scores = reciprocal_ranks([rows["id"].to_pylist() for rows in found], (alpha, 1.0 - alpha))
    rows = united(*found, columns=scope.columns)
    ids = rows["id"].to_pylist()
    best = sorted((i for i in range(len(ids)) if scores[ids[i]] > 0), key=lambda i: -scores[ids[i]])
    return _scored(rows.take(np.array(best, np.int64)), np.array([scores[ids[i]] for i in best]))


def united(*tables: "pa.Table", columns: Sequence[str]) -> "pa.Table":
    """Return columns of the rows of tables, one after the other, each id once."""
    import pyarrow as pa

    rows = pa.concat_tables([table.select(columns) for table in tables])
    first: dict[str, int] = {}
    for i, node_id in enumerate(rows["id"].to_pylist()):
        first.setdefault(node_id, i)
    return rows.take(np.array([*first.values()], np.int64))


def diverse(
    scope: Scope, vector: list[float], n_rows: int, *, candidates: int, threshold: float
) -> "pa.Table":
    """Choose rows by maximal marginal relevance (Carbonell and Goldstein 1998), best first.

    `score` is threshold * cosine to the question - (1 - threshold) * the highest cosine to a row
    chosen before; it never rises down the list.
    """
    rows = nearest(scope, vector, candidates, columns=("vector",))
    if not rows.num_rows:
        return rows
    relevance = rows["score"].to_numpy()  # (n_candidates,)
    X = np.array(rows["vector"].to_pylist(), dtype=np.float64).reshape(len(relevance), -1)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    chosen, scores = diversified(X, relevance, n_rows, 1.0 - threshold)
    return _scored(rows.take(chosen), np.array(scores))


def _few_pass(scope: Scope) -> bool:
    """Return whether so few rows pass that a partial search of the index would miss some.

    Cached, as counting them takes a third of the time of a search.
    """
    condition = scope.passes.where.sql
    if not condition:
        return False
    few: dict[int, bool] = scope.snapshot.known.setdefault("few", {})
    found = few.get(hash(condition))
    if found is None:
        if len(few) >= MOST_KNOWN:
            few.clear()
        query = scope.search().select(["level"])
        n_rows = scope.snapshot.read(query.limit(FEW_ROWS + 1)).num_rows
        found = few[hash(condition)] = n_rows <= FEW_ROWS
    return found


def _first(scope: Scope, search: Callable[[int], "pa.Table"], n_rows: int) -> "pa.Table":
    """Search with a growing limit until enough rows pass the filters."""
    limit = min(n_rows, 1 + scope.snapshot.n_rows())
    while True:
        rows = search(limit)
        passing = scope.passes.rows(rows)
        if passing.num_rows >= n_rows or rows.num_rows < limit:
            return passing[:n_rows]
        limit *= WIDER


def _words(text: str, **options: Any) -> Any:
    """Return a full-text query in which no character is an operator."""
    from lancedb.query import MatchQuery

    query: Any = MatchQuery
    return query(folded(without_surrogates(text)), "words", **options)


def _scored(rows: "pa.Table", scores: "np.ndarray[Any, Any]") -> "pa.Table":
    unscored = rows.drop_columns(["score"]) if "score" in rows.column_names else rows
    return unscored.append_column("score", [scores])

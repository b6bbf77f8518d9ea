"""Search of a LanceDB table by vectors, by words, or by both, and the search indices."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hierindex.core.ranking import diversified, reciprocal_ranks
from hierindex.store.filters import Scope
from hierindex.text.characters import paired, searched
from hierindex.text.words import UNSEARCHED
from hierindex.threads import each

if TYPE_CHECKING:
    from lancedb.table import Table

logger: logging.Logger = logging.getLogger(__name__)

# Medians of queries of made-up rows with 384 dimensions, on two cores.
SCALAR_ROWS = 5_000  # a filtered search takes 3.3 ms with the indices, 7.3 without
VECTOR_ROWS = 20_000  # a search takes 5 ms with the index, 26 without
FEW_ROWS = 10_000  # among fewer, the default of twenty partitions misses results
REFINE_FACTOR = 3  # raises recall of the top 10 from 0.97 to 1.00 among 1,000,000 rows
SMALL_FRAGMENTS = 16  # each adds 0.3 ms to a query
UNINDEXED_SHARE = 0.05
UNINDEXED_ROWS = (1_000, 10_000)  # bounds of that share; 1,000 add 6 ms to a text search

DEPTH = 50  # minimum length of the lists to fuse: rows in both are rarely on top of both
ALPHA = 0.5  # share of the vectors in fused scores
LITERALS = 3  # weight of "-k" and "3.2" in a question, which mostly asks about them


def maintain(table: "Table") -> None:
    """Create missing search indices that pay off, compact small fragments and index new rows.

    LanceDB also searches rows that are not indexed. So nothing is lost if this fails, for example
    because two processes maintain one table.
    """
    try:
        missing, lagging = neglected(table)
        for column, config in missing.items():
            table.create_index(column, config=config)
        stats: Any = table.stats()
        if stats["fragment_stats"]["num_small_fragments"] >= SMALL_FRAGMENTS or lagging:
            table.optimize()  # joins new rows and indexes them
            table.optimize()  # joins them with those that were indexed before
    except RuntimeError as error:  # LanceDB's error for conflicting commits
        logger.info("Maintenance of the index is postponed to the next write: %s.", error)


def neglected(table: "Table") -> tuple[dict[str, Any], list[str]]:
    """Return the search indices to create, and those to update.

    The first are configurations by column, of indices that are missing and pay off. The second are
    names of indices that lack too many rows.
    """
    from lancedb.index import FTS, Bitmap, BTree, IvfSq, LabelList

    wanted = {  # by column, the number of rows at which an index pays off, and its configuration
        # "icu/split" segments Chinese, Japanese and Thai by dictionaries and other scripts as
        # "simple" does. LanceDB's own list of stop words for all languages contains digits.
        "words": (0, FTS(base_tokenizer="icu/split", custom_stop_words=[*UNSEARCHED])),
        "level": (SCALAR_ROWS, Bitmap()),
        "level_max": (SCALAR_ROWS, Bitmap()),
        "digests": (SCALAR_ROWS, LabelList()),
        "id": (SCALAR_ROWS, BTree()),
        "whole_document": (SCALAR_ROWS, BTree()),
        "previous_id": (SCALAR_ROWS, BTree()),  # "" is that of the first chunk of a document
        "next_id": (SCALAR_ROWS, BTree()),
        "text_hash": (SCALAR_ROWS, BTree()),
        "stale": (SCALAR_ROWS, Bitmap()),
        "vector": (VECTOR_ROWS, IvfSq(distance_type="cosine")),
    }
    n_rows, indices = table.count_rows(), table.list_indices()
    made = {column for index in indices for column in index.columns}
    missing = {c: config for c, (at, config) in wanted.items() if n_rows >= at and c not in made}
    least, most = UNINDEXED_ROWS
    bearable = min(max(least, UNINDEXED_SHARE * n_rows), most)
    of = {index.name: table.index_stats(index.name) for index in indices}
    return missing, [name for name, one in of.items() if one and one.num_unindexed_rows > bearable]


def nearest(scope: Scope, vector: list[float], n_rows: int) -> pa.Table:
    """Return the rows with the most similar vectors, best first, with their cosine as `score`.

    The search is exact in tables without a vector index and among few rows. Otherwise the vector
    index picks candidates, which are ordered by their exact cosine.
    """
    query = scope.search(vector, n_rows, "_distance").distance_type("cosine")
    is_small = scope.snapshot.n_rows() < VECTOR_ROWS
    if is_small or (scope.where.sql and scope.snapshot.count(scope.where) <= FEW_ROWS):
        query = query.bypass_vector_index()
    else:  # without a maximum, more partitions are searched while too few rows are found
        query = query.refine_factor(REFINE_FACTOR).maximum_nprobes(0)
    rows = scope.snapshot.read(query)
    return _scored(rows, 1.0 - rows["_distance"].to_numpy().astype(np.float64))


def matching(scope: Scope, text: str, n_rows: int) -> pa.Table:
    """Return the rows that best match a text's words, best first, with their BM25 as `score`.

    The title, file name, section, people and dates of a row also count as its words.
    """
    rows = scope.snapshot.read(scope.search(_words(text), n_rows, "_score"))
    return _scored(rows, rows["_score"].to_numpy().astype(np.float64))


def having(scope: Scope, words: Sequence[str]) -> pa.Table:
    """Return all rows that contain each of these words, matched as in `matching`."""
    from lancedb.query import FullTextOperator

    every = _words(" ".join(words), operator=FullTextOperator.AND)
    return scope.snapshot.read(scope.search(every, 1 + scope.snapshot.n_rows(), "_score"))


def fused(
    scope: Scope, vector: list[float], text: str, *, dense: int, sparse: int, alpha: float = ALPHA
) -> pa.Table:
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


def united(*tables: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Concatenate some columns of tables, keeping the first row of each id."""
    rows = pa.concat_tables([table.select(columns) for table in tables])
    _, first = np.unique(rows["id"].to_numpy(), return_index=True)
    return rows.take(np.sort(first))


def diverse(
    scope: Scope, vector: list[float], n_rows: int, *, candidates: int, threshold: float
) -> pa.Table:
    """Choose rows by maximal marginal relevance (Carbonell and Goldstein 1998), best first.

    `score` is threshold * cosine to the question - (1 - threshold) * the highest cosine to a row
    chosen before. Scores never rise down the list.
    """
    rows = nearest(replace(scope, columns=(*scope.columns, "vector")), vector, candidates)
    if not rows.num_rows:
        return rows
    relevance = rows["score"].to_numpy()  # (n_candidates,)
    X = np.array(rows["vector"].to_pylist(), dtype=np.float64).reshape(len(relevance), -1)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    chosen, scores = diversified(X, relevance, n_rows, 1.0 - threshold)
    return _scored(rows.take(chosen), np.array(scores))


def _words(text: str, **options: Any) -> Any:
    """Return a full-text query in which no character is an operator."""
    from lancedb.query import MatchQuery

    query: Any = MatchQuery
    return query(searched(paired(text), LITERALS), "words", **options)


def _scored(rows: pa.Table, scores: "np.ndarray[Any, Any]") -> pa.Table:
    unscored = rows.drop_columns(["score"]) if "score" in rows.column_names else rows
    return unscored.append_column("score", [scores])

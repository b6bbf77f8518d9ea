"""The indices of a table, each created once it pays off, and table maintenance."""

import logging
import sys
from typing import TYPE_CHECKING, Any

from hierindex.text.stop_words import UNSEARCHED

if TYPE_CHECKING:
    from lancedb.table import Table

logger = logging.getLogger(__name__)

# Measured by tests/benchmarks/indices.py.
SCALAR_ROWS = 5_000  # a filtered search takes 3.3 ms with the indices, 7.3 without
VECTOR_ROWS = 20_000  # a search takes 5 ms with the index, 26 without
FEW_ROWS = 10_000  # among fewer, the default of twenty partitions misses results
ALL_PARTITIONS = 1_000_000  # more than any index has
REFINE_FACTOR = 3  # raises recall of the top 10 from 0.97 to 1.00 among 1,000,000 rows
GROWN = 4  # a table that grew by this factor needs a new vector index, with more partitions
SMALL_FRAGMENTS = 16  # each adds 0.3 ms to a query
UNINDEXED_SHARE = 0.05
UNINDEXED_ROWS = (1_000, 10_000)  # bounds of that share; 1,000 add 6 ms to a text search


def tend(table: "Table") -> None:
    """Create missing indices that pay off, compact small fragments and index new rows.

    LanceDB also searches rows that are not indexed, so nothing is lost if this fails, as when
    two processes maintain one table.
    """
    try:
        _make_missing(table)
        if _pays_to_optimize(table):
            table.optimize()  # joins new rows and indexes them
            table.optimize()  # joins them with those that were indexed before
    except RuntimeError as error:  # LanceDB's error for conflicting commits
        logger.info("Maintenance of the index is postponed to the next write: %s.", error)


def _make_missing(table: "Table") -> None:
    n_rows = table.count_rows()
    made = {column: index.name for index in table.list_indices() for column in index.columns}
    for column, (pays_at, config) in _wanted().items():
        if n_rows >= pays_at and column not in made:
            name = f"{column}_{n_rows}" if column == "vector" else None
            table.create_index(column, config=config, name=name)
    if "vector" in made and n_rows >= GROWN * _made_for(made["vector"]):
        config = _wanted()["vector"][1]
        table.create_index("vector", config=config, name=f"vector_{n_rows}")
        table.drop_index(made["vector"])


def _made_for(name: str) -> int:
    """Return the number of rows that a vector index was created for, from its name."""
    n_rows = name.rpartition("_")[2]
    return int(n_rows) if n_rows.isdecimal() else sys.maxsize  # not ours, never replaced


def _wanted() -> dict[str, tuple[int, Any]]:
    """Return by column the number of rows at which an index pays off, and its configuration."""
    from lancedb.index import FTS, Bitmap, BTree, IvfSq, LabelList

    return {
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


def _pays_to_optimize(table: "Table") -> bool:
    stats: Any = table.stats()
    if stats["fragment_stats"]["num_small_fragments"] >= SMALL_FRAGMENTS:
        return True
    return bool(_lagging(table, stats["num_rows"]))


def _lagging(table: "Table", n_rows: int) -> list[str]:
    """Return the names of the indices that lack more rows than is bearable."""
    least, most = UNINDEXED_ROWS
    bearable = min(max(least, UNINDEXED_SHARE * n_rows), most)
    names = [index.name for index in table.list_indices()]
    of = {name: table.index_stats(name) for name in names}
    return [name for name, one in of.items() if one and one.num_unindexed_rows > bearable]


def neglected(table: "Table") -> list[str]:
    """Return the columns whose indices pay off and are missing, and the indices that lack rows."""
    n_rows = table.count_rows()
    made = {column for index in table.list_indices() for column in index.columns}
    missing = [c for c, (pays_at, _) in _wanted().items() if n_rows >= pays_at and c not in made]
    return [*missing, *_lagging(table, n_rows)]

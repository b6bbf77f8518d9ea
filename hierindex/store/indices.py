"""The indices of a table, each made where it pays, and the table's upkeep."""

import logging
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lancedb.table import AsyncTable

logger = logging.getLogger(__name__)

# Medians on two cores, 384 dimensions, by tests/benchmarks/indices.py.
SCALAR_ROWS = (
    5_000  # a filtered search 7.3 ms -> 3.3; at 1,000 rows 4.2 -> 3.2, at 100,000 270 -> 9
)
VECTOR_ROWS = 20_000  # 26 ms -> 5, made in 0.3 s; at 5,000 rows 7.8 -> 3.9, at 100,000 268 -> 10
FEW_ROWS = 10_000  # of 1,000,000: among 4,000 twenty partitions have 0.72 of the top 10, all 1.00
ALL_PARTITIONS = (
    1_000_000  # 15 ms and not 7 there; of 100,000 rows 8, where their exact scan takes 18
)
REFINE_FACTOR = 3  # finds 1.00 of the top 10 among 1,000,000 and not 0.97, in 17.7 ms and not 14.8
GROWN = 4  # times as many rows want other partitions: 20,000 have 2 of them, 1,000,000 have 122
SMALL_FRAGMENTS = 16  # a query slows down by 0.3 ms for each: 200 of them 60 ms, joined 4 ms
UNINDEXED_SHARE = 0.05
UNINDEXED_ROWS = (1_000, 10_000)  # at least and at most; 1,000 cost a search of words 6 ms
STOP_WORDS = (  # Lucene's for English
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with"
).split()


async def tend(table: "AsyncTable") -> None:
    """Make the indices that pay and are missing; join small writes; index what is new.

    Rows that no index has yet are found all the same: LanceDB searches them one by one. So
    upkeep may fail, as when two processes keep one table, and nothing is lost.
    """
    try:
        await _make_missing(table)
        if await _pays_to_optimize(table):
            await table.optimize()
    except RuntimeError as error:  # LanceDB's, for a commit that met another
        logger.info("The upkeep of an index waits for the next write: %s.", error)


async def _make_missing(table: "AsyncTable") -> None:
    n_rows = await table.count_rows()
    made = {column: index.name for index in await table.list_indices() for column in index.columns}
    for column, (pays_at, config) in _wanted().items():
        if n_rows >= pays_at and column not in made:
            name = f"{column}_{n_rows}" if column == "vector" else None
            await table.create_index(column, config=config, name=name)
    if "vector" in made and n_rows >= GROWN * _made_for(made["vector"]):
        config = _wanted()["vector"][1]
        await table.create_index("vector", config=config, name=f"vector_{n_rows}")
        await table.drop_index(made["vector"])


def _made_for(name: str) -> int:
    """How many rows a vector index was made for, which its name says."""
    _, _, n_rows = name.rpartition("_")
    return int(n_rows) if n_rows.isdecimal() else sys.maxsize  # not ours: it stays


def _wanted() -> dict[str, tuple[int, Any]]:
    """By column, the rows at which an index pays, and which."""
    from lancedb.index import FTS, Bitmap, BTree, IvfSq, LabelList

    return {
        # Splits Chinese, Japanese and Thai into words and other scripts as "simple" does, by
        # dictionaries that LanceDB has built in. Its stop words of all languages would have
        # the digits among them.
        "text": (1, FTS(base_tokenizer="icu/split", custom_stop_words=STOP_WORDS)),
        "level": (SCALAR_ROWS, Bitmap()),
        "level_max": (SCALAR_ROWS, Bitmap()),
        "digests": (SCALAR_ROWS, LabelList()),
        "id": (SCALAR_ROWS, BTree()),
        "whole_document": (SCALAR_ROWS, BTree()),
        "vector": (VECTOR_ROWS, IvfSq(distance_type="cosine")),
    }


async def _pays_to_optimize(table: "AsyncTable") -> bool:
    stats: Any = await table.stats()
    if stats["fragment_stats"]["num_small_fragments"] >= SMALL_FRAGMENTS:
        return True
    least, most = UNINDEXED_ROWS
    bearable = min(max(least, UNINDEXED_SHARE * stats["num_rows"]), most)
    of = [await table.index_stats(index.name) for index in await table.list_indices()]
    return any(one.num_unindexed_rows > bearable for one in of if one is not None)

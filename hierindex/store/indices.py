"""The indices of a table, each made where it pays, and the table's upkeep."""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lancedb.table import AsyncTable

logger = logging.getLogger(__name__)

SCALAR_ROWS = 10_000
VECTOR_ROWS = 50_000
EXACT_ROWS = 10_000
REFINE_FACTOR = 3
SMALL_FRAGMENTS = 16
UNINDEXED_SHARE = 0.05
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
    made = {column for index in await table.list_indices() for column in index.columns}
    for column, (pays_at, config) in _wanted().items():
        if n_rows >= pays_at and column not in made:
            await table.create_index(column, config=config)


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
        "vector": (VECTOR_ROWS, IvfSq(distance_type="cosine")),
    }


async def _pays_to_optimize(table: "AsyncTable") -> bool:
    stats: Any = await table.stats()
    if stats["fragment_stats"]["num_small_fragments"] >= SMALL_FRAGMENTS:
        return True
    for index in await table.list_indices():
        of = await table.index_stats(index.name)
        if of is not None and of.num_unindexed_rows > UNINDEXED_SHARE * stats["num_rows"] + 1000:
            return True
    return False

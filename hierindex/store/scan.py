"""Exhaustive search of a table whose vectors, and soon its rows, are kept in memory."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierindex.store.prefilter import Prefilter
from hierindex.store.schema import NODE_COLUMNS
from hierindex.store.table_snapshot import TableSnapshot, once

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BYTES = 2**26  # of vectors in memory; a search reads all others each time, for 13 ms of 10,000
MOST_ROW_BYTES = 2**26  # of all rows of nodes in memory
SEARCHES = 10  # that read their rows, until all are read, which takes as long as ten times ten rows
MOST_KNOWN = 100  # conditions whose rows are cached, and which are as long as their filters
NUMBER = "_rowid"  # LanceDB's of a row
DISTANCE = "_distance"


class Vectors(NamedTuple):
    """Vectors of length 1, (n_rows, n_dims) float32, and the numbers of their rows."""

    X: NDArray[np.float32]
    numbers: NDArray[np.uint64]


async def fit_in_memory(snapshot: TableSnapshot, n_dims: int) -> bool:
    """Return whether the vectors of a generation are few enough to be kept."""
    return await snapshot.n_rows() * n_dims * np.float32().nbytes <= MOST_BYTES


@once
async def vectors(snapshot: TableSnapshot) -> Vectors:
    """Return the vectors of a generation, without those that are zero."""
    rows = await snapshot.read(snapshot.require().query().with_row_id().select(["vector"]))
    n_dims = rows.schema.field("vector").type.list_size
    X = np.array(rows["vector"].combine_chunks().flatten()).reshape(-1, n_dims)
    lengths = np.linalg.norm(X, axis=1)
    some = lengths > 0  # a zero vector is similar to nothing
    return Vectors(X[some] / lengths[some, None], rows[NUMBER].to_numpy()[some])


async def scan(
    snapshot: TableSnapshot,
    where: Prefilter,
    vector: Sequence[float],
    columns: Sequence[str],
    limit: int,
) -> "pa.Table":
    """Return the rows with the most similar vectors among those that meet a condition, best first.

    The column `_distance` is 1 - cosine similarity. Equal rows are in the order of the table.
    """
    X, numbers = await vectors(snapshot)
    q = np.array(vector, np.float32)
    similarities = np.vecdot(X, q / np.linalg.norm(q))  # X @ q would start the threads of BLAS
    meeting = await _meeting(snapshot, where, numbers)
    best = meeting[_highest(similarities[meeting], limit)]
    if len(best) and {*columns} <= {*NODE_COLUMNS} and (kept := await _kept(snapshot)) is not None:
        rows = kept.select([*columns]).take(best)
    else:
        rows = await _taken(snapshot, numbers[best].tolist(), columns)
    return rows.append_column(DISTANCE, [1 - similarities[best]])


def _highest(values: NDArray[np.float32], n: int) -> NDArray[np.int64]:
    """Return the positions of the n highest values in descending order, of equal ones the first."""
    least = np.partition(values, -n)[-n] if n < len(values) else -np.inf
    among = np.flatnonzero(values >= least)
    return among[np.argsort(-values[among], kind="stable")][:n]


async def _meeting(
    snapshot: TableSnapshot, where: Prefilter, numbers: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the positions of the rows that meet a condition."""
    known: dict[str, NDArray[np.int64]] = snapshot.known.setdefault("meeting", {})
    if where.sql not in known:
        found = numbers
        if where.sql:
            query = where.narrow(snapshot.require().query()).with_row_id().select(["level"])
            found = (await snapshot.read(query))[NUMBER].to_numpy()
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[where.sql] = np.flatnonzero(np.isin(numbers, found))
    return known[where.sql]


async def _kept(snapshot: TableSnapshot) -> "pa.Table | None":
    """Return the rows of `vectors`, if there were some searches before and they are few enough."""
    known = snapshot.known
    known["searches"] = n_searches = known.get("searches", 0) + 1
    if n_searches >= SEARCHES and "rows" not in known:
        known["rows"] = None  # the others do not wait for this one
        with suppress(OSError, RuntimeError):  # LanceDB's, of a row that nobody asked for
            known["rows"] = await _few_rows(snapshot)
    rows: pa.Table | None = known.get("rows")
    return rows


async def _few_rows(snapshot: TableSnapshot) -> "pa.Table | None":
    """Return the rows of `vectors`; None if all rows have more than `MOST_ROW_BYTES`."""
    import pyarrow as pa

    batches = list[pa.RecordBatch]()
    async for batch in snapshot.batches(NUMBER, *NODE_COLUMNS):
        batches.append(batch)
        if sum(batch.nbytes for batch in batches) > MOST_ROW_BYTES:
            return None
    rows = pa.Table.from_batches(batches).combine_chunks()
    _, numbers = await vectors(snapshot)
    return rows.take(_places(rows[NUMBER].to_pylist(), numbers.tolist())).drop_columns([NUMBER])


async def _taken(
    snapshot: TableSnapshot, numbers: Sequence[int], columns: Sequence[str]
) -> "pa.Table":
    """Return columns of rows in the order of their numbers."""
    if not numbers:
        return await snapshot.select(*columns, where=Prefilter("false"))
    query: Any = snapshot.require().take_row_ids([*numbers])
    rows = await snapshot.read(query.with_row_id().select([*columns]))
    return rows.take(_places(rows[NUMBER].to_pylist(), numbers)).drop_columns([NUMBER])


def _places(among: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """Return the places of numbers among others."""
    place = {number: i for i, number in enumerate(among)}
    return [place[number] for number in numbers]

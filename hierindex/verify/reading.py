"""Reading of a stored index whose files may be damaged."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hierindex.store.damage import damages
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import iterated

if TYPE_CHECKING:
    import pyarrow as pa


def opened(store: HierarchyStore) -> Snapshot:
    """Return the newest state of an index.

    Raises
    ------
    DamagedError
        If LanceDB cannot open it.
    IndexNotFoundError
        If there is none.
    """
    with damages():
        snapshot = store.snapshot()
    snapshot.require()
    return snapshot


def read(snapshot: Snapshot, *columns: str) -> "Iterator[pa.RecordBatch]":
    """Yield columns of all rows in batches.

    Raises
    ------
    DamagedError
        If LanceDB cannot read them.
    """
    batches = iterated(snapshot.batches(*columns))
    while True:
        with damages():
            batch = next(batches, None)
        if batch is None:
            return
        yield batch

"""Reading of a stored index whose files may be damaged."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hierindex.errors import HierindexError
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import iterated
from hierindex.verify.files import DamagedError

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


@contextmanager
def damages() -> Iterator[None]:
    """Raise what LanceDB raises as DamagedError."""
    try:
        yield
    except HierindexError:
        raise
    except (OSError, RuntimeError, ValueError) as error:  # as LanceDB raises them
        raise DamagedError(str(error)) from error

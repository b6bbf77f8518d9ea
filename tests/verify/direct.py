"""Writing to the table of an index past its store, to break it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lancedb.table import Table

from hierindex import HierarchyStore


@contextmanager
def written(folder: Path) -> Iterator[Table]:
    """The table for the `with` block, after which readers see what was written."""
    table = HierarchyStore(folder).client.open_table("nodes")
    yield table
    table.checkout_latest()
    newest = max(table.tags.list(), key=lambda tag: int(tag.rpartition("-")[2]))
    table.tags.update(newest, table.version)

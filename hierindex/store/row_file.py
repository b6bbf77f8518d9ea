"""Rows that wait in a temporary file until all of a tree is written."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Self

from hierindex.store.connection import Connection
from hierindex.store.rows import Row, as_table
from hierindex.store.waiting_file import WaitingFile

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 1024  # rows that are a table in memory


class RowFile(WaitingFile):
    """Rows of nodes in a temporary file."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Self:
        with self._connection.named_refusals():
            if folder := self._connection.folder:
                folder.mkdir(parents=True, exist_ok=True)
        return super().__enter__()

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows, none of them twice; see `as_table` for the errors."""
        for some in tables(rows):
            self._write(some)

    def reader(self) -> "pa.RecordBatchReader | None":
        """Return the rows in the order in which they were added; None if there are none."""
        import pyarrow as pa

        if self._writer is None:
            return None
        with self._connection.named_refusals():
            self._writer.close()
            self._file.seek(0)
        return pa.ipc.open_stream(self._file)

    def _write(self, rows: "pa.Table") -> None:
        import pyarrow as pa

        with self._connection.named_refusals():
            if self._writer is None:
                self._writer = pa.ipc.new_stream(self._file, rows.schema)
            self._writer.write_table(rows)


def tables(rows: Iterable[Row]) -> "Iterator[pa.Table]":
    """Yield tables of a few rows each."""
    waiting = iter(rows)
    while some := [*islice(waiting, AT_ONCE)]:
        yield as_table(some)

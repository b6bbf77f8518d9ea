"""Temporary files of an index, which hold nodes and documents during a build."""

import pickle
from array import array
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from os import SEEK_END
from tempfile import TemporaryFile
from typing import IO, Any, Self

import pyarrow as pa

from hierindex.node import Node
from hierindex.store.connection import Connection
from hierindex.store.rows import as_table, row_of

AT_ONCE = 1024  # rows that are a table in memory


class WaitingFile:
    """Values in a temporary file without a name, by number; it vanishes with the process.

    It is in the folder of the index, which needs space for the build anyway. If the folder does not
    exist yet, or the index is in an object store, it is in the system's folder for temporary files.
    It is open during a `with` block.

    Parameters
    ----------
    connection : Connection
        Connection to the index.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._starts = array("q", [0])

    def __enter__(self) -> Self:
        with self._connection.access_errors():
            folder = self._connection.folder
            at = folder if folder is not None and folder.is_dir() else None
            self._file: IO[bytes] = TemporaryFile(dir=at)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # of a full disk; nothing is read any more
            self._file.close()

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> Any:
        start, end = self._starts[number : number + 2]
        with self._connection.access_errors():
            self._file.seek(start)
            return pickle.loads(self._file.read(end - start))  # noqa: S301  # of this process

    def append(self, value: Any) -> int:
        """Add a value and return its number."""
        with self._connection.access_errors():
            self._file.seek(0, SEEK_END)
            pickle.dump(value, self._file)
            self._starts.append(self._file.tell())
        return len(self) - 1


class RowFile(WaitingFile):
    """Rows of embedded nodes in a temporary file."""

    def add(self, nodes: Iterable[Node]) -> None:
        """Add the rows of nodes.

        Raises
        ------
        InputError
            If a node cannot be written, see `row_of`.
        """
        for node in nodes:
            self.append(row_of(node))

    def reader(self) -> pa.RecordBatchReader | None:
        """Return the rows in the order in which they were added; None if there are none."""
        if not len(self):
            return None
        starts = range(0, len(self), AT_ONCE)
        some = ([self[i] for i in range(at, min(at + AT_ONCE, len(self)))] for at in starts)
        batches = chain.from_iterable(as_table(rows).to_batches() for rows in some)
        return pa.RecordBatchReader.from_batches(as_table([self[0]]).schema, batches)

"""Temporary files of an index, which hold nodes and documents during a build."""

import json
from array import array
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from os import SEEK_END
from tempfile import TemporaryFile
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hierindex.node import Node
from hierindex.store.connection import Connection
from hierindex.store.rows import Row, as_table, node_of, row_of, schema

AT_ONCE = 1024  # rows that are a table in memory


class WaitingFile:
    """JSON values in a temporary file without a name, by number; it vanishes with the process.

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
        return json.loads(self._read(number))

    def append(self, value: Any) -> int:
        """Add a JSON value and return its number."""
        return self._write(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))

    def _read(self, number: int) -> bytes:
        start, end = self._starts[number : number + 2]
        with self._connection.access_errors():
            self._file.seek(start)
            return self._file.read(end - start)

    def _write(self, data: bytes) -> int:
        with self._connection.access_errors():
            self._file.seek(0, SEEK_END)
            self._file.write(data)
            self._starts.append(self._file.tell())
        return len(self) - 1


class RowFile(WaitingFile):
    """Rows of embedded nodes in a temporary file: a line of JSON each, and the vector."""

    def append(self, node: Node) -> int:
        """Add the row of a node and return its number.

        Raises
        ------
        InputError
            If the node cannot be written, see `row_of`.
        """
        row = row_of(node)
        vector = np.array(() if node.vector is None else node.vector, np.float32)
        return self._write(json.dumps({**row, "vector": None}).encode() + b"\n" + vector.tobytes())

    def add(self, nodes: Iterable[Node]) -> None:
        """Add the rows of nodes; see `append`."""
        for node in nodes:
            self.append(node)

    def __getitem__(self, number: int) -> Row:
        row = json.loads(self._read(number).partition(b"\n")[0])
        return {**row, "vector": self.vector(number)}

    def vector(self, number: int) -> NDArray[np.float32]:
        """Return the vector of a row."""
        return np.frombuffer(self._read(number).partition(b"\n")[2], np.float32)

    def node(self, number: int) -> Node:
        """Return the node of a row."""
        return node_of(self[number])

    def reader(self) -> pa.RecordBatchReader | None:
        """Return the rows in the order in which they were added; None if there are none."""
        if not len(self):
            return None
        starts = range(0, len(self), AT_ONCE)
        some = ([self[i] for i in range(at, min(at + AT_ONCE, len(self)))] for at in starts)
        batches = chain.from_iterable(as_table(rows).to_batches() for rows in some)
        return pa.RecordBatchReader.from_batches(schema(len(self.vector(0))), batches)

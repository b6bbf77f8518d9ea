"""Temporary files of an index, which hold rows and documents during a build."""

import json
from array import array
from collections.abc import Iterable
from functools import partial
from itertools import chain
from os import SEEK_END
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Self

import numpy as np
import orjson
from numpy.typing import NDArray

from hierindex.errors import InputError
from hierindex.store.connection import Connection
from hierindex.store.rows import Row, as_table, schema, vectors_of_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from llama_index.core.schema import Document

AT_ONCE = 1024  # rows that are a table in memory


class WaitingFile:
    """A temporary file without a name, open during a `with` block; it vanishes with the process.

    It is in the folder of the index, which needs space for the build anyway. If the folder does not
    exist yet, or the index is in an object store, it is in the system's folder for temporary files.

    Parameters
    ----------
    connection : Connection
        Connection to the index.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> Self:
        with self._connection.named_refusals():
            folder = self._connection.folder
            at = folder if folder is not None and folder.is_dir() else None
            self._file: IO[bytes] = TemporaryFile(buffering=0, dir=at)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _append(self, data: bytes) -> int:
        """Write bytes at the end, and return their offset."""
        with self._connection.named_refusals():
            start, rest = self._file.seek(0, SEEK_END), memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        return start

    def _read(self, start: int, length: int) -> bytes:
        """Return bytes that were written."""
        with self._connection.named_refusals():
            self._file.seek(start)
            return self._file.read(length)


class DocumentFile(WaitingFile):
    """Documents in a temporary file."""

    def add(self, document: "Document") -> "partial[Document]":
        """Add a document with JSON values, and return a function that reads it again."""
        data = json.dumps(document.to_dict(), ensure_ascii=False).encode()
        return partial(self._at, self._append(data), len(data))

    def _at(self, start: int, length: int) -> "Document":
        from llama_index.core.schema import Document

        return Document.from_dict(json.loads(self._read(start, length)))


class RowFile(WaitingFile):
    """Rows of nodes in a temporary file, accessed by number."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._starts = array("q", [0])
        self._n_dims = 0

    def __len__(self) -> int:
        return len(self._starts) - 1

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows.

        Raises
        ------
        InputError
            If a vector is missing, not finite or of another dimension than the first one.
        """
        for row in rows:
            (x,) = vectors_of_rows([row])
            if len(self) and len(x) != self._n_dims:
                widths = sorted([self._n_dims, len(x)])
                raise InputError(f"Embeddings must have one dimension, got {widths}.")
            self._n_dims = len(x)
            data = x.tobytes() + orjson.dumps({**row, "vector": None})
            self._starts.append(self._append(data) + len(data))

    def __getitem__(self, number: int) -> Row:
        start, end = self._starts[number : number + 2]
        data = self._read(start, end - start)
        x, rest = data[: self._vector_bytes], data[self._vector_bytes :]
        return {**orjson.loads(rest), "vector": np.frombuffer(x, np.float32)}

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all rows, (n_rows, n_dims)."""
        X = np.empty((len(self), self._n_dims), np.float32)
        for i, start in enumerate(self._starts[:-1]):
            X[i] = np.frombuffer(self._read(start, self._vector_bytes), np.float32)
        return X

    def reader(self) -> "pa.RecordBatchReader | None":
        """Return the rows in the order of their addition; None if there are none."""
        import pyarrow as pa

        if not len(self):
            return None
        starts = range(0, len(self), AT_ONCE)
        some = ([self[i] for i in range(at, min(at + AT_ONCE, len(self)))] for at in starts)
        batches = chain.from_iterable(as_table(rows).to_batches() for rows in some)
        return pa.RecordBatchReader.from_batches(schema(self._n_dims), batches)

    @property
    def _vector_bytes(self) -> int:
        return self._n_dims * np.dtype(np.float32).itemsize

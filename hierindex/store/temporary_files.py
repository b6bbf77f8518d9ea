"""Temporary files of an index, which hold rows and documents during a build."""

import pickle
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

from hierindex.errors import InputError
from hierindex.store.connection import Connection
from hierindex.store.rows import Row, as_table, schema, vectors_of_rows

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
        self._starts = array("q")

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
        return len(self._starts)

    def __getitem__(self, number: int) -> Any:
        with self._connection.access_errors():
            self._file.seek(self._starts[number])
            return pickle.load(self._file)  # noqa: S301  # of this process

    def append(self, value: Any) -> int:
        """Add a value that can be pickled and return its number."""
        with self._connection.access_errors():
            self._starts.append(self._file.seek(0, SEEK_END))
            pickle.dump(value, self._file)
        return len(self) - 1


class RowFile(WaitingFile):
    """Rows of nodes in a temporary file, accessed by number."""

    _n_dims = 0

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
                raise InputError(f"Embeddings must have the same dimension, got {widths}.")
            self._n_dims = len(x)
            self.append({**row, "vector": x})

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all rows, (n_rows, n_dims)."""
        X = np.empty((len(self), self._n_dims), np.float32)
        for i in range(len(self)):
            X[i] = self[i]["vector"]
        return X

    def reader(self) -> pa.RecordBatchReader | None:
        """Return the rows in the order in which they were added; None if there are none."""
        if not len(self):
            return None
        starts = range(0, len(self), AT_ONCE)
        some = ([self[i] for i in range(at, min(at + AT_ONCE, len(self)))] for at in starts)
        batches = chain.from_iterable(as_table(rows).to_batches() for rows in some)
        return pa.RecordBatchReader.from_batches(schema(self._n_dims), batches)

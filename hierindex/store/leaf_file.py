"""Leaves of a growing tree that wait in a temporary file until they are grouped."""

from array import array

import numpy as np
import orjson
from numpy.typing import NDArray

from hierindex.errors import InputError
from hierindex.store.connection import Connection
from hierindex.store.rows import Row
from hierindex.store.waiting_file import WaitingFile

FLOAT = np.dtype(np.float32)


class LeafFile(WaitingFile):
    """Rows of leaves in a temporary file, by number."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._starts = array("q", [0])
        self._n_dims = 0

    def __len__(self) -> int:
        return len(self._starts) - 1

    def add(self, row: Row) -> None:
        """Add a row, whose vector is an array, (n_dims,).

        Raises
        ------
        InputError
            If its vector has another dimension than those before.
        """
        x = row["vector"]
        if len(self) and len(x) != self._n_dims:
            widths = sorted([self._n_dims, len(x)])
            raise InputError(f"Embeddings must have one dimension, got {widths}.")
        self._n_dims = len(x)
        data = orjson.dumps({**row, "vector": None})
        start = self._append(x.astype(FLOAT).tobytes() + data)
        self._starts.append(start + self._vector_bytes + len(data))

    def __getitem__(self, number: int) -> Row:
        start, end = self._starts[number : number + 2]
        data = self._read(start, end - start)
        x, rest = data[: self._vector_bytes], data[self._vector_bytes :]
        return {**orjson.loads(rest), "vector": np.frombuffer(x, FLOAT)}

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all rows, (n_rows, n_dims)."""
        X = np.empty((len(self), self._n_dims), FLOAT)
        for i, start in enumerate(self._starts[:-1]):
            X[i] = np.frombuffer(self._read(start, self._vector_bytes), FLOAT)
        return X

    @property
    def _vector_bytes(self) -> int:
        return self._n_dims * FLOAT.itemsize

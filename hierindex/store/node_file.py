"""Nodes of a growing tree that wait in a temporary file until they are grouped."""

import json
from array import array

import numpy as np
from llama_index.core.schema import TextNode
from numpy.typing import NDArray

from hierindex.errors import InputError
from hierindex.store.connection import Connection
from hierindex.store.rows import not_json
from hierindex.store.waiting_file import WaitingFile

FLOAT = np.dtype(np.float32)


class NodeFile(WaitingFile):
    """Nodes with their vectors in a temporary file, by number."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._starts = array("q", [0])
        self._n_dims = 0

    def __len__(self) -> int:
        return len(self._starts) - 1

    def add(self, node: TextNode, x: NDArray[np.floating]) -> None:
        """Add a node and its vector, (n_dims,).

        Raises
        ------
        InputError
            If its vector has another dimension than those before, its metadata are not JSON, or
            its text is not Unicode.
        """
        if len(self) and len(x) != self._n_dims:
            widths = sorted([self._n_dims, len(x)])
            raise InputError(f"Embeddings must have one dimension, got {widths}.")
        self._n_dims = len(x)
        try:
            data = json.dumps(node.to_dict(), ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise not_json(node, error) from error
        start = self._append(x.astype(FLOAT).tobytes() + data)
        self._starts.append(start + self._vector_bytes + len(data))

    def __getitem__(self, number: int) -> tuple[TextNode, NDArray[np.float32]]:
        start, end = self._starts[number : number + 2]
        data = self._read(start, end - start)
        x = np.frombuffer(data, FLOAT, count=self._n_dims)
        return TextNode.from_dict(json.loads(data[self._vector_bytes :])), x

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of all nodes, (n_nodes, n_dims)."""
        X = np.empty((len(self), self._n_dims), FLOAT)
        for i, start in enumerate(self._starts[:-1]):
            X[i] = np.frombuffer(self._read(start, self._vector_bytes), FLOAT)
        return X

    @property
    def _vector_bytes(self) -> int:
        return self._n_dims * FLOAT.itemsize

"""Temporary files of an index."""

from os import SEEK_END
from typing import IO, Self

from hierindex.store.connection import Connection


class WaitingFile:
    """A temporary file, see `Connection.temporary_file`, open during a `with` block.

    Parameters
    ----------
    connection : Connection
        To the index.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> Self:
        with self._connection.named_refusals():
            self._file: IO[bytes] = self._connection.temporary_file()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _append(self, data: bytes) -> int:
        """Write bytes at the end, and return where they start."""
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

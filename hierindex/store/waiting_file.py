"""Temporary files of an index."""

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

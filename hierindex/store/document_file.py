"""Documents that wait in a temporary file until they are split."""

import json
from functools import partial
from os import SEEK_END
from typing import IO, Self

from llama_index.core.schema import Document

from hierindex.store.connection import Connection


class DocumentFile:
    """Documents in a temporary file, see `Connection.temporary_file`.

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

    def add(self, document: Document) -> "partial[Document]":
        """Add a document of JSON values, and return what reads it again."""
        data = json.dumps(document.to_dict(), ensure_ascii=False).encode()
        with self._connection.named_refusals():
            start, rest = self._file.seek(0, SEEK_END), memoryview(data)
            while rest:
                rest = rest[self._file.write(rest) :]
        return partial(self._at, start, len(data))

    def _at(self, start: int, length: int) -> Document:
        with self._connection.named_refusals():
            self._file.seek(start)
            return Document.from_dict(json.loads(self._file.read(length)))

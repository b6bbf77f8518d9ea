"""Documents that wait in a temporary file until they are split."""

import json
from functools import partial
from os import SEEK_END

from llama_index.core.schema import Document

from hierindex.store.waiting_file import WaitingFile


class DocumentFile(WaitingFile):
    """Documents in a temporary file."""

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

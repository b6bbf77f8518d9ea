"""Documents that wait in a temporary file until they are split."""

import json
from functools import partial

from llama_index.core.schema import Document

from hierindex.store.waiting_file import WaitingFile


class DocumentFile(WaitingFile):
    """Documents in a temporary file."""

    def add(self, document: Document) -> "partial[Document]":
        """Add a document of JSON values, and return what reads it again."""
        data = json.dumps(document.to_dict(), ensure_ascii=False).encode()
        return partial(self._at, self._append(data), len(data))

    def _at(self, start: int, length: int) -> Document:
        return Document.from_dict(json.loads(self._read(start, length)))

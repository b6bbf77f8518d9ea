"""Documents that were read; only one at a time needs to be in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

from hierindex.read.documents import FileContent
from hierindex.read.files import File, Skipped
from hierindex.read.remembered import content_hash
from hierindex.store.table import Table
from hierindex.store.temporary_files import WaitingFile

if TYPE_CHECKING:
    from llama_index.core.schema import Document

CHUNK = 800  # characters, about


class ReadDocument(NamedTuple):
    """A document that was read, without its text.

    Attributes
    ----------
    doc_id : str
    document_hash : str
        See `content_hash`.
    n_chunks : int
        Approximate number of chunks.
    file : FileContent
    load : callable
        Returns the document.
    """

    doc_id: str
    document_hash: str
    n_chunks: int
    file: FileContent
    load: "Callable[[], Document]"

    @classmethod
    def of(cls, document: "Document", load: "Callable[[], Document] | None" = None) -> Self:
        """Describe a document; without `load`, it is kept in memory."""
        load = load or (lambda: document)
        n_chunks, file = 1 + len(document.text) // CHUNK, FileContent.of(document)
        return cls(document.doc_id, content_hash(document), n_chunks, file, load)


InFile = tuple[str, "list[Document | Skipped]"]
"""The documents in a file, with the file's id."""

EachFile = Callable[[Mapping[str, File]], Iterable[InFile]]
"""Reads files by document id."""


ReadFiles = Callable[[Mapping[str, File]], tuple[list[ReadDocument], list[Skipped]]]
"""Reads files by document id; returns the documents and the files that are skipped, in order."""


@contextmanager
def file_reader(table: Table, each_file: EachFile) -> Iterator[ReadFiles]:
    """Yield a function that reads files; the documents are kept in a temporary file of the index.

    Parameters
    ----------
    table : Table
        The index.
    each_file : callable
        Reads files and yields the documents of each with its id.
    """
    with WaitingFile(table.connection) as waiting:

        def loading(document: "Document") -> "Callable[[], Document]":
            of, number = type(document), waiting.append(document.to_dict())
            return lambda: of.from_dict(waiting[number])

        def read(files: Mapping[str, File]) -> tuple[list[ReadDocument], list[Skipped]]:
            found = {
                file: [
                    each if isinstance(each, Skipped) else ReadDocument.of(each, loading(each))
                    for each in inside
                ]
                for file, inside in each_file(files)
            }
            every = [each for file in files for each in found[file]]
            return (
                [each for each in every if isinstance(each, ReadDocument)],
                [each for each in every if isinstance(each, Skipped)],
            )

        yield read

"""Documents that are read, of which only one at a time need be in memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from hierindex.cache.values import Readings
from hierindex.progress import Progress
from hierindex.read.documents import FileContent, Skipped, each_file
from hierindex.read.files import File
from hierindex.read.remembered import content_hash
from hierindex.store.table import Table
from hierindex.store.waiting import DocumentFile

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
        That it will have, about.
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
        """Describe a document; without `load`, it stays in memory."""
        load = load or (lambda: document)
        n_chunks, file = 1 + len(document.text) // CHUNK, FileContent.of(document)
        return cls(document.doc_id, content_hash(document), n_chunks, file, load)


def documents_and_skipped(
    found: Iterable[Sequence[ReadDocument | Skipped]],
) -> tuple[list[ReadDocument], list[Skipped]]:
    """Return the documents that were found in files, and what was skipped."""
    every = [each for inside in found for each in inside]
    return (
        [each for each in every if isinstance(each, ReadDocument)],
        [each for each in every if isinstance(each, Skipped)],
    )


class ReadFiles(Protocol):
    """Reads files by document id."""

    def __call__(self, files: Mapping[str, File]) -> tuple[list[ReadDocument], list[Skipped]]:
        """Return the documents and the files that are skipped, in the order of the files."""


@contextmanager
def file_reader(table: Table, progress: Progress, memory: Readings | None) -> Iterator[ReadFiles]:
    """Give what reads files into documents that wait in a temporary file of an index.

    Parameters
    ----------
    table : Table
        The index.
    progress : Progress
    memory : Readings or None
        See `read_documents`.
    """
    with DocumentFile(table.connection) as waiting:

        def read(files: Mapping[str, File]) -> tuple[list[ReadDocument], list[Skipped]]:
            found = {
                file: [
                    each if isinstance(each, Skipped) else ReadDocument.of(each, waiting.add(each))
                    for each in inside
                ]
                for file, inside in each_file(files, progress=progress, memory=memory)
            }
            return documents_and_skipped(found[file] for file in files)

        yield read

"""Parts of a collection of documents that fit in memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hierindex.cache.readings import ReadingCache
from hierindex.indexing.changes import Documents, Origin
from hierindex.indexing.reading import ReadDocument
from hierindex.node import Node
from hierindex.progress import Progress
from hierindex.read.split import split_documents

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser


@dataclass(frozen=True)
class Part:
    """Documents whose trees are grown at once.

    Attributes
    ----------
    origins : Documents
        Of these documents, in their order.
    held : Sequence[Node]
        The chunks that an index holds of some of them.
    read : Sequence[ReadDocument]
        The others.
    """

    origins: Documents
    held: Sequence[Node]
    read: Sequence[ReadDocument]

    def chunks(
        self, splitter: "NodeParser", progress: Progress, memory: ReadingCache | None
    ) -> list[Node]:
        """Return the chunks of all documents, in their order, with their origins."""
        documents = [each.load() for each in self.read]
        split = split_documents(documents, splitter, progress=progress, memory=memory)
        chunks = [*self.held, *split]
        for chunk in chunks:
            origin = self.origins.get(chunk.documents[0], Origin())
            chunk.document_hash, chunk.read_from = origin
        place = {document: i for i, document in enumerate(self.origins)}
        return sorted(chunks, key=lambda chunk: place.get(chunk.documents[0], len(place)))


def parted(sizes: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Yield documents in parts of at least one document and at most a size, in order.

    >>> [*parted({"a": 2, "b": 3, "c": 9, "d": 1}, 5)]
    [['a', 'b'], ['c'], ['d']]
    """
    part, total = list[str](), 0
    for document, size in sizes.items():
        if part and total + size > most:
            yield part
            part, total = [], 0
        part.append(document)
        total += size
    if part:
        yield part

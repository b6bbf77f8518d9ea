"""Parts of a collection of documents that fit in memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode

from hierindex.cache.readings import ReadingCache
from hierindex.indexing.changes import Documents, Origin
from hierindex.indexing.reading import ReadDocument
from hierindex.progress import Progress
from hierindex.read.split import split_documents
from hierindex.record import NO_RECORD, RECORD_KEYS, as_metadata, fields_in


@dataclass(frozen=True)
class Part:
    """Documents whose trees are grown at once.

    Attributes
    ----------
    origins : Documents
        Of these documents, in their order.
    held : Sequence[BaseNode]
        The chunks that an index holds of some of them.
    read : Sequence[ReadDocument]
        The others.
    """

    origins: Documents
    held: Sequence[BaseNode]
    read: Sequence[ReadDocument]

    def chunks(
        self, splitter: NodeParser, progress: Progress, memory: ReadingCache | None
    ) -> list[BaseNode]:
        """Return the chunks of all documents, in their order, with their origins."""
        documents = [each.load() for each in self.read]
        split = split_documents(documents, splitter, progress=progress, memory=memory)
        chunks = [*self.held, *split]
        for chunk in chunks:
            _note_origin(chunk, self.origins.get(_document(chunk), Origin()))
        place = {document: i for i, document in enumerate(self.origins)}
        return sorted(chunks, key=lambda chunk: place.get(_document(chunk), len(place)))


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


def _document(chunk: BaseNode) -> str:
    return chunk.ref_doc_id or chunk.node_id


def _note_origin(chunk: BaseNode, origin: Origin) -> None:
    """Write the origin of a chunk's document into its record."""
    chunk.metadata |= as_metadata(NO_RECORD | fields_in(chunk.metadata) | origin._asdict())
    for hidden in (chunk.excluded_embed_metadata_keys, chunk.excluded_llm_metadata_keys):
        hidden += [key for key in RECORD_KEYS if key not in hidden]

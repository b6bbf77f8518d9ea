"""Growing and publishing the tree of what an index is to hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hierindex.cache.cache import Cache
from hierindex.cache.values import Readings
from hierindex.jobs.changes import (
    Documents,
    Origin,
    Revision,
    chunks_per_document,
    kept_chunks,
)
from hierindex.jobs.engine import HERE, Rows, Workers
from hierindex.jobs.reading import ReadDocument
from hierindex.jobs.report import BuildReport, reported
from hierindex.jobs.settings import settings_of
from hierindex.node import Node
from hierindex.progress import Progress, Stopwatch
from hierindex.read.split import sentence_splitter, split_documents
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.store.waiting import RowFile
from hierindex.tree.earlier import EarlierTree
from hierindex.tree.growth import Grown
from hierindex.tree.hierarchy import Hierarchy

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
        self, splitter: "NodeParser", progress: Progress, memory: Readings | None
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


@dataclass(frozen=True)
class Job:
    """A revision of an index, and what it takes to grow its tree.

    Attributes
    ----------
    revision : Revision
    table : Table
    snapshot : Snapshot
        Of what the index holds.
    hierarchy : Hierarchy
    splitter : NodeParser or None
    chunk_size : int or None
    cache : Cache
    progress : Progress
    watch : Stopwatch
    purge : bool
        Whether nothing of earlier generations may remain in the index.
    workers : Workers
    """

    revision: Revision
    table: Table
    snapshot: Snapshot
    hierarchy: Hierarchy
    splitter: "NodeParser | None"
    chunk_size: int | None
    cache: Cache
    progress: Progress
    watch: Stopwatch
    purge: bool = False
    workers: Workers = HERE
    part: ClassVar[int] = 10_000  # chunks, about, that are read and grown at once

    @property
    def is_anew(self) -> bool:
        """Whether the whole tree is grown, instead of what changes of the one that there is."""
        return self.revision.anew or not self.snapshot.exists

    def parts(self, most: int | None = None) -> Iterator[Part]:
        """Yield the documents to grow a tree over, in parts of about so many chunks, in order.

        These are the documents that were read, and if all of the tree is grown, the others that
        the index holds.
        """
        after, read = self.revision.after, {each.doc_id: each for each in self.revision.read}
        with self.watch("load"):
            kept = chunks_per_document(self.snapshot) if self.is_anew else {}
        sizes = {d: read[d].n_chunks if d in read else kept.get(d, 0) for d in after}
        for documents in parted(sizes, most or self.part):
            with self.watch("load"):
                held = kept_chunks(self.snapshot, kept.keys() & documents - read.keys())
            origins = {document: after[document] for document in documents}
            yield Part(
                origins, held, [read[document] for document in documents if document in read]
            )

    def chunks(self) -> Iterator[list[Node]]:
        """Yield the chunks of the parts; all chunks of a document are in one part."""
        with self.watch("load"):
            splitter = self.splitter or sentence_splitter(
                self.hierarchy.embedder.embed_model, self.chunk_size
            )
        n_split, n_read = 0, len(self.revision.read)
        for part in self.parts():
            with self.watch("split"):
                progress = _of_all(self.progress, n_split, n_read)
                chunks = part.chunks(splitter, progress, Readings(self.cache))
            n_split += len(part.read)
            yield chunks

    def earlier(self) -> EarlierTree | None:
        """Return the tree that the index holds; None if all of it is grown anew."""
        if self.is_anew:
            return None
        revision = self.revision
        changed = revision.before.keys() - revision.kept
        return EarlierTree(self.snapshot, changed, [*revision.after])

    def publish(self) -> BuildReport:
        """Grow the tree and publish it in place of the one that the index holds."""
        with self.workers.rows(self.table) as rows:
            grown = self.workers.grown(self, rows)
            with self.watch("write"):
                self.progress("write", 0, 1)
                generation = self._write(grown, rows)
                self.progress("write", 1, 1)
        return reported(self.revision, grown, generation, self.watch)

    def _write(self, grown: Grown, rows: Rows) -> int:
        """Write what was grown and return the generation."""
        revision = self.revision
        settings = settings_of(self.hierarchy, self.splitter, self.chunk_size)
        if not revision.read:  # with no splitter
            settings["splitter"] = revision.was.settings.get("splitter")
        report = revision.report(settings, grown.usage)
        if self.is_anew:
            every = rows.reader() if isinstance(rows, RowFile) else rows
            return self.table.replace(every, report, purge=self.purge)
        assert isinstance(rows, RowFile)  # others take whole trees
        reader, moved = rows.reader(), revision.moved
        changed = None if reader is None else reader.read_all()
        return self.table.revise(changed, grown.gone, report, purge=self.purge, moved=moved)


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


def _of_all(progress: Progress, n_before: int, total: int) -> Progress:
    """Report a part's progress as progress of the whole stage."""
    return lambda stage, done, of, *cost: progress(stage, n_before + done, total, *cost)
